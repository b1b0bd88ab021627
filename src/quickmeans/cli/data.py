"""The rows that a command is given: a file of any kind that quickmeans reads."""

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quickmeans.data import RowSource

Function = Callable[..., Any]
ROOM = 1 << 30  # bytes of rows that are read once and kept; more are read anew in every pass


def data_argument(function: Function, *, required: bool = True) -> Function:
    """Give a command the argument DATA with --key and --columns; it gets ``rows``, an open source or None."""

    @wraps(function)
    def opened(*args: Any, data: str | None, key: str | None, columns: str | None, **options: Any) -> Any:
        from quickmeans.data import open_rows

        if data is None:
            return function(*args, rows=None, **options)
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        return function(*args, rows=open_rows(data, key=key, columns=names), **options)

    section = "The data"
    columns = option("--columns", section=section, metavar="A,B,...", help="Which columns of a table; else all.")
    key = option("--key", section=section, metavar="NAME", help="Which array of an .npz or HDF5 file.")
    return click.argument("data", type=click.Path(), required=required)(key(columns(opened)))


def in_memory(rows: "RowSource", room: int | None = None) -> "NDArray[Any] | None":
    """All rows, if they take no more than so many bytes (1 GiB), in the type that models compute in."""
    import numpy as np

    from quickmeans.kmeans.rows import exact_dtype

    room, dtype = ROOM if room is None else room, exact_dtype(rows.dtype)
    if rows.n_rows is not None and rows.n_rows * rows.n_columns * dtype.itemsize > room:
        return None
    chunks, total = [], 0
    for chunk in rows.chunks():
        chunk = chunk.astype(dtype, copy=False)
        total += chunk.nbytes
        if total > room:
            return None
        chunks.append(chunk)
    return np.concatenate(chunks)


def whole(rows: "RowSource") -> "NDArray[Any]":
    """All rows, for a command that cannot do with less."""
    from quickmeans.kmeans.rows import exact_dtype

    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    X = in_memory(rows, room)
    if X is None:
        raise ValueError(
            f"{rows.name} takes more than {room / 1e9:.0f} GB as {exact_dtype(rows.dtype)}, half of the memory; give "
            "fewer rows."
        )
    return X


def check_enough(rows: "RowSource", k: int) -> None:
    """Refuse to make more of something than there are rows, if it is known how many there are."""
    if rows.n_rows is not None and rows.n_rows < k:
        raise ValueError(f"{rows.name} has {rows.n_rows} rows; -k must not be larger, got {k}.")


def load_model(path: str, kind: str) -> Any:
    """The fitted object in a file, which must be of that kind."""
    import quickmeans

    model = quickmeans.load(path)
    found = type(model).__name__
    if not found.startswith(kind):  # QKNeighborsTransformer is a QKNeighbors
        raise ValueError(f"{path} holds a {found}, but a {kind} is needed; 'quickmeans info' shows what a file holds.")
    return model
