"""The door to all sources of rows: what is it, and which source reads it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from quickmeans.data.array import ArraySource
from quickmeans.data.iterator import ONLY_ONCE, IteratorSource
from quickmeans.data.missing import without_missing
from quickmeans.data.reading import Reading
from quickmeans.data.source import RowSource

TABLES = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}
_TEXTS = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None}  # with their separators, if the ending tells
_ALL = Reading()
_HDF5 = (".hdf5", ".h5", ".hdf")
_VECS = (".fvecs", ".ivecs", ".bvecs")


def open_rows(
    rows: Any,
    *,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    missing: str = "error",
    separator: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
) -> RowSource:
    """Open rows that can be read in chunks, any number of times.

    Parameters
    ----------
    rows : path, array, function, pyarrow dataset or RowSource
        The ending of a path names its format: .npy, .npz, .parquet, .arrow, .feather, .csv, .tsv, .txt, .hdf5, .h5,
        .fvecs, .bvecs, .ivecs, IDX (-ubyte, .idx); text and IDX files also with .gz; a directory holds Parquet files.
        Files are read in chunks. A memory map is read in place. A function returns, each time it is called, a new
        iterator over chunks (2-D arrays).
    key : str, default=None
        The name of an array in an .npz or HDF5 file; not needed if there is only one, or one called "train" in HDF5.
    columns : list of str, default=None
        The columns of a table to read: names, patterns like ``"e*"``, ranges like ``"e0:e255"``. By default all that
        hold numbers, or the only one that holds lists of numbers, each of which is a row; a note names the others.
    exclude : list of str, default=()
        Columns, as for `columns`, that are not read.
    missing : {"error", "drop", "mean"}, default="error"
        What to do with rows that have missing values (NaN, in a table also null or an empty field): to refuse them, to
        leave them out, or to fill them with the means of their columns.
    separator : str, default=None
        What separates the columns of a text file. None: it is found in the first lines.
    decimal : {".", ","}, default=None
        The decimal point of a text file. None: the same.
    header : bool, default=None
        Whether the first line of a text file has the names of the columns. None: if it does not consist of numbers.

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
    return without_missing(_opened(rows, key, Reading(columns, exclude, missing, separator, decimal, header)), missing)


def open_for(model: Any, path: str, key: str | None, reading: Reading) -> RowSource:
    """Rows of a file for a fitted model: its own columns, if the reading names none; filled with its own means."""
    rows = _open_path(path, key, reading, getattr(model, "feature_names_in_", None))
    mean = getattr(model, "mean_", None)
    if mean is None or not mean.any() or len(mean) != rows.n_columns:
        return without_missing(rows, reading.missing)
    return without_missing(rows, reading.missing, mean * getattr(model, "scale_", 1.0))


def _opened(rows: Any, key: str | None, reading: Reading) -> RowSource:
    if isinstance(rows, str | os.PathLike):
        return _open_path(os.fsdecode(rows), key, reading)
    if key is not None:
        raise ValueError(f"key names an array of an .npz or HDF5 file, but rows is of type {type(rows).__name__}.")
    if is_dask(rows):
        raise TypeError("open_rows does not take Dask arrays; give the array to fit, predict or transform.")
    source = as_source(rows, reading)
    if source is not None:
        return source
    array = np.asanyarray(rows)
    if array.ndim != 2:
        raise ValueError(f"Rows must be a 2-D array, a path or a function, got {type(rows).__name__}.")
    return ArraySource(array)


def is_dask(rows: Any) -> bool:
    """Return whether the rows are a Dask array or data frame."""
    return hasattr(rows, "__dask_graph__") and (hasattr(rows, "chunks") or hasattr(rows, "to_dask_array"))


def as_source(rows: Any, reading: Reading = _ALL, names: Sequence[str] | None = None) -> RowSource | None:
    """Return the source that reads the rows, or None if they are in memory.

    `names` are the columns to read of a table, if the rows are one and the reading names none.
    """
    if isinstance(rows, RowSource):
        return rows
    if isinstance(rows, str | os.PathLike):
        return _open_path(os.fsdecode(rows), None, reading, names)
    if isinstance(rows, Iterator):
        raise TypeError(ONLY_ONCE)
    module = type(rows).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(rows, "schema") and hasattr(rows, "to_batches"):
        from quickmeans.data.arrow import ArrowSource, as_dataset

        return ArrowSource(as_dataset(rows), _of_names(reading, names))
    if callable(rows) and not hasattr(rows, "__array__"):
        return IteratorSource(rows)
    return None


def _of_names(reading: Reading, names: Sequence[str] | None) -> Reading:
    return reading if reading.selects else replace(reading, columns=names)


def _open_path(path: str, key: str | None, reading: Reading, names: Sequence[str] | None = None) -> RowSource:
    ending = Path(path).suffix.lower()
    is_directory = os.path.isdir(path)
    if not is_directory:
        open(path, "rb").close()  # the system's error says what is wrong with a missing or unreadable file
        if os.path.isfile(path) and not os.path.getsize(path):
            raise ValueError(f"{path} is empty, a file of 0 bytes; it must hold rows of numbers.")
    if key is not None and ending != ".npz" and ending not in _HDF5:
        raise ValueError(f"key names an array of an .npz or HDF5 file, but {path} is neither.")
    text = Path(path.removesuffix(".gz")).suffix.lower()
    if text in _TEXTS and not is_directory:
        from quickmeans.data.csv import CsvFile

        return CsvFile(path, replace(_of_names(reading, names), separator=reading.separator or _TEXTS[text]))
    if reading.describes_text:
        raise ValueError(f"separator, decimal and header are for text files (CSV, TSV), but {path} is none.")
    kind = "parquet" if is_directory else TABLES.get(ending)
    if kind is not None:
        from quickmeans.data.arrow import open_dataset

        return open_dataset(path, kind, _of_names(reading, names))
    if reading.selects:
        raise ValueError(f"{path} is no table (Parquet, Arrow, CSV), so it has no columns to choose from.")
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
        ".tsv, .txt, .hdf5, .h5, .fvecs, .ivecs, .bvecs, .idx or -ubyte."
    )
