"""Blocks of rows: as many as fit a small buffer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Entries of a block that is made dense or float64: 8 MB in float64, which a second-level cache and its neighbours hold.
_BLOCK_ENTRIES = 1 << 20


def block_rows(n_columns: int) -> int:
    """How many rows make a block."""
    return int(np.clip(_BLOCK_ENTRIES // n_columns, 16, 4096))


def slices(n: int, size: int) -> list[slice]:
    """0 to n in slices of this size, the last one shorter."""
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def first_not_finite(rows: NDArray[Any]) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity, or None."""
    step = block_rows(rows.shape[1])
    for begin in range(0, len(rows), step):
        bad = np.argwhere(~np.isfinite(rows[begin : begin + step]))
        if len(bad):
            return begin + int(bad[0, 0]), int(bad[0, 1])
    return None
