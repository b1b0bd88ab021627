"""Rows of equal length one after the other in a binary file."""

import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.reader import RecordReader
from quickmeans.data.source import RowSource, check_rows_dtype


class RecordFile(RowSource):
    """A header, then rows; a row is `prefix` bytes that are not part of it and its numbers.

    A compressed file, which `opener` opens, is decoded piece by piece; it may be part of an archive.
    """

    def __init__(
        self,
        path: str,
        stored: np.dtype[Any],
        shape: tuple[int, int],
        *,
        offset: int,
        prefix: int = 0,
        opener: Callable[[], Any] | None = None,
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
        self.size = None if opener else offset + self.n_rows * self.row_bytes
        self._check_size()

    def _check_size(self) -> None:
        """Refuse a file that is not as long as it should be."""
        if self.size is None:
            return
        size = os.stat(self.name).st_size
        if size != self.size:
            what = "is cut short" if size < self.size else "goes on after its last row"
            raise ValueError(
                f"{self.name} {what}: {self.n_rows} rows of {self.row_bytes} bytes would end at byte {self.size}, but "
                f"it has {size}; it must be complete, and stay as it is while it is read."
            )

    def chunks(self) -> Iterator[NDArray[Any]]:
        return self._decoded() if self.opener else self._read_in_order()

    def _read_in_order(self) -> Iterator[NDArray[Any]]:
        assert self.n_rows is not None
        with RecordReader(self.name, self.offset, self.row_bytes) as records:
            for begin in range(0, self.n_rows, self.chunk_rows):
                self._check_size()
                yield self._rows(records.read(begin, min(begin + self.chunk_rows, self.n_rows)), begin)

    def _decoded(self) -> Iterator[NDArray[Any]]:
        assert self.n_rows is not None
        assert self.opener is not None
        with self._open(self.opener) as file:
            file.seek(self.offset)
            for begin in range(0, self.n_rows, self.chunk_rows):
                yield self._rows(self._read(file, min(self.chunk_rows, self.n_rows - begin), begin), begin)
            if self._read_into(file, memoryview(bytearray(1))):  # at the end it checks its sum, too
                raise ValueError(f"{self.name} goes on after its {self.n_rows} rows; it must end with the last.")

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        if self.opener:  # there is no way to a row but past all before it
            return super().take(index)
        self._check_size()
        with RecordReader(self.name, self.offset, self.row_bytes) as records:
            return self._rows(records.take(index), 0)

    def _read(self, file: Any, n: int, first: int) -> NDArray[np.uint8]:
        buffer = np.empty((n, self.row_bytes), np.uint8)
        view, done = buffer.data.cast("B"), 0
        while done < len(view):
            count = self._read_into(file, view[done:])
            if not count:
                raise ValueError(
                    f"{self.name} ends in row {first + done // self.row_bytes}, but should have {self.n_rows} rows; it "
                    "must be complete, and stay as it is while it is read."
                )
            done += count
        return buffer

    def _open(self, opener: Callable[[], Any]) -> Any:
        try:
            return opener()
        except (KeyError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.name} is damaged, or is cut short: {error}.") from None

    def _read_into(self, file: Any, view: memoryview) -> int:
        try:
            return int(file.readinto(view))
        except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{self.name} is damaged, or is cut short: {error}.") from None

    def _rows(self, records: NDArray[np.uint8], first: int) -> NDArray[Any]:
        """The numbers in some records, the first of which has this number."""
        return np.asarray(records[:, self.prefix :].view(self.stored), self.dtype)
