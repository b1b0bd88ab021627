"""The nearest center of every row."""

from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, FLOAT64, INT32, Array, Ints, floats, ints, packed, readable
from quickmeans.kernels.product import Product
from quickmeans.threads import instruction_set

Assignment: TypeAlias = _native.Assignment32 | _native.Assignment64


def make_assignment(n_rows: int, dtype: DTypeLike) -> Assignment:
    """An :data:`Assignment` of this number of rows, all of label 0, in float32 or float64."""
    best, second, norms = (np.empty(n_rows, dtype) for _ in range(3))
    return bind_assignment(np.zeros(n_rows, np.int32), best, second, norms)


def bind_assignment(
    labels: NDArray[np.int32], best: Array, second: Array, norms: Array, *, norms_known: bool = False
) -> Assignment:
    """An :data:`Assignment` that is written into these contiguous arrays, of which the last three have one type.

    ``labels`` are the nearest centers; ``best`` their scores; ``second`` upper bounds of the scores of all other
    centers; ``norms`` the squared distances from the mean, which :meth:`Screen.assign` computes unless ``norms_known``.
    ``n_listed`` and ``n_settled`` grow with every call by the number of candidates and by that of exact scores.
    """
    make = _native.Assignment32 if best.dtype == FLOAT32 else _native.Assignment64
    return make(labels, best, second, norms, norms_known)


class Screen:
    """Centers c_k and a product with rows v_k near them, bound once for many calls.

    Parameters
    ----------
    product : Product or None
        None: the centers are compared themselves.
    centers : array of shape (K, D)
        Its type, float32 or float64, is that of the product and of all arithmetic. It must not be changed afterwards.
    mean : array of shape (D,)
        Norms of rows are taken about it.
    offset, center_offset : arrays of shape (K,)
        To be added to <x, v_k> and <x, c_k>, which makes them scores. Without a product the first is not used.
    slack : array of shape (K,)
        |c_k - v_k|. Without a product it is not used.
    margin : float, default=0.0
        The share of slack times distance from the mean up to which scores of the product may be wrong.
    shortlist : int, default=0
        The number of candidates per row; 0: all within the margin.
    """

    __slots__ = ("_native", "dtype", "n_centers")

    def __init__(
        self,
        product: Product | None,
        centers: Array,
        mean: Array,
        offset: Array | None,
        center_offset: Array,
        slack: Array | None,
        margin: float = 0.0,
        shortlist: int = 0,
    ) -> None:
        self.dtype, self.n_centers = (FLOAT32 if centers.dtype == FLOAT32 else FLOAT64), len(centers)
        if product is None or offset is None or slack is None:
            offset, slack = center_offset, np.zeros(len(center_offset))
        native = None if product is None else product.native
        arrays = packed(centers, self.dtype), floats(mean), floats(offset), floats(center_offset), floats(slack)
        bind = _native.Screen32.bind if self.dtype == FLOAT32 else _native.Screen64.bind
        self._native: _native.Screen32 | _native.Screen64 = bind(native, *arrays, margin, shortlist, instruction_set())

    def with_margin(self, margin: float, offset: Array | None = None, shortlist: int | None = None) -> "Screen":
        """The same screen with another margin and, if given, another offset of the product and shortlist."""
        other = object.__new__(Screen)
        other.dtype, other.n_centers = self.dtype, self.n_centers
        other._native = self._native.with_margin(margin, floats(offset), shortlist)
        return other

    @property
    def margin(self) -> float:
        """The margin."""
        return self._native.margin

    @property
    def shortlist(self) -> int:
        """The number of candidates per row, or 0."""
        return self._native.shortlist

    def assign(
        self,
        x: Array,
        assignment: Assignment,
        first: int = 0,
        index: Ints | None = None,
        projected: Array | None = None,
        exact_scores: bool = True,
        n_threads: int = 1,
    ) -> int:
        """Find the nearest centers of the rows of x, of which row i is row ``first + i`` of the assignment.

        The assignment, which is changed, has the type of the screen. The index, ascending, names the rows of x to look
        at; None stands for all. ``projected`` are the rows of x times all factors of the product but the first, where
        they are known (the norms must be known then). Without ``exact_scores`` a row with one candidate gets a lower
        bound of its score. Returns -1, or a bad row as in :meth:`Product.nearest`, counted among those looked at.
        """
        narrow = None if projected is None else readable(projected)
        return self._native.assign(readable(x), assignment, first, ints(index), narrow, exact_scores, n_threads)

    def label(self, x: Array, n_threads: int = 1) -> tuple[NDArray[np.int32], int]:
        """The nearest center of every row, for a screen without product and shortlist, and -1 or a bad row."""
        labels = np.empty(len(x), INT32)
        return labels, self._native.label(readable(x), labels, n_threads)

    def nearest(self, x: Array, m: int, n_listed: int, n_threads: int = 1) -> tuple[Ints, Array, int]:
        """The m nearest centers of every row in any order, their scores, and -1 or a bad row as in :meth:`assign`.

        The product lists ``n_listed`` candidates, m or more, and exact scores decide among them.
        """
        labels, scores = np.empty((len(x), m), np.int64), np.empty((len(x), m), self.dtype)
        return labels, scores, self._native.nearest(readable(x), n_listed, labels, scores, n_threads)
