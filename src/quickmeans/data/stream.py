"""A source as the clustering wants it: read ahead, checked, and the same in every pass."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.prefetch import prefetch
from quickmeans.data.source import RowSource
from quickmeans.kmeans.rows import Stream


class SourceStream(Stream):
    """Refuses a source whose chunks are not all of one kind, or that is not the same twice."""

    def __init__(self, source: RowSource) -> None:
        self.source, self._n_rows = source, source.n_rows
        self._marks = self._marks_of_files()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows are counted, by a pass, if they have not been."""
        if self._n_rows is None:
            for _ in self.blocks():
                pass
        assert self._n_rows is not None
        return self._n_rows, self.source.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        begin = 0
        for i, chunk in enumerate(prefetch(self.source.chunks)):
            self._check_chunk(i, chunk)
            if len(chunk):
                yield slice(begin, begin + len(chunk)), chunk
            begin += len(chunk)
        if self._n_rows is None and begin:
            self._n_rows = begin
        if begin != self._n_rows:
            raise ValueError(
                f"{self.source.name} has given {begin} rows, but {self._n_rows or 'some'} were expected; it must be "
                "complete, stay as it is during a fit, and begin anew in every pass."
            )

        if self._marks_of_files() != self._marks:
            raise ValueError(f"{self.source.name} was written to meanwhile; it must stay as it is while it is read.")

    def _marks_of_files(self) -> list[tuple[int, int, int]]:
        """Which files they are, how long, and when they were last written to."""
        stats = map(os.stat, self.source.paths)
        return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]

    def _check_chunk(self, i: int, chunk: NDArray[Any]) -> None:
        source = self.source
        if chunk.shape[1] != source.n_columns and len(chunk):
            raise ValueError(
                f"Chunk {i} of {source.name} has {chunk.shape[1]} columns, but the first has {source.n_columns}; all "
                "must have as many."
            )
        if chunk.dtype != source.dtype and len(chunk):
            raise ValueError(
                f"Chunk {i} of {source.name} holds {chunk.dtype}, but the first {source.dtype}; they must be alike."
            )

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        order = np.argsort(index, kind="stable")
        out = np.empty((len(index), self.source.n_columns), self.dtype)
        out[order] = self.source.take(index[order])
        return out

    def locate(self, row: int) -> str:
        return self.source.locate(row)
