"""Rows of an array in memory, or of a memory map, which is read in place."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource, check_rows_dtype


class ArraySource(RowSource):
    """A source whose chunks are views of an array."""

    def __init__(self, array: NDArray[Any], name: str = "the array") -> None:
        if array.ndim != 2:
            raise ValueError(
                f"{name} has shape {array.shape}; rows must be a 2-D array, as X.reshape(len(X), -1) makes it."
            )
        self.array, self.name = array, name
        self.n_rows, self.n_columns = array.shape
        self.dtype = check_rows_dtype(array.dtype, name)

    def chunks(self) -> Iterator[NDArray[Any]]:
        for begin in range(0, len(self.array), self.chunk_rows):
            yield self._in_native_order(self.array[begin : begin + self.chunk_rows])

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return self._in_native_order(self.array[index])

    def _in_native_order(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(rows, self.dtype)
