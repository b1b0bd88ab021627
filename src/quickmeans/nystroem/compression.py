"""Landmarks with fewer multiply-adds: products of sparse matrices near given points.

Two kinds of product are tried. Sparse alternating least squares finds directions that points share; where they share
none, it is better to keep the largest entries of every point. The product with the smaller error of the kernel matrix
is taken, and not the one that is nearer to the points. Then its values are refined on that error.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.transform import SparseProduct, sparse_als
from quickmeans.transform.direct import largest_per_row

_FIRST, _HIGHER, _LOWER = 10.0, (20.0, 40.0), (5.0, 2.5)  # compressions, in the order in which they are tried
_LIMIT = 1.025  # of the error, over that of the points themselves
_HOPELESS = 1.25  # of the error before it is refined: that makes it a fifth smaller at most, where it is still large
_SMALL = 4096  # entries of points that are left as they are: a dense product takes 0.4 us (benchmarks/thresholds.py)

Array = NDArray[np.float64]


class Judge(Protocol):
    """What landmarks are chosen and refined by, such as :class:`.heldout.HeldOut`."""

    def excess(self, product: SparseProduct) -> float:
        """The error with the rows of the product as landmarks over that with the points."""

    def refined(self, product: SparseProduct) -> SparseProduct:
        """The product with other values, which mostly has a smaller error."""


def compressed(
    points: Array, weights: Array, compression: float | str, judge: Judge, dtype: np.dtype[Any]
) -> SparseProduct:
    """A product whose rows are near the centered points, chosen by its error as landmarks and refined on it.

    With "auto" it is the product of the highest compression whose error is nearly that of the points. Refinement
    decides between the first compression that is tried, lower ones and none; a higher one must do without, so that its
    gain goes to the error.
    """
    whole = SparseProduct([points.astype(dtype)])
    if compression == "auto":
        return whole if points.size <= _SMALL else _automatic(points, weights, judge, dtype, whole)
    candidates = list(_candidates(points, weights, float(compression), dtype))
    return _better(min(candidates, key=judge.excess), judge)[0] if candidates else whole


def _automatic(
    points: Array, weights: Array, judge: Judge, dtype: np.dtype[Any], whole: SparseProduct
) -> SparseProduct:
    best: SparseProduct | None = None
    for rate in (_FIRST, *_HIGHER):
        product = _accurate(_candidates(points, weights, rate, dtype), judge)
        if product is None:
            break
        best = product
    if best is not None:
        return _better(best, judge)[0]
    for rate in (_FIRST, *_LOWER):
        product = min(_candidates(points, weights, rate, dtype), key=judge.excess, default=whole)
        if judge.excess(product) <= _HOPELESS:
            better, excess = _better(product, judge)
            if excess <= _LIMIT:
                return better
    return whole


def _accurate(candidates: Iterator[SparseProduct], judge: Judge) -> SparseProduct | None:
    return next((product for product in candidates if judge.excess(product) <= _LIMIT), None)


def _better(product: SparseProduct, judge: Judge) -> tuple[SparseProduct, float]:
    """The product or its refinement, and the error of the better one."""
    pairs = [(each, judge.excess(each)) for each in (product, judge.refined(product))]
    return min(pairs, key=lambda pair: pair[1])


def _candidates(points: Array, weights: Array, compression: float, dtype: np.dtype[Any]) -> Iterator[SparseProduct]:
    """Products with this compression; the one that is quicker to find first."""
    budget = int(points.size / compression)
    if budget <= len(points):  # every row needs an entry, and a basis at least one more
        return
    entries = largest_per_row(points, budget)
    if entries is not None:
        yield SparseProduct([entries[0].astype(dtype)])
    yield sparse_als(points.astype(dtype), compression, weights=weights).product
