"""The door to all sources of rows: what is it, and which source reads it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quickmeans.data.array import ArraySource
from quickmeans.data.iterator import ONLY_ONCE, IteratorSource
from quickmeans.data.source import RowSource

TABLES = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".csv": "csv"}
_HDF5 = (".hdf5", ".h5", ".hdf")
_VECS = (".fvecs", ".ivecs", ".bvecs")


def open_rows(rows: Any, *, key: str | None = None, columns: Sequence[str] | None = None) -> RowSource:
    """Open rows that can be read in chunks, any number of times.

    Parameters
    ----------
    rows : path, array, function, pyarrow dataset or RowSource
        The ending of a path names its format: .npy, .npz, .parquet, .arrow, .feather, .csv, .hdf5, .h5, .fvecs, .bvecs,
        .ivecs, IDX (-ubyte, .idx, also with .gz); a directory holds Parquet files. Files are read in chunks. A memory
        map is read in place. A function returns, each time it is called, a new iterator over chunks (2-D arrays).
    key : str, default=None
        The name of an array in an .npz or HDF5 file; not needed if there is only one, or one called "train" in HDF5.
    columns : list of str, default=None
        The columns of a table to read; one column of lists has a row in each list.

    Returns
    -------
    RowSource
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans.data import open_rows
    >>> source = open_rows(lambda: (np.full((2, 3), i) for i in range(4)))
    >>> source.n_columns, source.sample(3, np.random.default_rng(0)).shape
    (3, (3, 3))
    """
    if isinstance(rows, str | os.PathLike):
        return _open_path(os.fsdecode(rows), key, columns)
    if key is not None:
        raise ValueError(f"key names an array of an .npz or HDF5 file, but rows is of type {type(rows).__name__}.")
    if is_dask(rows):
        raise TypeError("open_rows does not take Dask arrays; give the array to fit, predict or transform.")
    source = as_source(rows, columns)
    if source is not None:
        return source
    array = np.asanyarray(rows)
    if array.ndim != 2:
        raise ValueError(f"Rows must be a 2-D array, a path or a function, got {type(rows).__name__}.")
    return ArraySource(array)


def is_dask(rows: Any) -> bool:
    """Return whether the rows are a Dask array or data frame."""
    return hasattr(rows, "__dask_graph__") and (hasattr(rows, "chunks") or hasattr(rows, "to_dask_array"))


def as_source(rows: Any, columns: Sequence[str] | None = None) -> RowSource | None:
    """Return the source that reads the rows, or None if they are in memory."""
    if isinstance(rows, RowSource):
        return rows
    if isinstance(rows, str | os.PathLike):
        return _open_path(os.fsdecode(rows), None, columns)
    if isinstance(rows, Iterator):
        raise TypeError(ONLY_ONCE)
    module = type(rows).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(rows, "to_batches") and hasattr(rows, "get_fragments"):
        from quickmeans.data.arrow import ArrowSource

        return ArrowSource(rows, columns)
    if callable(rows) and not hasattr(rows, "__array__"):
        return IteratorSource(rows)
    return None


def _open_path(path: str, key: str | None, columns: Sequence[str] | None) -> RowSource:
    ending = Path(path).suffix.lower()
    is_directory = os.path.isdir(path)
    if not is_directory:
        open(path, "rb").close()  # the system's error says what is wrong with a missing or unreadable file
        if os.path.isfile(path) and not os.path.getsize(path):
            raise ValueError(f"{path} is empty, a file of 0 bytes; it must hold rows of numbers.")
    kind = "parquet" if is_directory else TABLES.get(ending)
    if key is not None and ending != ".npz" and ending not in _HDF5:
        raise ValueError(f"key names an array of an .npz or HDF5 file, but {path} is neither.")
    if columns is not None and kind is None:
        raise ValueError(f"columns selects columns of a table (Parquet, Arrow, CSV), but {path} is not a table.")
    if kind == "csv":
        from quickmeans.data.csv import CsvFile

        return CsvFile(path, columns)
    if kind is not None:
        from quickmeans.data.arrow import open_dataset

        return open_dataset(path, kind, columns)
    return _open_matrix(path, ending, key)


def _open_matrix(path: str, ending: str, key: str | None) -> RowSource:
    from quickmeans.data.hdf5 import Hdf5Source
    from quickmeans.data.idx import open_idx
    from quickmeans.data.npy import open_npy, open_npz
    from quickmeans.data.vecs import VecsFile

    if ending == ".npy":
        return open_npy(path)
    if ending == ".npz":
        return open_npz(path, key)
    if ending in _HDF5:
        return Hdf5Source(path, key)
    if ending in _VECS:
        return VecsFile(path)
    if path.removesuffix(".gz").endswith(("-ubyte", ".idx")):
        return open_idx(path)
    raise ValueError(
        f"The format of {path} is not known from its ending; it must be .npy, .npz, .parquet, .arrow, .feather, .csv, "
        ".hdf5, .h5, .fvecs, .ivecs, .bvecs, .idx or -ubyte."
    )
