"""A source that reports how many rows have been read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource


class CountedRows(RowSource):
    """The rows of another source; ``report(n)`` is called for each chunk of n rows when the next chunk is asked for."""

    def __init__(self, rows: RowSource, report: Callable[[int], None]) -> None:
        self.rows, self.report = rows, report
        self.name, self.n_rows, self.n_columns = rows.name, rows.n_rows, rows.n_columns
        self.dtype, self.columns, self.paths = rows.dtype, rows.columns, rows.paths
        self.table = rows.table

    def chunks(self) -> Iterator[NDArray[Any]]:
        for chunk in self.rows.chunks():
            yield chunk
            self.report(len(chunk))

    def tables(self, keep: Sequence[str]) -> Iterator[tuple[NDArray[Any], Any]]:
        for chunk, table in self.rows.tables(keep):
            yield chunk, table
            self.report(len(chunk))

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        return self.rows.column(name)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return self.rows.take(index)

    def locate(self, row: int) -> str:
        return self.rows.locate(row)
