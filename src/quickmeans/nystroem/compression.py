r"""Landmarks with fewer multiply-adds: products of sparse matrices near given points.

Two kinds of product are tried. Sparse alternating least squares finds what points have in common; where they have
nothing in common (independent directions), the largest entries of every row do better. What counts is not the distance
from the points but the error of the kernel matrix of a sample.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.transform import SparseProduct, sparse_als
from quickmeans.transform.direct import largest_per_row

_FIRST, _HIGHER, _LOWER = 10.0, (20.0, 40.0), (5.0, 2.5)  # compressions, in the order in which they are tried
_TOLERANCE = 0.02  # by which the error may exceed that of the points themselves
_SMALL = 4096  # entries: no more than these are left as they are

Error = Callable[[SparseProduct], float]
Array = NDArray[np.float64]


def compressed(
    points: Array, weights: Array, compression: float | str, error: Error, dtype: np.dtype[Any]
) -> SparseProduct:
    """A product with rows near the points (about their mean), by its error as landmarks.

    With "auto" the compression is the highest, in steps of two, for which the error is nearly that of the points.
    """
    whole = SparseProduct([points.astype(dtype)])
    if compression == 1:
        return whole
    if compression != "auto":
        return min(_candidates(points, weights, float(compression), dtype), key=error, default=whole)
    if points.size <= _SMALL:
        return whole
    limit = (1 + _TOLERANCE) * error(whole)

    def good(rate: float) -> SparseProduct | None:
        return next((product for product in _candidates(points, weights, rate, dtype) if error(product) <= limit), None)

    best = good(_FIRST)
    if best is None:
        return next((product for rate in _LOWER if (product := good(rate)) is not None), whole)
    for rate in _HIGHER:
        found = good(rate)
        if found is None:
            break
        best = found
    return best


def _candidates(points: Array, weights: Array, compression: float, dtype: np.dtype[Any]) -> Iterator[SparseProduct]:
    """The cheap one first."""
    budget = int(points.size / compression)
    if budget <= len(points):  # a row needs an entry, and a basis one more
        return
    entries = largest_per_row(points, budget)
    if entries is not None:
        yield SparseProduct([entries[0].astype(dtype)])
    yield sparse_als(points.astype(dtype), compression, weights=weights).product
