r"""The assignment step: for every row the nearest centroid, by way of a product that is close to the centroids.

Centroid :math:`m + c_k` has the score :math:`t_k = \langle x, c_k\rangle - b_k` (see `points`), the nearest one the
largest. The product V has rows :math:`v_k` near :math:`c_k` and gives scores :math:`s_k` for the price of its
non-zeros. With :math:`e_k = \|c_k - v_k\|` they are wrong by at most :math:`\|x - m\| e_k`, and mostly by less than a
small share z of it, the reach: only those k are candidates that have

.. math:: s_k + z \|x - m\| e_k \ge \max_j \; s_j - z \|x - m\| e_j.

The exact scores of the candidates settle it. The reach is calibrated on a sample of the rows; with z = 1 the answer is
certain.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.points import Frame, Rows, row_blocks, rows_at_a_time, squared_norms
from quickmeans.transform import SparseProduct

CERTAIN = 1.0
_NOT_COMPARABLE = "Input X contains NaN, infinity or a value too large for {} in the rows from {} on."


@dataclass
class Assignment:
    """What is known of every row: its label, the score of its centroid, a bound on all other scores, its norm."""

    labels: NDArray[np.int32]
    best: NDArray[Any]
    second: NDArray[Any]
    norms: NDArray[Any]  # squared, about the mean
    norms_known: bool = False
    n_listed: int = 0
    n_settled: int = 0
    objective: float = 0.0  # of these rows, where somebody has computed it

    @classmethod
    def empty(cls, n_rows: int, dtype: np.dtype[Any]) -> "Assignment":
        best, second, norms = (np.empty(n_rows, dtype) for _ in range(3))
        return cls(np.zeros(n_rows, np.int32), best, second, norms)

    def squared_distances(self, frame: Frame) -> NDArray[Any]:
        """From each row to its centroid, to the accuracy of the scores."""
        return frame.squared_distances(self.norms, self.best)


class Screen:
    """Centroids m + c_k and a product near the c_k; without one, the dense centroids themselves."""

    def __init__(
        self,
        centers: NDArray[np.float64],
        frame: Frame,
        product: SparseProduct | None = None,
        *,
        reach: float = 0.0,
        shortlist: int = 0,
    ) -> None:
        self._set(centers, frame, reach, shortlist)
        if product is None:
            self._use(None, self._exact_offset, np.zeros(len(centers)))
            return
        V = product.toarray().astype(np.float64)
        self._use(product, frame.offset(V), np.sqrt(squared_norms(centers - V)))

    @classmethod
    def low_rank(
        cls,
        centers: NDArray[np.float64],
        frame: Frame,
        basis: NDArray[np.float64],
        *,
        reach: float = 0.0,
        shortlist: int = 0,
    ) -> "Screen":
        """The projection of the centroids on some orthonormal columns as their product: v_k = B B' c_k."""
        self = object.__new__(cls)
        self._set(centers, frame, reach, shortlist)
        narrow = basis.astype(frame.dtype)
        product = SparseProduct([self.centers @ narrow, narrow.T])
        coefficients = product.factors[0].astype(np.float64)
        rest = self._squares - squared_norms(coefficients)
        inner = Frame(frame.mean @ basis, frame.dtype, frame.spherical)
        self._use(product, inner.offset(coefficients), np.sqrt(np.maximum(rest, 0)))
        return self

    def _set(
        self,
        centers: NDArray[np.float64],
        frame: Frame,
        reach: float,
        shortlist: int,
    ) -> None:
        self.frame, self.dtype, self.reach, self.shortlist = frame, frame.dtype, reach, shortlist
        self.projected: NDArray[Any] | None = None  # all rows of X in the basis, if a Screener has made them
        self.centers, self.mean = centers.astype(frame.dtype), frame.mean.astype(frame.dtype)
        self._squares = squared_norms(centers)
        self._exact_offset = frame.offset(centers, self._squares)
        # No sum of absolute values in a row is larger.
        self._growth = (centers.shape[1] * float(self._squares.max())) ** 0.5

    def _use(self, product: SparseProduct | None, offset: NDArray[np.float64], slack: NDArray[np.float64]) -> None:
        self.product = product
        self._kernel = self._make_kernel()
        self._near_offset, self._slack = offset, slack.astype(self.dtype)
        self._set_reach(self.reach)
        self._largest_offset = float(max(np.abs(offset).max(), np.abs(self._exact_offset).max()))

    @property
    def macs(self) -> int:
        """Multiply-adds of the screen, per row."""
        return int(self.centers.size if self.product is None else self.product.macs)

    def with_reach(self, reach: float) -> "Screen":
        """The same screen with another reach."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._set_reach(reach)
        return other

    def certain(self) -> "Screen":
        """The same screen with a bound that always holds, and as many candidates as it lets through."""
        other = self.with_reach(CERTAIN)
        other.shortlist = 0
        return other

    def _set_reach(self, reach: float) -> None:
        """Set the reach; for certainty with the offset that |<x - m, v_k> - |c_k|^2 / 2 - t_k| <= |x - m| e_k needs."""
        self.reach, self._offset = reach, self._near_offset
        if reach >= CERTAIN and self.product is not None:
            rest = self.centers.astype(np.float64) - self.product.toarray()
            self._offset = self._exact_offset + rest @ self.frame.mean

    def assign(
        self,
        X: Rows,
        found: Assignment,
        n_threads: int,
        index: NDArray[np.int64] | None = None,
        *,
        projected: NDArray[Any] | None = None,
        settle_all: bool = True,
    ) -> None:
        """Find the nearest centroids of the rows, or of those that the index names.

        `projected` are the rows times all factors of the product but the first, if they are at hand (the norms must be
        known then). Without `settle_all`, rows with one candidate get its label but not its exact score.
        """
        kernel = self._kernel if projected is None else self._narrow_kernel
        found.n_listed = found.n_settled = 0
        for part, rows in row_blocks(X):
            some = None if index is None else _within(index, part)
            bad, listed, settled = kernel.settle(
                rows, projected, some, self._offset.astype(self.dtype), self.mean, self.centers,
                self._exact_offset.astype(self.dtype), self._slack, self.reach, self.shortlist, settle_all,
                found.norms_known, found.norms[part], found.labels[part], found.best[part], found.second[part],
                self._largest_offset, self._growth, n_threads,
            )  # fmt: skip
            if bad >= 0:
                where = part.start + (bad if some is None else int(some[bad]))
                raise ValueError(_NOT_COMPARABLE.format(self.dtype, where))
            found.n_listed += listed
            found.n_settled += settled
        found.norms_known = True

    def nearest(
        self, rows: NDArray[Any], m: int, n_listed: int, n_threads: int
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """For every row the m nearest centroids, in any order, and their scores.

        The product lists `n_listed` of them, m or more, and exact scores decide among these.
        """
        K = len(self.centers)
        labels, scores = np.empty((len(rows), m), np.int64), np.empty((len(rows), m), self.dtype)
        offset, exact = self._offset.astype(self.dtype), self._exact_offset.astype(self.dtype)
        if self.product is None or K == 1:
            dense = self._kernel if self.product is None else SparseProduct([self.centers]).native(self.dtype)
            bad = dense.nearest(rows, exact, self._largest_offset, labels, scores, n_threads)
        else:
            bad = self._kernel.nearest_centers(
                rows, offset, self.centers, exact, min(max(n_listed, 2), K), labels, scores,
                self._largest_offset, self._growth, n_threads,
            )  # fmt: skip
        if bad >= 0:
            raise ValueError(_NOT_COMPARABLE.format(self.dtype, bad))
        return labels, scores

    def __getstate__(self) -> dict[str, Any]:
        """What has to be sent for the screen to work elsewhere."""
        local = ("_kernel", "_narrow_kernel", "projected")
        return {name: value for name, value in self.__dict__.items() if name not in local}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.projected = None
        self._kernel = self._make_kernel()

    def _make_kernel(self) -> Any:
        return (SparseProduct([self.centers]) if self.product is None else self.product).native(self.dtype)

    @cached_property
    def _narrow_kernel(self) -> Any:
        """The first factor alone, for rows that are projected already."""
        assert self.product is not None
        return SparseProduct([self.product.factors[0]]).native(self.dtype)


def _within(index: NDArray[np.int64], part: slice) -> NDArray[np.int64]:
    """Those of an ascending index that fall into a block, counted from its beginning."""
    begin, end = np.searchsorted(index, (part.start, part.stop))
    return np.asarray(index[begin:end] - part.start, np.int64)


class ProductRows:
    """Centroids m + v_k with v_k the rows of a product: nothing to settle."""

    def __init__(self, product: SparseProduct, frame: Frame) -> None:
        self.product, self.frame, self.dtype, self.reach = product, frame, product.dtype, 0.0
        self._bias = 0.0 - frame.offset(self.centers)

    @cached_property
    def centers(self) -> NDArray[np.float64]:
        """The v_k."""
        return np.asarray(self.product.toarray(), np.float64)

    def __getstate__(self) -> dict[str, Any]:
        """The centroids follow from the product."""
        return {name: value for name, value in self.__dict__.items() if name != "centers"}

    def certain(self) -> "ProductRows":
        """Itself: it is."""
        return self

    def assign(self, X: Rows, found: Assignment, n_threads: int, *, settle_all: bool = True) -> None:
        """Find the nearest centroids of the rows; all scores are exact."""
        found.n_listed = found.n_settled = 0
        for part, rows in row_blocks(X):
            labels, values = self.product.nearest_row(rows, bias=self._bias, return_distance=True, n_threads=n_threads)
            found.labels[part], found.best[part] = labels, -values

    def nearest(
        self, rows: NDArray[Any], m: int, n_listed: int, n_threads: int
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """For every row the m nearest centroids and their scores; nothing is to be listed."""
        labels, values = self.product.nearest_rows(rows, m, bias=self._bias, return_distance=True, n_threads=n_threads)
        return labels, -values


def fill_norms(X: Rows, frame: Frame, found: Assignment) -> None:
    """|x - m|^2 of all rows, if they are not known."""
    for part, rows in () if found.norms_known else row_blocks(X):
        step = rows_at_a_time(X.shape[1])
        for begin in range(0, len(rows), step):
            Y = rows[begin : begin + step].astype(np.float64) - frame.mean
            first = part.start + begin
            found.norms[first : first + len(Y)] = np.einsum("id,id->i", Y, Y)
    found.norms_known = True
