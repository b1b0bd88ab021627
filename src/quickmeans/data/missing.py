"""Rows with missing values: left out, or filled with the means of their columns."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.callers import warn
from quickmeans.data.reading import Note
from quickmeans.data.source import RowSource


def without_missing(rows: RowSource, how: str, fill: NDArray[np.float64] | None = None) -> RowSource:
    """The rows of a source whose missing values are NaN: those without any ("drop"), or all of them, filled ("mean").

    `fill` has what missing values become; by default the means of the columns, which a pass over all rows computes.
    """
    if how == "error" or rows.dtype.kind != "f":
        return rows
    return CompleteRows(rows) if how == "drop" else FilledRows(rows, fill)


class CompleteRows(RowSource):
    """The rows of another source that have no missing values."""

    n_rows = None

    def __init__(self, rows: RowSource) -> None:
        self.rows, self._said = rows, False
        self.name, self.n_columns, self.dtype = rows.name, rows.n_columns, rows.dtype
        self.columns, self.table, self.paths = rows.columns, rows.table, rows.paths

    def chunks(self) -> Iterator[NDArray[Any]]:
        for (chunk, _), complete in self._paired((chunk, None) for chunk in self.rows.chunks()):
            yield chunk[complete]

    def tables(self, keep: Sequence[str]) -> Iterator[tuple[NDArray[Any], Any]]:
        for (chunk, table), complete in self._paired(self.rows.tables(keep)):
            yield chunk[complete], None if table is None else table.filter(complete)

    def _paired(
        self, pairs: Iterator[tuple[NDArray[Any], Any]]
    ) -> Iterator[tuple[tuple[NDArray[Any], Any], NDArray[np.bool_]]]:
        """Every chunk with the rows that are complete; at the end it is said how many are not, once."""
        n_rows = n_complete = 0
        for pair in pairs:
            complete = ~np.isnan(pair[0]).any(axis=1)
            n_rows, n_complete = n_rows + len(complete), n_complete + int(complete.sum())
            yield pair, complete
        if not n_complete:
            raise ValueError(f"All rows of {self.name} have missing values, so that none would be left (--missing).")
        if n_complete < n_rows and not self._said:
            self._said = True
            left_out = n_rows - n_complete
            warn(f"{self.name}: {left_out} of {n_rows} rows have missing values and are left out.", Note)

    def locate(self, row: int) -> str:
        return f"row {row} of {self.name}, not counting those with missing values"


class FilledRows(RowSource):
    """The rows of another source, with numbers in the place of missing values."""

    def __init__(self, rows: RowSource, fill: NDArray[np.float64] | None = None) -> None:
        self.rows = rows
        self.name, self.n_rows, self.n_columns, self.dtype = rows.name, rows.n_rows, rows.n_columns, rows.dtype
        self.columns, self.table, self.paths = rows.columns, rows.table, rows.paths
        self.fill = self._means() if fill is None else fill

    def _means(self) -> NDArray[np.float64]:
        totals, counts = np.zeros(self.n_columns), np.zeros(self.n_columns, np.int64)
        for chunk in self.rows.chunks():
            missing = np.isnan(chunk)
            totals += np.where(missing, 0, chunk).sum(axis=0, dtype=np.float64)
            counts += len(chunk) - missing.sum(axis=0)
        if not counts.all():
            j = int(np.argmin(counts))
            column = j if self.columns is None else repr(self.columns[j])
            raise ValueError(f"Column {column} of {self.name} holds no values, so it has no mean; leave it out.")
        means: NDArray[np.float64] = totals / counts
        return means

    def chunks(self) -> Iterator[NDArray[Any]]:
        return map(self._filled, self.rows.chunks())

    def tables(self, keep: Sequence[str]) -> Iterator[tuple[NDArray[Any], Any]]:
        for chunk, table in self.rows.tables(keep):
            yield self._filled(chunk), table

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        return self.rows.column(name)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return self._filled(self.rows.take(index))

    def _filled(self, chunk: NDArray[Any]) -> NDArray[Any]:
        missing = np.isnan(chunk)
        return np.where(missing, self.fill, chunk).astype(self.dtype, copy=False) if missing.any() else chunk

    def locate(self, row: int) -> str:
        return self.rows.locate(row)
