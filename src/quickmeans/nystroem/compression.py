"""Landmarks with fewer multiply-adds: products of sparse matrices near given points.

Two kinds of product are tried. Sparse alternating least squares finds directions that points share; where they share
none, it is better to keep the largest entries of every point. The product with the smaller error of the kernel matrix
of a sample is taken, and not the one that is nearer to the points.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.transform import SparseProduct, sparse_als
from quickmeans.transform.direct import largest_per_row

_FIRST, _HIGHER, _LOWER = 10.0, (20.0, 40.0), (5.0, 2.5)  # compressions, in the order in which they are tried
_TOLERANCE = 0.02  # the error may exceed that of the points themselves by this share
_SMALL = 4096  # entries of points that are left as they are: a dense product takes 0.4 us (benchmarks/thresholds.py)

Error = Callable[[SparseProduct], float]
Array = NDArray[np.float64]


def compressed(
    points: Array, weights: Array, compression: float | str, error: Error, dtype: np.dtype[Any]
) -> SparseProduct:
    """A product whose rows are near the centered points, chosen by its error as landmarks.

    With "auto" it is the product of the highest compression whose error is nearly that of the points.
    """
    whole = SparseProduct([points.astype(dtype)])
    if compression == 1:
        return whole
    if compression != "auto":
        return min(_candidates(points, weights, float(compression), dtype), key=error, default=whole)
    if points.size <= _SMALL:
        return whole
    limit = (1 + _TOLERANCE) * error(whole)

    def accurate(rate: float) -> SparseProduct | None:
        return next((product for product in _candidates(points, weights, rate, dtype) if error(product) <= limit), None)

    best = accurate(_FIRST)
    if best is None:
        return next((product for rate in _LOWER if (product := accurate(rate)) is not None), whole)
    for rate in _HIGHER:
        product = accurate(rate)
        if product is None:
            break
        best = product
    return best


def _candidates(points: Array, weights: Array, compression: float, dtype: np.dtype[Any]) -> Iterator[SparseProduct]:
    """Products with this compression; the one that is quicker to find first."""
    budget = int(points.size / compression)
    if budget <= len(points):  # every row needs an entry, and a basis at least one more
        return
    entries = largest_per_row(points, budget)
    if entries is not None:
        yield SparseProduct([entries[0].astype(dtype)])
    yield sparse_als(points.astype(dtype), compression, weights=weights).product
