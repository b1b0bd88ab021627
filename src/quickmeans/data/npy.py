"""NumPy's files: .npy, and the arrays in an .npz."""

import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from quickmeans.data.columns import ColumnFile
from quickmeans.data.errors import naming_errors
from quickmeans.data.records import RecordFile
from quickmeans.data.source import RowSource


def open_npy(path: str) -> RowSource:
    """The 2-D array of an .npy file."""
    with open(path, "rb") as file:
        shape, fortran_order, dtype = _header(file, path)
        offset = file.tell()
    return (ColumnFile if fortran_order else RecordFile)(path, dtype, shape, offset=offset)


def open_npz(path: str, key: str | None) -> RowSource:
    """The array of an .npz file that `key` names, or its only array."""
    with naming_errors(path, "is no .npz file, or is cut short"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        key = choose(path, names, key)
        with archive.open(f"{key}.npy") as file:
            shape, fortran_order, dtype = _header(file, f"{path}: {key}")
            offset = file.tell()
    if fortran_order:
        raise ValueError(f"{path}: {key} is stored column by column; store it with np.ascontiguousarray, or as .npy.")

    def opener() -> IO[bytes]:
        return zipfile.ZipFile(path).open(f"{key}.npy")

    return RecordFile(f"{path}: {key}", dtype, shape, offset=offset, opener=opener, archive=path)


def choose(path: str, names: list[str], key: str | None) -> str:
    """The name of the array to read: `key`, or the only name."""
    if key is None and len(names) == 1:
        return names[0]
    if key not in names:
        given = "has several arrays" if key is None else f"has no array {key!r}"
        raise ValueError(f"{path} {given}; as key, name one of {', '.join(map(repr, sorted(names))) or 'none'}.")
    return key


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, int], bool, np.dtype[Any]]:
    """Shape, whether columns are stored one after the other, and the type."""
    with naming_errors(name, "is no .npy file, or is cut short"):
        major, _ = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if major == 1 else npy_format.read_array_header_2_0
        shape, fortran_order, dtype = read(file)
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"{name} has shape {shape}; rows must be a 2-D array, as X.reshape(len(X), -1) makes it.")
    return (shape[0], shape[1]), fortran_order and min(shape) > 1, dtype
