"""The values of one column of a table, which is no feature: ids, texts, images."""

from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource

_SHOWN = 20  # names of columns in an error message


def column_values(rows: RowSource, name: str, index: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """The values of a column of the table that the rows come from, one for every row.

    Only those of the rows `index`, if it is given; its numbers must ascend.
    """
    check_column(rows, name)
    parts, first = list[NDArray[Any]](), 0
    for values in rows.column(name):
        end = first + len(values)
        if index is None:
            parts.append(values)
        else:
            chosen = index[slice(*np.searchsorted(index, [first, end]))]
            parts.append(values[chosen - first])
        first = end
    return np.concatenate(parts) if parts else np.empty(0, object)


def check_column(rows: RowSource, name: str) -> None:
    """Refuse a column that the table does not have, and suggest the names that are most like it."""
    if rows.table is None:
        raise ValueError(f"{rows.name} is not a table (Parquet, Arrow, CSV), and has no column {name!r}.")
    if name in rows.table:
        return
    similar = get_close_matches(name, rows.table, cutoff=0.5)
    shown = ", ".join(map(repr, rows.table[:_SHOWN])) + ", ..." * (len(rows.table) > _SHOWN)
    hint = f"did you mean {' or '.join(map(repr, similar))}?" if similar else f"it has {shown}."
    raise ValueError(f"{rows.name} has no column {name!r}; {hint}")
