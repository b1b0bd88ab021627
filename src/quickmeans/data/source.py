"""What every source of rows can do."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.collector import RowCollector

# A pass over an .npy file of 400 MB took equal times with 4 and 16 MiB, and a fifth more with 64 MiB.
CHUNK_BYTES = 16 << 20


class RowSource(ABC):
    """Rows that can be read in order, chunk by chunk, any number of times.

    A subclass sets the attributes below and defines :meth:`chunks`. It may define :meth:`take` where there is a better
    way than reading all rows.

    Attributes
    ----------
    name : str
        What error messages call the source.
    n_rows : int or None
        The number of rows; None if it is not known before all rows have been read.
    n_columns : int
        The number of columns.
    dtype : numpy.dtype
        The type of every chunk: real numbers of at most eight bytes in the byte order of the machine.
    columns : list of str or None, default=None
        The names of the columns, if they have names.
    table : sequence of str or None, default=None
        The names of all columns of the table that the rows come from, if they come from one.
    paths : sequence of str, default=()
        The local files that hold the rows, if there are any. A fit refuses files that change while it reads them.
    """

    name: str
    n_rows: int | None
    n_columns: int
    dtype: np.dtype[Any]
    columns: list[str] | None = None
    table: Sequence[str] | None = None
    paths: Sequence[str] = ()

    @abstractmethod
    def chunks(self) -> Iterator[NDArray[Any]]:
        """Read all rows in order.

        Yields
        ------
        chunk : array of shape (any number, n_columns)
            The next rows. Another thread reads it while the next chunk is made, so it must not be changed any more.
        """

    def tables(self, keep: Sequence[str]) -> Iterator[tuple[NDArray[Any], Any]]:
        """Read all rows in order, with other columns of the table that they come from.

        Parameters
        ----------
        keep : list of str
            Names of columns, or patterns.

        Yields
        ------
        chunk : array
            As from :meth:`chunks`.
        table : pyarrow.Table or pyarrow.RecordBatch
            The other columns of the same rows.
        """
        if keep:
            raise ValueError(f"{self.name} is no table, so it has no columns {', '.join(map(repr, keep))} to keep.")
        for chunk in self.chunks():
            yield chunk, None

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        """Read one column of the table that the rows come from, part by part.

        Parameters
        ----------
        name : str
            One of :attr:`table`.

        Yields
        ------
        values : array of shape (any number,)
            Those of the next rows.
        """
        for _, table in self.tables([name]):
            yield table[name].to_numpy(zero_copy_only=False)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """Read the rows with the given numbers.

        This implementation reads the chunks in order until it has seen the last of these rows.

        Parameters
        ----------
        index : array of int64
            Row numbers in ascending order; a number may be repeated.

        Returns
        -------
        rows : array of shape (len(index), n_columns)
        """
        collector, first = self.collector(index), 0
        for chunk in self.chunks():
            collector.see(first, chunk)
            first += len(chunk)
            if collector.is_complete:
                break
        return collector.rows()

    def collector(self, index: NDArray[np.int64]) -> RowCollector:
        """Something that a pass over the chunks can show them to, and that keeps the rows with the given numbers.

        Parameters
        ----------
        index : array of int64
            Row numbers in ascending order; a number may be repeated.

        Returns
        -------
        collector : RowCollector
            ``collector.see(first, chunk)`` takes a chunk, ``collector.rows()`` gives the rows.
        """
        return RowCollector(index, self.n_columns, self.dtype, self.name)

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw n different rows at random.

        Parameters
        ----------
        n : int
            How many rows; all of them if the source has no more.
        rng : numpy.random.Generator

        Returns
        -------
        rows : array of shape (min(n, n_rows), n_columns)
            The drawn rows in their order.
        """
        n_rows = self.n_rows if self.n_rows is not None else sum(map(len, self.chunks()))
        return self.take(np.sort(rng.choice(n_rows, min(n, n_rows), replace=False)))

    def locate(self, row: int) -> str:
        """What error messages call the row with this number."""
        return f"row {row} of {self.name}"

    @property
    def chunk_rows(self) -> int:
        """How many rows a chunk should have, if the source is free to choose."""
        return max(1, CHUNK_BYTES // (self.n_columns * self.dtype.itemsize))


def check_rows_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """The type that chunks have: the given type in the byte order of the machine."""
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise ValueError(f"{name} holds {dtype}; rows must be real numbers of at most eight bytes.")
    return dtype.newbyteorder("=")
