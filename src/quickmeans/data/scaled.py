"""A source whose columns are divided by numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource


def divided(rows: NDArray[Any], scale: NDArray[np.float64]) -> NDArray[Any]:
    """The rows with every column divided by its scale, in float32 if they are, else in float64."""
    return np.asarray(rows / scale.astype(np.float32 if rows.dtype == np.float32 else np.float64))


class ScaledRows(RowSource):
    """The rows of another source, every column divided by its scale."""

    def __init__(self, rows: RowSource, scale: NDArray[np.float64]) -> None:
        self.rows, self.scale = rows, scale
        self.name, self.n_rows, self.n_columns = rows.name, rows.n_rows, rows.n_columns
        self.columns, self.paths = rows.columns, rows.paths
        self.dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)

    def chunks(self) -> Iterator[NDArray[Any]]:
        for chunk in self.rows.chunks():
            yield divided(chunk, self.scale)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return divided(self.rows.take(index), self.scale)

    def locate(self, row: int) -> str:
        return self.rows.locate(row)
