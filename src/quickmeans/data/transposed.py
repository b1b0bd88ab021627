"""Columns into rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS, _COLUMNS = 4096, 8  # MEASURE


def transpose(columns: Sequence[NDArray[Any]], out: NDArray[Any]) -> NDArray[Any]:
    """Write the given columns into `out`, and return it."""
    for i in range(0, len(out), _ROWS):
        for j in range(0, len(columns), _COLUMNS):
            block = np.array([column[i : i + _ROWS] for column in columns[j : j + _COLUMNS]], out.dtype)
            out[i : i + _ROWS, j : j + _COLUMNS] = block.T
    return out
