"""The rows that landmarks are chosen for, and features computed of: in memory, or read block by block."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory_rows import MemoryRows
from quickmeans.data.rows import as_rows
from quickmeans.data.source import RowSource
from quickmeans.data.stream import StreamRows
from quickmeans.kmeans.rows import Rows, refuse_not_finite


class Input(Protocol):
    """Rows, wherever they are."""

    @property
    def rows(self) -> Rows:
        """The rows, for moments and samples."""

    @property
    def given(self) -> Any:
        """The rows as a clustering takes them."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: of the arithmetic on the rows."""

    def parts(self) -> Iterator[MemoryRows]:
        """All rows in memory, some at a time."""

    def whole(self) -> "Input":
        """The same with all rows in memory."""


class MemoryInput:
    """An array or a sparse matrix."""

    def __init__(self, X: Any) -> None:
        self.rows, self.given = as_rows(X), X
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if self.rows.dtype == np.float32 else np.float64)

    def parts(self) -> Iterator[MemoryRows]:
        yield self.rows

    def whole(self) -> Input:
        return self


class SourceInput:
    """A source of rows; NaN and infinity are refused when they are read."""

    def __init__(self, source: RowSource) -> None:
        self.rows, self.given = StreamRows(source), source
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if source.dtype == np.float32 else np.float64)

    def parts(self) -> Iterator[MemoryRows]:
        return map(as_rows, self._blocks())

    def whole(self) -> Input:
        return MemoryInput(np.concatenate(list(self._blocks())))

    def _blocks(self) -> Iterator[NDArray[Any]]:
        for place, block in self.rows.blocks():
            refuse_not_finite(self.rows.locate, place.start, block)
            yield block.astype(self.dtype)
