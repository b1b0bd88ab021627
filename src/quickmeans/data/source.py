"""The protocol of all sources of rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 16 << 20  # of a chunk


class RowSource(ABC):
    """Rows that can be read in order, again and again, some at a time.

    Attributes
    ----------
    name : str
        What error messages call it.
    n_rows : int or None
        None if that is not known before all rows have been read.
    n_columns : int
    dtype : numpy.dtype
        Of every chunk: a real number of at most eight bytes, in the byte order of the machine.
    columns : list of str or None
        Their names, if they have names.
    paths : sequence of str
        The local files that the rows are in, if they are in files.
    """

    name: str
    n_rows: int | None
    n_columns: int
    dtype: np.dtype[Any]
    columns: list[str] | None = None
    paths: Sequence[str] = ()

    @abstractmethod
    def chunks(self) -> Iterator[NDArray[Any]]:
        """All rows in order, as arrays of n_columns columns; each call begins anew."""

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """The rows with these numbers, which must ascend. Unless a kind of source knows better, by reading all."""
        out, first, found = np.empty((len(index), self.n_columns), self.dtype), 0, 0
        for chunk in self.chunks():
            end = int(np.searchsorted(index, first + len(chunk)))
            out[found:end] = chunk[index[found:end] - first]
            first, found = first + len(chunk), end
            if found == len(index):
                return out
        raise ValueError(f"{self.name} has only {first} rows, but row {index[found]} was asked for.")

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """n different rows drawn at random, in order; all of them if there are no more."""
        n_rows = self.n_rows if self.n_rows is not None else sum(map(len, self.chunks()))
        return self.take(np.sort(rng.choice(n_rows, min(n, n_rows), replace=False)))

    def locate(self, row: int) -> str:
        """What to call a row in an error message."""
        return f"row {row} of {self.name}"

    @property
    def chunk_rows(self) -> int:
        """How many rows make a chunk, if the source is free to choose."""
        return max(1, CHUNK_BYTES // (self.n_columns * self.dtype.itemsize))


def check_rows_dtype(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """The type that chunks have: the given one in the machine's byte order."""
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        raise TypeError(f"{name} holds {dtype}; rows must be real numbers of at most eight bytes.")
    return dtype.newbyteorder("=")
