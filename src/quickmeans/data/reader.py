"""Records of equal length, read from a file."""

import os
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory import ChunkMemory

_ANNOUNCED = 256  # records that the system is told of before they are read; disks have queues of 32 to 1024 requests


class RecordReader:
    """A file of records, which the context closes.

    The file is read and not mapped: if it becomes shorter, an error is raised, where a map would end the process.
    """

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
        for begin in range(0, len(index), _ANNOUNCED):
            numbers = index[begin : begin + _ANNOUNCED].tolist()
            self._announce(numbers)
            for row, record in zip(numbers, out[begin : begin + _ANNOUNCED], strict=True):
                self._fill(record, row)
        return out

    def _fill(self, target: NDArray[np.uint8], row: int) -> None:
        """Fill the target with the bytes from the beginning of a record on."""
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
        """Tell the system which records come next, so that it fetches them all at once."""
        if hasattr(os, "posix_fadvise"):
            for row in rows:
                first = self.offset + row * self.row_bytes
                os.posix_fadvise(self.file.fileno(), first, self.row_bytes, os.POSIX_FADV_WILLNEED)
