"""Rows of equal length one after the other in a binary file."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.errors import naming_errors
from quickmeans.data.reader import RecordReader
from quickmeans.data.source import RowSource, check_rows_dtype

_MAX_EXPANSION = 1032  # bytes that the deflate method of gzip and zip can make of one byte


class RecordFile(RowSource):
    """A header and then records, each of which is `prefix` bytes to be skipped and the numbers of a row.

    `opener` opens a compressed file, which is decoded chunk by chunk; `archive` is the file that contains it, if any.
    """

    def __init__(
        self,
        path: str,
        stored: np.dtype[Any],
        shape: tuple[int, int],
        *,
        offset: int,
        prefix: int = 0,
        opener: Callable[[], IO[bytes]] | None = None,
        archive: str | None = None,
    ) -> None:
        self.paths = [archive or path]
        self.name, self.stored, self.offset, self.prefix = path, stored, offset, prefix
        self.dtype = check_rows_dtype(stored, path)
        self.n_rows, self.n_columns = shape
        if 0 in shape:
            raise ValueError(f"{path} has shape {shape}; there must be at least one row and one column.")
        self.opener = opener
        self.row_bytes = prefix + self.n_columns * stored.itemsize
        self.size = offset + self.n_rows * self.row_bytes
        self._check_size()

    def _check_size(self) -> None:
        """Refuse a file that is not as long as its header says, or is too short to expand to that length."""
        size = os.stat(self.paths[0]).st_size
        if size == self.size or (self.opener and size * _MAX_EXPANSION >= self.size):
            return
        what = "is cut short" if self.opener or size < self.size else "goes on after its last row"
        raise ValueError(
            f"{self.name} {what}: {self.n_rows} rows of {self.row_bytes} bytes would end at byte {self.size}, but "
            f"it has {size}; it must be complete, and stay as it is while it is read."
        )

    def chunks(self) -> Iterator[NDArray[Any]]:
        return self._decode(self.opener) if self.opener else self._read()

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """The first row of every chunk, and the first row after it."""
        assert self.n_rows is not None
        for begin in range(0, self.n_rows, self.chunk_rows):
            yield begin, min(begin + self.chunk_rows, self.n_rows)

    def _read(self) -> Iterator[NDArray[Any]]:
        with RecordReader(self.name, self.offset, self.row_bytes) as records:
            for begin, end in self._ranges():
                self._check_size()
                yield self._rows(records.read(begin, end), range(begin, end))

    def _decode(self, opener: Callable[[], IO[bytes]]) -> Iterator[NDArray[Any]]:
        with naming_errors(self.name, "is damaged, or is cut short"):
            file = opener()
        with file:
            self._fill(file, memoryview(bytearray(self.offset)))
            for begin, end in self._ranges():
                records = np.empty((end - begin, self.row_bytes), np.uint8)
                done = self._fill(file, records.data.cast("B"))
                if done < records.size:
                    raise ValueError(
                        f"{self.name} ends in row {begin + done // self.row_bytes}, but should have {self.n_rows} "
                        "rows; it must be complete, and stay as it is while it is read."
                    )
                yield self._rows(records, range(begin, end))
            if self._fill(file, memoryview(bytearray(1))):  # at its end the file's checksum is compared, too
                raise ValueError(f"{self.name} goes on after its {self.n_rows} rows; it must end with the last.")

    def _fill(self, file: IO[bytes], view: memoryview) -> int:
        """Decode as many bytes as there are, or as the view has, and return how many."""
        done = 0
        with naming_errors(self.name, "is damaged, or is cut short"):
            while done < len(view):
                part = file.read(len(view) - done)
                if not part:
                    break
                view[done : done + len(part)] = part
                done += len(part)
        return done

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        if self.opener:  # a compressed file must be decoded from its beginning
            return super().take(index)
        self._check_size()
        with RecordReader(self.name, self.offset, self.row_bytes) as records:
            return self._rows(records.take(index), index)

    def _rows(self, records: NDArray[np.uint8], numbers: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
        """The rows in these records, and the numbers of the rows for error messages."""
        return np.asarray(records[:, self.prefix :].view(self.stored), self.dtype)
