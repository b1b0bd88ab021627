r"""The default assigner: a product near the centroids lists candidates, and exact scores decide among them.

The product V has rows :math:`v_k` near the centered centroids :math:`c_k` and gives scores :math:`s_k` for the price of
its non-zeros. With :math:`e_k = \|c_k - v_k\|` (the slack) a score is wrong by at most :math:`\|x - m\| e_k`, and
mostly by less than a small share z of that, the margin. Only those k are candidates that have

.. math:: s_k + z \|x - m\| e_k \ge \max_j \; s_j - z \|x - m\| e_j.

The margin is calibrated on a sample of the rows; with z = 1 the result is certain. Without a product, all centroids are
compared densely.

With groups of centroids (:mod:`quickmeans.kmeans.groups`) a row looks at some of the candidates only, and what lies
outside the span of the product's directions is compared by its length: the margin is then a share of
:math:`\|y\| e_k`, where y is the part of x - m outside.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assignment, NotComparableError
from quickmeans.kmeans.geometry import NO_DIRECTION, Geometry, squared_norms
from quickmeans.kmeans.groups import LEAST_CENTERS, NARROW, Groups, first_directions, grouped
from quickmeans.threads import resolve_threads
from quickmeans.transform import SparseProduct

CERTAIN = 1.0
_FIRST_MARGIN, _FIRST_REACH = 0.1, 0.6  # of a search whose result is then made certain: it is nearly always right
_LOCAL = ("_bound", "_grouped", "_first", "certain")  # made when they are first used
_CERTAIN_RANK = 96  # of the screen that makes sure
_CERTAIN_SIZE = 128  # of its groups, few of which the triangle inequality excludes; large ones fill their panels


class Screen:
    """Exact centroids m + c_k and a product near the c_k, or None for dense comparison.

    Parameters
    ----------
    centers : array of shape (n_clusters, n_features)
        The c_k.
    geometry : Geometry
    product : SparseProduct, optional
    margin : float
        The z of the bound.
    shortlist : int
        If not zero, exactly so many candidates get an exact score, whatever the margin.
    groups : Groups, optional
        Of the centroids; only for a product that :meth:`low_rank` has made, and without a shortlist.
    """

    centers_are_means = True

    def __init__(
        self,
        centers: NDArray[np.float64],
        geometry: Geometry,
        product: SparseProduct | None = None,
        *,
        margin: float = 0.0,
        shortlist: int = 0,
        groups: Groups | None = None,
    ) -> None:
        self._set_centers(centers, geometry, shortlist, groups)
        if product is None:
            self._set_product(None, self._center_offset, np.zeros(len(centers)), margin)
            return
        V = product.toarray().astype(np.float64)
        self._set_product(product, geometry.offset(V), np.sqrt(squared_norms(centers - V)), margin)

    @classmethod
    def low_rank(
        cls,
        centers: NDArray[np.float64],
        geometry: Geometry,
        basis: NDArray[Any],
        *,
        margin: float = 0.0,
        shortlist: int = 0,
    ) -> "Screen":
        """A screen by the projections of the centroids on orthonormal columns B: v_k = B B' c_k."""
        self = object.__new__(cls)
        self._set_centers(centers, geometry, shortlist)
        narrow = basis.astype(geometry.dtype)
        product = SparseProduct([self.centers @ narrow, narrow.T])
        coefficients = product.factors[0].astype(np.float64)
        rest = self._squares - squared_norms(coefficients)
        inner = Geometry(geometry.mean @ basis, geometry.dtype, geometry.spherical)
        self._set_product(product, inner.offset(coefficients), np.sqrt(np.maximum(rest, 0)), margin)
        return self

    def _set_centers(
        self, centers: NDArray[np.float64], geometry: Geometry, shortlist: int, groups: Groups | None = None
    ) -> None:
        self.geometry, self.dtype, self.shortlist = geometry, geometry.dtype, shortlist
        self.groups = groups
        self.centers = centers.astype(geometry.dtype)
        self._squares = squared_norms(centers)
        self._center_offset = geometry.offset(centers, self._squares)
        self._tables: dict[np.dtype[Any], kernels.CsrCenters] = {}  # the centroids for rows in CSR form

    def _set_product(
        self, product: SparseProduct | None, offset: NDArray[np.float64], slack: NDArray[np.float64], margin: float
    ) -> None:
        self.product = product
        self.projected: NDArray[Any] | None = None
        self._product_offset, self._slack, self.margin = offset, slack, margin

    @property
    def _offset(self) -> NDArray[np.float64]:
        """What is added to <x, v_k>; for certainty, so that |<x - m, v_k> - |c_k|^2 / 2 - t_k| <= |x - m| e_k holds."""
        if self.margin < CERTAIN or self.product is None:
            return self._product_offset
        rest = self.centers.astype(np.float64) - self.product.toarray()
        return np.asarray(self._center_offset + rest @ self.geometry.mean, np.float64)

    @property
    def gives_bounds(self) -> bool:
        """Whether `assign` fills `second`: through groups it does not look at all centroids."""
        return self.groups is None

    @property
    def macs(self) -> int:
        """Multiply-adds of the screen, per row; with groups those of choosing among them."""
        if self.product is None:
            return int(self.centers.size)
        if self.groups is None:
            return int(self.product.macs)
        return (self.n_coordinates - 1) * int(self.centers.shape[1]) + 2 * self.groups.count * self.n_narrow

    @property
    def n_coordinates(self) -> int:
        """Of the points of centroids and rows that groups are made of."""
        assert self.product is not None
        return int(self.product.factors[1].shape[0]) + 1

    @property
    def n_narrow(self) -> int:
        """How many of these say how near a group is."""
        return min(self.n_coordinates - 1, NARROW)

    @property
    def directions(self) -> NDArray[Any]:
        """The orthonormal rows B' of a screen of low rank."""
        assert self.product is not None
        return _dense(self.product.factors[1])

    @property
    def slack(self) -> NDArray[np.float64]:
        """How far every centroid is from its row of the product."""
        return self._slack

    @property
    def points(self) -> NDArray[Any]:
        """The coordinates of every centroid along the product's directions, and the margin times the slack."""
        assert self.product is not None
        return np.column_stack([_dense(self.product.factors[0]), (self.margin * self._slack).astype(self.dtype)])

    def with_margin(self, margin: float, shortlist: int | None = None) -> "Screen":
        """The same screen with another margin, and another shortlist if it is given."""
        other = self._copy()
        other.margin, other.shortlist = margin, self.shortlist if shortlist is None else shortlist
        if self.groups is None:
            other._bound = self._bound.with_margin(margin, other._offset, other.shortlist)
        else:
            other._forget()
        return other

    def with_groups(self, groups: Groups) -> "Screen":
        """The same screen with groups, or with another reach."""
        other = self._copy()
        other.groups = groups
        if self.groups is not None and groups.labels is not self.groups.labels:
            other._forget()
        return other

    def with_projected(self, projected: NDArray[Any] | None) -> "Screen":
        """The same screen for the rows of a pass whose projections on the basis are at hand."""
        other = self._copy()
        other.projected = projected
        return other

    def _copy(self) -> "Screen":
        """A copy that shares all arrays and the native object."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._forget("certain", "_first")
        return other

    def _forget(self, *names: str) -> None:
        """Drop native objects and screens that no longer fit; all of them if none is named."""
        for name in names or _LOCAL:
            self.__dict__.pop(name, None)

    @cached_property
    def certain(self) -> "Screen":
        """The same centroids with a bound that always holds; many of them in groups."""
        if self.margin >= CERTAIN and self.groups is not None:
            return self
        if self.product is None or len(self.centers) < LEAST_CENTERS:
            return self.with_margin(CERTAIN, shortlist=0)
        basis = first_directions(self.centers, _CERTAIN_RANK)
        screen = Screen.low_rank(self.centers.astype(np.float64), self.geometry, basis, margin=CERTAIN)
        n_groups = max(len(self.centers) // _CERTAIN_SIZE, 1)
        labels = grouped(screen.points[:, :-1], n_groups, resolve_threads(None))
        return screen.with_groups(Groups(labels, _FIRST_REACH))

    def assign(
        self,
        rows: NDArray[Any],
        assignment: Assignment,
        n_threads: int,
        *,
        index: NDArray[np.int64] | None = None,
        projected: NDArray[Any] | None = None,
        exact_scores: bool = True,
    ) -> None:
        """Assign the rows; see :class:`quickmeans.kmeans.assignment.Assigner`."""
        if self.groups is not None:
            self._assign_in_groups(rows, assignment, n_threads, index)
            return
        native = assignment.native
        native.norms_known, native.n_listed, native.n_settled = assignment.norms_known, 0, 0
        bad = self._bound.assign(rows, native, 0, index, projected, exact_scores, n_threads)
        if bad >= 0:
            raise NotComparableError(self.dtype, bad if index is None else int(index[bad]))
        assignment.norms_known, assignment.n_listed, assignment.n_settled = True, native.n_listed, native.n_settled

    def _assign_in_groups(
        self,
        rows: NDArray[Any],
        assignment: Assignment,
        n_threads: int,
        index: NDArray[np.int64] | None,
    ) -> None:
        """Assign through groups; for certainty after a search that finds the nearest centroid of nearly every row."""
        assert self.groups is not None
        known = self.margin >= CERTAIN
        if known:
            self._first.assign(rows, assignment, n_threads, index=index)
        native = assignment.native
        native.n_listed = native.n_settled = 0
        options: dict[str, Any] = {"reach": self.groups.reach, "index": index, "known": known, "n_threads": n_threads}
        bad, n_compared = self._grouped.assign(rows, native, **options)
        if bad >= 0:
            raise NotComparableError(self.dtype, bad if index is None else int(index[bad]))
        assignment.norms_known, assignment.n_listed, assignment.n_settled = True, native.n_listed, native.n_settled
        assignment.n_compared = n_compared

    def label(self, rows: NDArray[Any], n_threads: int, first: int = 0) -> tuple[NDArray[np.int32], int]:
        """The labels of the rows; see :class:`quickmeans.kmeans.assignment.Assigner`."""
        if self.product is None and not self.shortlist and not self.geometry.spherical:
            labels, bad = self._bound.label(rows, n_threads)
            if bad >= 0:
                raise NotComparableError(self.dtype, bad)
            return labels, 0
        assignment = Assignment.empty(len(rows), self.dtype)
        self.assign(rows, assignment, n_threads, exact_scores=False)
        if self.geometry.spherical and (assignment.norms <= 0).any():
            raise ValueError(NO_DIRECTION.format(first + int(np.argmax(assignment.norms <= 0))))
        return assignment.labels, assignment.n_settled

    def label_csr(self, rows: kernels.CsrRows, n_threads: int) -> NDArray[np.int32] | None:
        """The labels of rows in CSR form by all exact scores; None with a shortlist of given length."""
        if self.shortlist and self.product is not None:
            return None
        table = self._tables.get(max(rows.dtype, self.dtype))
        if table is None:
            centers = self.centers.astype(max(rows.dtype, self.dtype), copy=False)
            table = self._tables[centers.dtype] = kernels.CsrCenters(centers, self._center_offset, n_threads)
        labels, bad = rows.nearest(table, n_threads)
        if bad >= 0:
            raise NotComparableError(self.dtype, bad)
        return labels

    def nearest(
        self, rows: NDArray[Any], m: int, n_listed: int, n_threads: int
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The m nearest centroids of every row; see :class:`quickmeans.kmeans.assignment.Assigner`."""
        labels, scores, bad = self._bound.nearest(rows, m, n_listed, n_threads)
        if bad >= 0:
            raise NotComparableError(self.dtype, bad)
        return labels, scores

    @cached_property
    def _bound(self) -> kernels.Screen:
        """The screen for the native code."""
        product = None if self.product is None else self.product.native(self.dtype)
        parts = self.centers, self.geometry.mean, self._offset, self._center_offset, self._slack
        return kernels.Screen(product, *parts, self.margin, self.shortlist)

    @cached_property
    def _first(self) -> "Screen":
        """A screen that finds the nearest centroid of nearly every row, for one that makes sure of it."""
        assert self.groups is not None
        return self.with_groups(replace(self.groups, reach=_FIRST_REACH)).with_margin(_FIRST_MARGIN)

    @cached_property
    def _grouped(self) -> kernels.Groups:
        """The groups for the native code."""
        assert self.groups is not None
        return kernels.Groups(
            self.centers,
            self._center_offset,
            self.geometry.mean,
            self.directions,
            self.points,
            self.groups.labels,
            self.groups.count,
            self.n_narrow,
            spherical=self.geometry.spherical,
        )

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs; the native object is made anew there."""
        return {name: value for name, value in self.__dict__.items() if name not in _LOCAL} | {
            "projected": None,
            "_tables": {},
        }


def _dense(factor: Any) -> NDArray[Any]:
    """A factor of a product as an array."""
    return np.asarray(factor.toarray() if sp.issparse(factor) else factor)
