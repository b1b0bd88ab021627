"""A file mapped into memory and read from its beginning to its end."""

import mmap
import os
from typing import Self

import numpy as np
from numpy.typing import NDArray

_LAG = 96 << 20  # bytes behind the last ones read that may still be in use
_PIECE = 1 << 20
_FEW = 256  # records


class MappedRecords:
    """Records of equal length in a file; a context that closes it."""

    def __init__(self, path: str, offset: int, row_bytes: int) -> None:
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by __exit__
        self.map = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        self.offset, self.row_bytes = offset, row_bytes
        n_rows = (len(self.map) - offset) // row_bytes
        whole = np.frombuffer(self.map, np.uint8, n_rows * row_bytes, offset)
        self.records: NDArray[np.uint8] = whole.reshape(n_rows, row_bytes)
        self._given_back = 0
        self._scratch = bytearray(_PIECE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def read(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Some records in place, once this thread has seen to it that the system has them in its cache.

        It reads them into a corner, which takes no interpreter lock; touching them in the map would hold it.
        """
        first, last = (self.offset + row * self.row_bytes for row in (begin, end))
        for at in range(first, last, _PIECE):
            os.preadv(self.file.fileno(), [memoryview(self._scratch)[: last - at]], at)
        self._give_back(first - _LAG)
        return self.records[begin:end]

    def take(self, index: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Copies of the records with these numbers, some at a time: with each come its neighbours."""
        out = np.empty((len(index), self.row_bytes), np.uint8)
        for begin in range(0, len(index), _FEW):
            out[begin : begin + _FEW] = self.records[index[begin : begin + _FEW]]
            self._advise("MADV_DONTNEED", 0, len(self.map))
        return out

    def _give_back(self, end: int) -> None:
        """Pages before this byte are no longer the process's; the system may keep them for the next time."""
        end = end // mmap.PAGESIZE * mmap.PAGESIZE
        if end > self._given_back:
            self._advise("MADV_DONTNEED", self._given_back, end)
            self._given_back = end

    def _advise(self, name: str, begin: int, end: int) -> None:
        if hasattr(mmap, name):
            self.map.madvise(getattr(mmap, name), begin, end - begin)
