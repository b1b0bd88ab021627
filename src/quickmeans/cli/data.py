"""The rows and models that commands read."""

import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quickmeans.cli.command import option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quickmeans.data import RowSource

Function = Callable[..., Any]
T = TypeVar("T")
SECTION = "Data"
MEMORY_LIMIT = 1 << 30  # bytes; a larger file is read again in every pass


def data_argument(function: Function, *, required: bool = True) -> Function:
    """Give a command the argument DATA with --key and --columns; it gets ``rows``, an open source or None."""

    @wraps(function)
    def opened(*args: Any, data: str | None, key: str | None, columns: str | None, **options: Any) -> Any:
        from quickmeans.data import open_rows

        if data is None:
            return function(*args, rows=None, **options)
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        return function(*args, rows=open_rows(data, key=key, columns=names), **options)

    columns = option("--columns", section=SECTION, metavar="A,B,...", help="Columns of a table.  [default: all]")
    key = option("--key", section=SECTION, metavar="NAME", help="Name of an array in an .npz or HDF5 file.")
    return click.argument("data", type=click.Path(), required=required)(key(columns(opened)))


def blocks(rows: "RowSource") -> Iterator["NDArray[Any]"]:
    """Return the rows block by block; NaN and infinity are refused with the name of the file, row and column."""
    from quickmeans.data.stream import StreamRows
    from quickmeans.kmeans.rows import refuse_not_finite

    stream = StreamRows(rows)
    for part, block in stream.blocks():
        refuse_not_finite(stream.locate, part.start, block)
        yield block


def blocks_for(model: Any, rows: "RowSource") -> Iterator["NDArray[Any]"]:
    """Return the rows block by block for a fitted model, whose columns they must have."""
    from quickmeans.data.features import check_features

    check_features(model, rows, reset=False)
    model.__dict__.pop("feature_names_in_", None)  # arrays have no names, and scikit-learn would warn
    return blocks(rows)


def read_if_small(rows: "RowSource", limit: int | None = None) -> "NDArray[Any] | None":
    """Return all rows in the type that models compute in, or None if they take more bytes than the limit (1 GiB)."""
    import numpy as np

    from quickmeans.kmeans.rows import exact_dtype

    limit, dtype = MEMORY_LIMIT if limit is None else limit, exact_dtype(rows.dtype)
    if rows.n_rows is not None and rows.n_rows * rows.n_columns * dtype.itemsize > limit:
        return None
    parts, total = [], 0
    for block in blocks(rows):
        part = block.astype(dtype, copy=False)
        total += part.nbytes
        if total > limit:
            return None
        parts.append(part)
    return np.concatenate(parts)


def read_all(rows: "RowSource") -> "NDArray[Any]":
    """Return all rows, or refuse them if they take more than half of the memory."""
    from quickmeans.kmeans.rows import exact_dtype

    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    X = read_if_small(rows, limit)
    if X is None:
        raise ValueError(
            f"{rows.name} takes more than {limit / 1e9:.0f} GB as {exact_dtype(rows.dtype)}, half of the memory; give "
            "fewer rows."
        )
    return X


def check_enough_rows(rows: "RowSource", k: int) -> None:
    """Refuse a -k that exceeds the number of rows, if that is known."""
    if rows.n_rows is not None and rows.n_rows < k:
        raise ValueError(f"-k must not exceed the {rows.n_rows} rows of {rows.name}, got {k}.")


def load_model(path: str, kind: type[T]) -> T:
    """Return the fitted object of that class from a file."""
    import quickmeans

    model = quickmeans.load(path)
    if not isinstance(model, kind):
        raise ValueError(
            f"{path} contains a {type(model).__name__}, but this command needs a {kind.__name__}; 'quickmeans info' "
            "shows what a file contains."
        )
    return model
