"""The IDX files of MNIST and similar sets, plain or gzipped."""

import gzip
import math
from collections.abc import Callable
from functools import partial
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.errors import naming_errors
from quickmeans.data.records import RecordFile

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}  # of the format's definition


def open_idx(path: str) -> RecordFile:
    """A file of two or more axes: the first counts the rows, the others together are the columns."""
    stored, shape = _header(path)
    if len(shape) < 2:
        raise ValueError(f"{path} is an IDX file of one axis; rows need two axes or more.")
    table, offset = (shape[0], math.prod(shape[1:])), 4 + 4 * len(shape)
    return RecordFile(path, stored, table, offset=offset, opener=_opener(path) if path.endswith(".gz") else None)


def read_idx(path: str) -> NDArray[Any]:
    """The whole array of a file, in its shape."""
    stored, shape = _header(path)
    offset = 4 + 4 * len(shape)
    with naming_errors(path, "is damaged, or is cut short"), _opener(path)() as file:
        content = file.read()
    size = offset + math.prod(shape) * stored.itemsize
    if len(content) != size:
        raise ValueError(f"{path} is damaged, or is cut short: it has {len(content)} bytes, but should have {size}.")
    return np.frombuffer(content, stored, offset=offset).reshape(shape)


def _opener(path: str) -> Callable[[], IO[bytes]]:
    return partial(cast(Callable[..., IO[bytes]], gzip.open if path.endswith(".gz") else open), path, "rb")


def _header(path: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The type and the lengths of the axes."""
    with naming_errors(path, "is no IDX file, or is cut short"), _opener(path)() as file:
        magic = file.read(4)
        sizes = file.read(4 * magic[3]) if len(magic) == 4 else b""
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or len(sizes) < 4 * magic[3] or not sizes:
        raise ValueError(f"{path} is no IDX file, or is cut short.")
    return np.dtype(_TYPES[magic[2]]), tuple(np.frombuffer(sizes, ">u4").tolist())
