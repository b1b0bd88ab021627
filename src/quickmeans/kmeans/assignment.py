"""The result of assigning rows to centroids, and the protocol of whatever can assign them."""

from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.blocks import block_rows
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.groups import Groups
from quickmeans.transform import SparseProduct


class NotComparableError(ValueError):
    """A row from a certain number on is not finite, or too large for the arithmetic."""

    def __init__(self, dtype: np.dtype[Any], row: int) -> None:
        super().__init__(dtype, row)
        self.dtype, self.row = dtype, row

    def __str__(self) -> str:
        return (
            f"Input X contains NaN, infinity or a value whose square is too large for {self.dtype}, "
            f"in row {self.row} or a later one."
        )


class Assignment:
    """For every row its label, the score of its centroid, an upper bound on all other scores, and its squared norm.

    Attributes
    ----------
    labels, best, second, norms : arrays of shape (n_rows,)
        `norms` are the squared norms of the centered rows.
    norms_known : bool
        Whether they have been computed.
    n_listed, n_settled : int
        How many candidates the last assignment listed, and how many of them got an exact score.
    n_compared : int
        How many centroids were looked at through groups.
    """

    def __init__(
        self,
        labels: NDArray[np.int32],
        best: NDArray[Any],
        second: NDArray[Any],
        norms: NDArray[Any],
        norms_known: bool = False,
    ) -> None:
        self.labels, self.best, self.second, self.norms, self.norms_known = labels, best, second, norms, norms_known
        self.n_listed = self.n_settled = self.n_compared = 0

    @cached_property
    def native(self) -> kernels.Assignment:
        """The arrays as the native code takes them."""
        return kernels.bind_assignment(self.labels, self.best, self.second, self.norms)

    @classmethod
    def empty(cls, n_rows: int, dtype: np.dtype[Any]) -> Self:
        """Memory for the assignment of so many rows."""
        best, second, norms = (np.empty(n_rows, dtype) for _ in range(3))
        return cls(np.zeros(n_rows, np.int32), best, second, norms)

    def part(self, rows: slice) -> "Assignment":
        """A view of some consecutive rows; its counters start at zero."""
        return Assignment(self.labels[rows], self.best[rows], self.second[rows], self.norms[rows], self.norms_known)

    def squared_distances(self, geometry: Geometry) -> NDArray[Any]:
        """From each row to its centroid, to the accuracy of the scores."""
        return geometry.squared_distances(self.norms, self.best)

    def fill_norms(self, rows: NDArray[Any], geometry: Geometry) -> None:
        """Compute the squared norms of these rows, unless they are known."""
        step = block_rows(rows.shape[1])
        for begin in () if self.norms_known else range(0, len(rows), step):
            Y = rows[begin : begin + step].astype(np.float64) - geometry.mean
            self.norms[begin : begin + len(Y)] = np.einsum("id,id->i", Y, Y)
        self.norms_known = True


class Assigner(Protocol):
    """Finds the nearest centroids m + c_k of rows."""

    @property
    def geometry(self) -> Geometry:
        """How rows are compared with the centroids."""

    @property
    def product(self) -> SparseProduct | None:
        """The product that screens the centroids, or that has them as its rows; None for dense centroids."""

    @property
    def margin(self) -> float:
        """How wrong the scores of the product may be; see :mod:`quickmeans.kmeans.screen`."""

    @property
    def shortlist(self) -> int | None:
        """How many candidates get an exact score; 0 if the centroids are rows of the product; None: by the margin."""

    @property
    def groups(self) -> Groups | None:
        """Groups of the centroids, through which rows look for candidates; None: they look at all."""

    @property
    def centers(self) -> NDArray[Any]:
        """The centered centroids c_k."""

    @property
    def centers_are_means(self) -> bool:
        """Whether the centroids are means of rows, and not rows of a product."""

    @property
    def gives_bounds(self) -> bool:
        """Whether `assign` fills `second`, so that bounds on distances can be kept."""

    @property
    def projected(self) -> NDArray[Any] | None:
        """The rows of a pass times all factors of the product but the first, if they are at hand."""

    @property
    def certain(self) -> "Assigner":
        """The same centroids, compared with a bound that always holds."""

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
        """Assign the rows, or those that the index names.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
        assignment : Assignment
            Of these rows; changed in place.
        n_threads : int
        index : array, optional
            Ascending row numbers; other rows keep what they have.
        projected : array, optional
            Those of these rows. Norms must be known then.
        exact_scores : bool
            If False, a row with one candidate gets its label, but only a lower bound on its score.
        """

    def label(self, rows: NDArray[Any], n_threads: int, first: int = 0) -> tuple[NDArray[np.int32], int]:
        """The labels of the rows, and how many candidates got an exact score.

        If only directions count, a zero row is a ValueError that gives its number, counted from `first`.
        """

    def label_csr(self, rows: kernels.CsrRows, n_threads: int) -> NDArray[np.int32] | None:
        """The labels of rows in CSR form; None if rows must come as blocks."""

    def nearest(
        self, rows: NDArray[Any], m: int, n_listed: int, n_threads: int
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The m nearest centroids of every row, in any order, and their scores, chosen among `n_listed` candidates."""
