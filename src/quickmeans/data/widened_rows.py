"""Rows of bfloat16, a type of ml_dtypes, which stay as they are."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory_rows import ArrayRows, MemoryRows
from quickmeans.data.scaled import divided
from quickmeans.kmeans.blocks import block_rows, slices
from quickmeans.kmeans.rows import Index, Rows, Weights


def is_bfloat16(X: Any) -> bool:
    """Whether X is a 2-D array of bfloat16 with rows and columns."""
    return isinstance(X, np.ndarray) and X.dtype.name == "bfloat16" and X.ndim == 2 and X.size > 0


class WidenedRows(MemoryRows):
    """The rows of an array of bfloat16; blocks of them are converted to float32, which holds them exactly."""

    def __init__(self, X: NDArray[Any], weights: Weights = None) -> None:
        super().__init__(X, weights)
        self.name, self.n_columns, self.columns = "X", int(X.shape[1]), None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        for place in self.slices(self.shape[0]):
            yield place, self.take(place)

    def take(self, index: Index | slice) -> NDArray[Any]:
        return np.asarray(self.X[index].astype(np.float32))

    def slices(self, size: int) -> list[slice]:
        return slices(self.shape[0], min(size, block_rows(self.shape[1])))

    def subset(self, index: Index) -> Rows:
        return ArrayRows(self.take(index), None if self.weights is None else self.weights[index])

    def scaled(self, scale: NDArray[np.float64]) -> Rows:
        return ArrayRows(divided(self.X.astype(np.float32), scale), self.weights)

    def project(self, basis: NDArray[Any], n_threads: int, most_bytes: int) -> NDArray[Any] | None:
        return None
