"""The one door to the native module: arrays get the layout, the type and the byte order that native code reads."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from quickmeans import _native
from quickmeans._native import (
    Entries,
    Product32,
    Product64,
    add_members,
    fit_supports,
    gaussian,
    instruction_sets,
    mark_largest,
    masked_product,
    match_largest,
    moments,
    seed,
    smallest,
)
from quickmeans.threads import instruction_set

__all__ = [
    "Assignment",
    "Entries",
    "Product32",
    "Product64",
    "Screen",
    "add_members",
    "bind_assignment",
    "fit_supports",
    "gaussian",
    "group_by_label",
    "instruction_sets",
    "make_assignment",
    "mark_largest",
    "masked_product",
    "match_largest",
    "moments",
    "readable",
    "seed",
    "smallest",
]

Assignment: TypeAlias = _native.Assignment32 | _native.Assignment64


def readable(rows: ArrayLike) -> NDArray[Any]:
    """Rows as native code reads them: a copy only of foreign byte order, long double, or strides between items."""
    array = np.asarray(rows)
    if not array.dtype.isnative or array.dtype.itemsize > 8:
        return array.astype(array.dtype.newbyteorder("=") if array.dtype.itemsize <= 8 else np.float64)
    if any(stride % array.itemsize for stride in array.strides):
        return array.copy()
    return array


def _packed(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """The values in C order, aligned, of this type; not copied if they are so already."""
    array = np.ascontiguousarray(values, dtype)
    return array if array.flags.aligned else array.copy()


def group_by_label(labels: ArrayLike, n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions in ascending order of their labels, ties in their order, and where in it each label begins.

    The positions of label k are ``order[starts[k] : starts[k + 1]]``. A label outside [0, n_labels) is a ValueError.
    """
    narrow = _packed(labels, np.int32 if np.asarray(labels).dtype == np.int32 else np.int64)
    order, starts = np.empty(len(narrow), np.int64), np.empty(n_labels + 1, np.int64)
    _native.group_by_label(narrow, n_labels, order, starts)
    return order, starts


def make_assignment(n_rows: int, dtype: DTypeLike) -> Assignment:
    """An :data:`Assignment` of so many rows, all of label 0, in float32 or float64."""
    best, second, norms = (np.empty(n_rows, dtype) for _ in range(3))
    return bind_assignment(np.zeros(n_rows, np.int32), best, second, norms)


def bind_assignment(
    labels: NDArray[np.int32],
    best: NDArray[Any],
    second: NDArray[Any],
    norms: NDArray[Any],
    *,
    norms_known: bool = False,
) -> Assignment:
    """An :data:`Assignment` that writes into these arrays, which must be contiguous; nothing is copied.

    ``labels`` are the nearest centers; ``best`` their scores; ``second`` a bound that no other center's score exceeds;
    ``norms`` the squared distances from the mean, which :meth:`Screen.assign` computes unless ``norms_known``.
    ``n_listed`` and ``n_settled`` grow with every assignment by the number of candidates, and by that of the exact
    scores computed.
    """
    make = _native.Assignment32 if best.dtype == np.float32 else _native.Assignment64
    return make(labels, best, second, norms, norms_known)


class Screen:
    """Centers c_k and a product with rows v_k near them, bound once for many calls.

    Parameters
    ----------
    product : Product32 or Product64, or None
        None: the centers are compared themselves.
    centers : array of shape (K, D)
        Its type, float32 or float64, is that of the product and of the arithmetic.
    mean : array of shape (D,)
        Norms of rows are taken about it.
    offset, center_offset : arrays of shape (K,)
        What is added to <x, v_k> and <x, c_k> to make them scores. Without a product only the latter is used.
    slack : array of shape (K,)
        |c_k - v_k|.
    margin : float, default=0.0
        Scores of the product may be wrong by so large a share of slack times the row's distance from the mean.
    shortlist : int, default=0
        The number of candidates per row; 0: all within the margin.
    """

    __slots__ = ("_native", "dtype", "n_centers")

    def __init__(
        self,
        product: Product32 | Product64 | None,
        centers: NDArray[Any],
        mean: ArrayLike,
        offset: ArrayLike | None,
        center_offset: ArrayLike,
        slack: ArrayLike | None,
        margin: float = 0.0,
        shortlist: int = 0,
    ) -> None:
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if centers.dtype == np.float32 else np.float64)
        self.n_centers = len(centers)
        exact = _packed(center_offset, np.float64)
        self._native: _native.Screen32 | _native.Screen64 = self._class().bind(
            product,
            _packed(centers, self.dtype),
            _packed(mean, np.float64),
            exact if product is None or offset is None else _packed(offset, np.float64),
            exact,
            np.zeros(len(exact)) if product is None or slack is None else _packed(slack, np.float64),
            margin,
            shortlist,
            instruction_set(),
        )

    def _class(self) -> type[_native.Screen32] | type[_native.Screen64]:
        return _native.Screen32 if self.dtype == np.float32 else _native.Screen64

    def with_margin(self, margin: float, offset: ArrayLike | None = None, shortlist: int | None = None) -> "Screen":
        """The same screen with another margin, and another offset of the product and shortlist if they are given."""
        other = object.__new__(Screen)
        other.dtype, other.n_centers = self.dtype, self.n_centers
        packed = None if offset is None else _packed(offset, np.float64)
        other._native = self._native.with_margin(margin, packed, shortlist)
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
        x: NDArray[Any],
        assignment: Assignment,
        first: int = 0,
        index: NDArray[np.int64] | None = None,
        projected: NDArray[Any] | None = None,
        exact_scores: bool = True,
        n_threads: int = 1,
    ) -> int:
        """Find the nearest centers of the rows of x, of which row i is row ``first + i`` of the assignment.

        The index, ascending, names the rows of x to look at; by default all. ``projected`` are the rows of x times all
        factors of the product but the first, where they are known (the norms must be known then). Without
        ``exact_scores``, a row with one candidate gets its label, but for its score only what it is at least.

        Returns -1, or the position among the rows looked at where a tile begins that has a row that cannot be compared
        (NaN, infinity, or numbers so large that products may overflow).
        """
        return self._native.assign(
            readable(x),
            assignment,
            first,
            None if index is None else _packed(index, np.int64),
            None if projected is None else readable(projected),
            exact_scores,
            n_threads,
        )

    def nearest(
        self, x: NDArray[Any], m: int, n_listed: int, n_threads: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[Any], int]:
        """For every row the m nearest centers in any order, their scores, and -1 or a bad row as in :meth:`assign`.

        The product lists ``n_listed`` candidates, m or more, and exact scores decide among them.
        """
        labels, scores = np.empty((len(x), m), np.int64), np.empty((len(x), m), self.dtype)
        bad = self._native.nearest(readable(x), n_listed, labels, scores, n_threads)
        return labels, scores, bad
