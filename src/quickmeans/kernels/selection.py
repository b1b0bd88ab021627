"""The largest entries."""

import numpy as np

from quickmeans import _native
from quickmeans.kernels.arrays import Floats, Mask, floats


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
