"""Rows as the lists keep them: float32, row-major, and of a size that can be compared."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of a row. Squared distances, at most 2 |x|^2 + 2 |y|^2, are then at most half of the largest float32.
LARGEST_SQUARE = float(np.finfo(np.float32).max) / 8


def as_float32(X: NDArray[Any], name: str, first: int = 0) -> NDArray[np.float32]:
    """The rows in float32 and row-major order; NaN, infinity and rows whose squares would overflow are refused.

    `first` is the number of the first row, for messages.
    """
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(X, np.float32)
    fine = np.einsum("id,id->i", rows, rows) < LARGEST_SQUARE  # False for NaN
    if not fine.all():
        row = first + int(np.argmin(fine))
        raise ValueError(
            f"Input {name} contains NaN, infinity or a value too large for the squares of float32 in row {row}."
        )
    return rows


def unit_rows(rows: NDArray[np.float32], name: str, first: int = 0) -> NDArray[np.float32]:
    """The rows divided by their lengths; a row of zeros is refused."""
    lengths = np.sqrt(np.einsum("id,id->i", rows, rows, dtype=np.float64))
    if not lengths.all():
        raise ValueError(f"Row {first + np.argmin(lengths)} of {name} is zero, and has no cosine with any other.")
    return np.asarray(rows / lengths[:, None], np.float32)


def with_directions(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, with a unit vector in place of zero rows, which have no nearest direction.

    Inner products with a zero row are zero whichever list it is in.
    """
    zero = ~rows.any(axis=1)
    if zero.any():
        rows = rows.copy()
        rows[zero, 0] = 1
    return rows
