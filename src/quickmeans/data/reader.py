"""Records of equal length, read from a file."""

import os
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory import ChunkMemory

_FEW = 256  # records that the system is told of before they are read


class RecordReader:
    """A context that closes the file. Nothing is mapped: a file that has become shorter gives an error, not death."""

    def __init__(self, path: str, offset: int, row_bytes: int) -> None:
        self.path, self.offset, self.row_bytes = path, offset, row_bytes
        self._memory = ChunkMemory()

    def __enter__(self) -> Self:
        self.file = open(self.path, "rb", buffering=0)
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def read(self, begin: int, end: int) -> NDArray[np.uint8]:
        """The records from `begin` to `end`."""
        block = self._memory.empty((end - begin, self.row_bytes), np.dtype(np.uint8))
        self._fill(block, begin)
        return block

    def take(self, index: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The records with these numbers."""
        out = np.empty((len(index), self.row_bytes), np.uint8)
        for begin in range(0, len(index), _FEW):
            some = index[begin : begin + _FEW].tolist()
            self._announce(some)
            for row, record in zip(some, out[begin : begin + _FEW], strict=True):
                self._fill(record, row)
        return out

    def _fill(self, target: NDArray[np.uint8], row: int) -> None:
        """Read from the beginning of a record on, without the interpreter's lock."""
        view, done, first = target.data.cast("B"), 0, self.offset + row * self.row_bytes
        self.file.seek(first)
        while done < len(view):
            count = self.file.readinto(view[done:])
            if not count:
                raise ValueError(
                    f"{self.path} is cut short: it ends in row {row + done // self.row_bytes}, at byte {first + done}; "
                    "it must be complete, and stay as it is while it is read."
                )
            done += count

    def _announce(self, rows: list[int]) -> None:
        """Let the system fetch these records all at once."""
        if hasattr(os, "posix_fadvise"):
            for row in rows:
                first = self.offset + row * self.row_bytes
                os.posix_fadvise(self.file.fileno(), first, self.row_bytes, os.POSIX_FADV_WILLNEED)
