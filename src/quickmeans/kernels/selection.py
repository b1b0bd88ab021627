"""The largest or smallest entries."""

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, Floats, Ints, Mask, floats, packed


def mark_largest(M: Floats, per_row: int, per_column: int) -> Mask:
    """Where the entries of largest absolute value of every row and of every column are; ties to the lower index."""
    kept = np.empty(M.shape, np.bool_)
    _native.mark_largest(floats(M), per_row, per_column, kept)
    return kept


def match_largest(M: Floats, per_row: int, per_column: int) -> Mask:
    """Entries chosen greedily by absolute value, at most ``per_row`` of a row and ``per_column`` of a column."""
    kept = np.empty(M.shape, np.bool_)
    _native.match_largest(floats(M), per_row, per_column, kept)
    return kept


def smallest(M: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], Ints]:
    """The k smallest numbers of every row in ascending order, ties to the lower column, and their columns."""
    values, columns = np.empty((len(M), k), np.float32), np.empty((len(M), k), np.int64)
    _native.smallest(packed(M, FLOAT32), values, columns)
    return values, columns
