"""Blocks of rows: as many as fit a small buffer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Entries of a block that is made dense or float64: 8 MB in float64, which a second-level cache and its neighbours hold.
_BLOCK_ENTRIES = 1 << 20


def block_rows(n_columns: int) -> int:
    """How many rows make a block."""
    return min(max(_BLOCK_ENTRIES // n_columns, 16), 4096)


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


def distinct_rows(block: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each different row stands first, in an order that depends on the rows alone, and which one each row is.

    Rows are compared by their bytes in float64, which is ten times faster than by their numbers.
    """
    rows = np.ascontiguousarray(block.astype(np.float64) + 0.0, ">f8")  # -0 becomes 0; leading digits decide first
    names = rows.view(np.dtype((np.void, 8 * rows.shape[1]))).ravel()
    order = np.argsort(names, kind="stable")
    is_new = np.ones(len(names), np.bool_)
    is_new[1:] = names[order[1:]] != names[order[:-1]]
    inverse = np.empty(len(names), np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    return order[is_new], inverse
