r"""The default assigner: a product near the centroids lists candidates, and exact scores decide among them.

The product V has rows :math:`v_k` near the centered centroids :math:`c_k` and gives scores :math:`s_k` for the price of
its non-zeros. With :math:`e_k = \|c_k - v_k\|` (the slack) a score is wrong by at most :math:`\|x - m\| e_k`, and
mostly by less than a small share z of that, the margin. Only those k are candidates that have

.. math:: s_k + z \|x - m\| e_k \ge \max_j \; s_j - z \|x - m\| e_j.

The margin is calibrated on a sample of the rows; with z = 1 the result is certain. Without a product, all centroids are
compared densely.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assignment, NotComparableError
from quickmeans.kmeans.geometry import NO_DIRECTION, Geometry, squared_norms
from quickmeans.transform import SparseProduct

CERTAIN = 1.0


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
    """

    centers_are_means = True
    gives_bounds = True

    def __init__(
        self,
        centers: NDArray[np.float64],
        geometry: Geometry,
        product: SparseProduct | None = None,
        *,
        margin: float = 0.0,
        shortlist: int = 0,
    ) -> None:
        self._set_centers(centers, geometry, shortlist)
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

    def _set_centers(self, centers: NDArray[np.float64], geometry: Geometry, shortlist: int) -> None:
        self.geometry, self.dtype, self.shortlist = geometry, geometry.dtype, shortlist
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
    def macs(self) -> int:
        """Multiply-adds of the screen, per row."""
        return int(self.centers.size if self.product is None else self.product.macs)

    def with_margin(self, margin: float, shortlist: int | None = None) -> "Screen":
        """The same screen with another margin, and another shortlist if it is given."""
        other = self._copy()
        other.margin, other.shortlist = margin, self.shortlist if shortlist is None else shortlist
        other._bound = self._bound.with_margin(margin, other._offset, other.shortlist)
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
        other.__dict__.pop("certain", None)
        return other

    @cached_property
    def certain(self) -> "Screen":
        """The same screen with a bound that always holds."""
        return self.with_margin(CERTAIN, shortlist=0)

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
        native = assignment.native
        native.norms_known, native.n_listed, native.n_settled = assignment.norms_known, 0, 0
        bad = self._bound.assign(rows, native, 0, index, projected, exact_scores, n_threads)
        if bad >= 0:
            raise NotComparableError(self.dtype, bad if index is None else int(index[bad]))
        assignment.norms_known, assignment.n_listed, assignment.n_settled = True, native.n_listed, native.n_settled

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

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs; the native object is made anew there."""
        local = ("_bound", "certain")
        return {name: value for name, value in self.__dict__.items() if name not in local} | {
            "projected": None,
            "_tables": {},
        }
