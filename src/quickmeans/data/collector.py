"""Rows gathered by their numbers while all rows are read in order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class RowCollector:
    """Copies the wanted rows out of the chunks that it is shown.

    A pass over a source shows it every chunk, so that several samples and the moments cost one read.

    Parameters
    ----------
    index : array of int64
        Numbers of the wanted rows, in ascending order; a row may be wanted several times.
    n_columns : int
    dtype : numpy.dtype
        The type of the rows.
    name : str, default="X"
        What error messages call the source.
    """

    def __init__(self, index: NDArray[np.int64], n_columns: int, dtype: np.dtype[Any], name: str = "X") -> None:
        if len(index) and (index[0] < 0 or (np.diff(index) < 0).any()):
            raise ValueError("The index of wanted rows must ascend and must not be negative.")
        self._index, self._name = index, name
        self._rows = np.empty((len(index), n_columns), dtype)
        self._missing = np.ones(len(index), bool)

    def see(self, first: int, chunk: NDArray[Any]) -> None:
        """Copy the wanted rows of a chunk whose first row has this number."""
        part = self._between(first, first + len(chunk))
        self._rows[part] = chunk[self._index[part] - first]
        self._missing[part] = False

    def wants(self, begin: int, end: int) -> bool:
        """Whether any wanted row is one of these."""
        part = self._between(begin, end)
        return bool(part.start < part.stop)

    @property
    def is_complete(self) -> bool:
        """Whether all wanted rows have been seen."""
        return not self._missing.any()

    def rows(self) -> NDArray[Any]:
        """The wanted rows, in the order of the index."""
        if not self.is_complete:
            row = self._index[np.argmax(self._missing)]
            raise ValueError(f"{self._name} has no row {row}, which was asked for; it ended before that row.")
        return self._rows

    def _between(self, begin: int, end: int) -> slice:
        return slice(*np.searchsorted(self._index, (begin, end)).tolist())
