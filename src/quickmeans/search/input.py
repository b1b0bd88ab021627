"""The rows that an index is built of: an array, or a source that is read block by block."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource
from quickmeans.data.stream import StreamRows
from quickmeans.search.metrics import Metric
from quickmeans.search.rows import as_float32, with_directions

Prepare = Callable[[NDArray[Any], int], NDArray[np.float32]]  # of rows, the first of which has this number


class Input(Protocol):
    """Rows in float32, prepared for a metric."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """All rows, some at a time, with their places."""

    def take(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """The rows with these numbers, which ascend."""

    def for_clusters(self) -> Any:
        """The rows as a QKMeans takes them, with a direction for rows of zeros if it needs one."""

    def some_for_clusters(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """The same for the rows with these numbers, which ascend."""


class ArrayInput:
    """The rows of an array that is prepared already; one block."""

    def __init__(self, rows: NDArray[np.float32], metric: Metric) -> None:
        self.rows, self.metric = rows, metric

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.rows.shape[1]

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        yield slice(0, len(self.rows)), self.rows

    def take(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.rows[index]

    def for_clusters(self) -> Any:
        return _with_directions_if(self.metric, self.rows)

    def some_for_clusters(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        return _with_directions_if(self.metric, self.take(index))


class SourceInput:
    """The rows of a source, which are never all in memory."""

    def __init__(self, source: RowSource, metric: Metric) -> None:
        self.source, self.metric = source, metric
        self.rows = StreamRows(_Prepared(source, self._prepared))

    def _prepared(self, rows: NDArray[Any], first: int) -> NDArray[np.float32]:
        return self.metric.prepare(as_float32(rows, self.source.name, first), self.source.name, first)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        return self.rows.blocks()

    def take(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.rows.take(index)

    def for_clusters(self) -> Any:
        if not self.metric.similarity:
            return self.rows.source
        return _Prepared(self.source, lambda rows, first: with_directions(self._prepared(rows, first)))

    def some_for_clusters(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        return _with_directions_if(self.metric, self.take(index))


def _with_directions_if(metric: Metric, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return with_directions(rows) if metric.similarity else rows


class _Prepared(RowSource):
    """A source with prepared rows, which have no names of columns."""

    dtype = np.dtype(np.float32)

    def __init__(self, source: RowSource, prepare: Prepare) -> None:
        self.source, self.prepare = source, prepare
        self.name, self.n_rows, self.n_columns, self.paths = source.name, source.n_rows, source.n_columns, source.paths

    def chunks(self) -> Iterator[NDArray[Any]]:
        first = 0
        for chunk in self.source.chunks():
            yield self.prepare(chunk, first)
            first += len(chunk)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return self.prepare(self.source.take(index), 0)

    def locate(self, row: int) -> str:
        return self.source.locate(row)
