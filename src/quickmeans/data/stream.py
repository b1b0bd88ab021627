"""Rows of a source as clustering wants them: read ahead, checked, and the same in every pass."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.collector import RowCollector
from quickmeans.data.memory_rows import LOADED_BYTES, ArrayRows
from quickmeans.data.prefetch import prefetch
from quickmeans.data.scaled import ScaledRows
from quickmeans.data.source import RowSource
from quickmeans.kmeans.chunk_pass import ChunkPass
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.rows import Batch, Index, Points, RowFunction, Rows, Weights, each_block, joined, local_points
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import sampled_rows, start_from_stream
from quickmeans.threads import resolve_threads

_KEPT_BYTES = 1 << 28  # that the rows of the samples may take, beside the copies that a run makes of them


class StreamRows(Rows):
    """The rows of a source. It is refused if its chunks are not all of one kind, or differ from pass to pass."""

    def __init__(self, source: RowSource, weights: Weights = None) -> None:
        self.source, self._weights, self._n_rows = source, weights, source.n_rows
        self._files = self._file_marks()
        self._forget()

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns; rows are counted by a pass if the source does not know their number."""
        if self._n_rows is None:
            for _ in self.blocks():
                pass
        assert self._n_rows is not None
        return self._n_rows, self.source.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def weights(self) -> Weights:
        return self._weights

    @property
    def in_memory(self) -> bool:
        return False

    def fits_in_memory(self) -> bool:
        return 4 * self.shape[0] * self.shape[1] <= LOADED_BYTES

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
        if self._file_marks() != self._files:
            raise ValueError(f"{self.source.name} was written to meanwhile; it must stay as it is while it is read.")

    def _file_marks(self) -> list[tuple[int, int, int]]:
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

    @property
    def samples_first(self) -> bool:
        return True

    @property
    def keeps_labels(self) -> bool:
        return True

    def take(self, index: Index) -> NDArray[Any]:
        places = np.searchsorted(self._kept_index, index)
        if len(self._kept_index) and (self._kept_index[np.minimum(places, len(self._kept_index) - 1)] == index).all():
            return self._kept_rows[places]
        if len(index) < 2 or (index[1:] >= index[:-1]).all():
            return self.source.take(index)
        order = np.argsort(index, kind="stable")
        out = np.empty((len(index), self.source.n_columns), self.dtype)
        out[order] = self.source.take(index[order])
        return out

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return self.take(rng.choice(self.shape[0], min(n, self.shape[0]), replace=False))

    def subset(self, index: Index) -> Rows:
        return ArrayRows(self.take(index), None if self.weights is None else self.weights[index])

    def whole(self) -> Any:
        raise TypeError("A callable as init needs rows in memory; for rows that are not, give an array.")

    def scaled(self, scale: NDArray[np.float64]) -> Rows:
        return StreamRows(ScaledRows(self.source, scale), self.weights)

    def threads(self, n_threads: int | None) -> int:
        return resolve_threads(n_threads)

    def points(self, settings: Settings, seeds: Sequence[int]) -> Points:
        """The points. The pass for the moments also keeps the rows that the first run samples, if they are known."""
        rows: Rows = self
        if len(seeds) and self._n_rows is not None:
            wanted = sampled_rows(self.shape, self.weights, settings, int(seeds[0]))
            if len(wanted) * self.source.n_columns * self.dtype.itemsize <= _KEPT_BYTES:
                rows = _Collecting(self, wanted)
        points = local_points(rows, self.threads(settings.n_threads), spherical=settings.spherical)
        return replace(points, rows=self)

    def passes(self, points: Points, n_clusters: int, *, stateless: bool) -> Pass:
        return ChunkPass(points, n_clusters, keep=not stateless)

    def start(self, points: Points, context: Context) -> Start:
        start = start_from_stream(points, context)
        self._forget()  # all samples have been taken
        return start

    def _forget(self) -> None:
        self._kept_index: Index = np.empty(0, np.int64)
        self._kept_rows: NDArray[Any] = np.empty((0, self.source.n_columns), self.source.dtype)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """All rows in their order in batches of the given size, whatever the chunks."""
        waiting: list[NDArray[Any]] = []
        first = n_waiting = 0
        for _, rows in self.blocks():
            waiting.append(rows)
            n_waiting += len(rows)
            if n_waiting < size:
                continue
            together = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            whole = n_waiting // size * size
            for begin in range(0, whole, size):
                yield self._batch(first + begin, together[begin : begin + size])
            first, waiting, n_waiting = first + whole, [together[whole:].copy()], n_waiting - whole
        if n_waiting:
            yield self._batch(first, np.concatenate(waiting))

    def _batch(self, first: int, rows: NDArray[Any]) -> Batch:
        place = slice(first, first + len(rows))
        return Batch(place, rows, None if self.weights is None else self.weights[place])

    def project(self, basis: NDArray[Any], n_threads: int, most_bytes: int) -> NDArray[Any] | None:
        return None

    def map(self, function: RowFunction, dtype: Any, width: int | None = None) -> Any:
        return joined(each_block(self, function))

    def locate(self, row: int) -> str:
        return self.source.locate(row)

    def keep(self, index: Index, rows: NDArray[Any]) -> None:
        """Hold these rows, so that `take` need not read them again."""
        self._kept_index, self._kept_rows = index, rows


class _Collecting(StreamRows):
    """The same stream; its first pass keeps the rows of an ascending index."""

    def __init__(self, stream: StreamRows, index: Index) -> None:
        self.__dict__.update(stream.__dict__)
        self._stream, self._wanted = stream, index

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        collector = RowCollector(self._wanted, self.source.n_columns, self.dtype, self.source.name)
        for place, block in super().blocks():
            collector.see(place.start, block)
            yield place, block
        self._stream.keep(self._wanted, collector.rows())
