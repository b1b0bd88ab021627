"""The IDX files of MNIST and its kin, plain or gzipped."""

import gzip
import math
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from quickmeans.data.records import RecordFile

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def open_idx(path: str) -> RecordFile:
    """The first axis counts the rows; all others together are the columns."""
    compressed = path.endswith(".gz")
    with gzip.open(path) if compressed else open(path, "rb") as file:
        stored, shape = _header(file, path)
    table, offset = (shape[0], math.prod(shape[1:])), 4 + 4 * len(shape)
    return RecordFile(path, stored, table, offset=offset, opener=partial(gzip.open, path) if compressed else None)


def _header(file: BinaryIO | Any, path: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    try:
        magic = file.read(4)
        sizes = file.read(4 * magic[3]) if len(magic) == 4 else b""
    except (OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as an IDX file: {error}.") from None
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or len(sizes) < 4 * magic[3] or magic[3] < 2:
        raise ValueError(f"{path} is no IDX file of two or more axes, or is cut short.")
    return np.dtype(_TYPES[magic[2]]), tuple(np.frombuffer(sizes, ">u4").tolist())
