"""Labels and rows written to a file chunk by chunk; the file appears complete or not at all."""

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from quickmeans.atomic import replacing
from quickmeans.data.tables import import_pyarrow


def write_labels(path: str | os.PathLike[str], labels: Iterator[NDArray[np.int32]]) -> int:
    """Write labels that come in chunks to a file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        Ending in .npy, .parquet or .csv; a table has one column, "label".
    labels : iterator of int32 arrays
        The labels of consecutive rows.

    Returns
    -------
    int
        The number of labels.
    """
    target = Path(os.fsdecode(path))
    writers = {".npy": _write_npy, ".parquet": _write_table, ".csv": _write_table}
    if target.suffix not in writers:
        raise ValueError(f"Labels are written to .npy, .parquet or .csv files, got {os.fsdecode(path)!r}.")
    with replacing(target) as temporary:
        return writers[target.suffix](temporary, labels)


def write_rows(path: str | os.PathLike[str], rows: Iterator[NDArray[Any]]) -> tuple[int, ...]:
    """Write a 2-D array, whose rows come in chunks, to an .npy file; returns its shape."""
    with replacing(path) as temporary:
        first = next(rows)
        count = _write_array(temporary, chain([first], rows), first.dtype.newbyteorder("<"), first.shape[1:])
    return (count, *first.shape[1:])


def write_tables(path: str | os.PathLike[str], tables: Iterator[Any]) -> int:
    """Write tables of pyarrow, all with the columns of the first, to a .parquet or .csv file; returns the row count."""
    with replacing(path) as temporary:
        first = next(tables)
        return _write_parts(temporary, first.schema, chain([first], tables))


def _write_npy(path: Path, labels: Iterator[NDArray[np.int32]]) -> int:
    return _write_array(path, labels, np.dtype("<i4"), ())


def _write_array(path: Path, chunks: Iterator[NDArray[Any]], dtype: np.dtype[Any], width: tuple[int, ...]) -> int:
    """Write an .npy file and return its number of rows.

    That number is in the header, whose length does not depend on it; so the header is written again at the end.
    """
    count = 0
    with open(path, "xb") as file:
        _write_header(file, dtype, (0, *width))
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, dtype).data)
            count += len(chunk)
        file.seek(0)
        _write_header(file, dtype, (count, *width))
    return count


def _write_header(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    npy_format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})


def _write_table(path: Path, labels: Iterator[NDArray[np.int32]]) -> int:
    pa = import_pyarrow()
    schema = pa.schema([("label", pa.int32())])
    return _write_parts(path, schema, (pa.table([pa.array(chunk, pa.int32())], schema) for chunk in labels))


def _write_parts(path: Path, schema: Any, tables: Iterator[Any]) -> int:
    """Write tables of this schema one after the other, as CSV or Parquet, and return their number of rows."""
    pa, count = import_pyarrow(), 0
    import pyarrow.parquet

    writer = pa.csv.CSVWriter if path.suffix == ".csv" else pyarrow.parquet.ParquetWriter
    with writer(path, schema) as file:
        for table in tables:
            file.write_table(table)
            count += len(table)
    return count
