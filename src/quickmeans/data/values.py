"""The values of one column of a table, which is no feature: ids, texts, images."""

import os
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.errors import naming_errors
from quickmeans.data.open import TABLES
from quickmeans.data.tables import import_pyarrow

_SHOWN = 20  # names of columns in an error message
_BATCH = 1 << 14  # rows that are read at a time
_DAMAGED = "cannot be read as a table, or is cut short"


def column_values(path: str | os.PathLike[str], name: str, index: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """The values of a column of a Parquet, Arrow or CSV file, or of a directory of Parquet files.

    Only those of the rows `index`, if it is given; its numbers must ascend.
    """
    path = os.fsdecode(path)
    with naming_errors(path, _DAMAGED):
        dataset = check_column(path, name)
        parts, first = [], 0
        for batch in dataset.to_batches(columns=[name], batch_size=_BATCH):
            values = batch.column(0).to_numpy(zero_copy_only=False)
            if index is not None:
                begin, end = np.searchsorted(index, [first, first + len(batch)])
                values = values[index[begin:end] - first]
            first += len(batch)
            parts.append(values)
    return np.concatenate(parts) if parts else np.empty(0, object)


def check_column(path: str, name: str) -> Any:
    """The dataset of pyarrow in these files; a column that it does not have is refused."""
    kind = "parquet" if os.path.isdir(path) else (TABLES | {".csv": "csv"}).get(Path(path).suffix.lower())
    if kind is None:
        raise ValueError(f"{path} is not a table (Parquet, Arrow, CSV), and has no column {name!r}.")
    with naming_errors(path, _DAMAGED):
        dataset = import_pyarrow().dataset.dataset(path, format=kind)
        refuse_unknown(name, dataset.schema.names, path)
    return dataset


def refuse_unknown(name: str, names: Collection[str], table: str) -> None:
    """Refuse a column that a table does not have, and suggest the names that are most like it."""
    if name in names:
        return
    similar = get_close_matches(name, names, cutoff=0.5)
    shown = ", ".join(map(repr, list(names)[:_SHOWN])) + ", ..." * (len(names) > _SHOWN)
    hint = f"did you mean {' or '.join(map(repr, similar))}?" if similar else f"it has {shown}."
    raise ValueError(f"{table} has no column {name!r}; {hint}")
