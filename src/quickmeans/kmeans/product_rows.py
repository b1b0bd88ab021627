"""The paper's assigner: the centroids are the rows of a product of sparse matrices."""

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assignment, NotComparableError
from quickmeans.kmeans.geometry import Geometry
from quickmeans.transform import SparseProduct
from quickmeans.transform.checks import ComparisonError


class ProductRows:
    """Centroids m + v_k with v_k the rows of a product V. All scores are exact."""

    centers_are_means = False
    gives_bounds = False
    groups = None
    margin = 0.0
    shortlist = 0
    projected = None

    def __init__(self, product: SparseProduct, geometry: Geometry) -> None:
        self.product, self.geometry, self.dtype = product, geometry, product.dtype
        self._bias = 0.0 - geometry.offset(self.centers)

    @cached_property
    def centers(self) -> NDArray[np.float64]:
        """The v_k."""
        return np.asarray(self.product.toarray(), np.float64)

    @property
    def certain(self) -> "ProductRows":
        """This assigner; its scores are exact."""
        return self

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
        """Assign all rows; see :class:`quickmeans.kmeans.assignment.Assigner`. `second` and `norms` are not filled."""
        labels, scores = self.nearest(rows, 1, 1, n_threads)
        assignment.labels[:], assignment.best[:] = labels[:, 0], scores[:, 0]
        assignment.n_listed = assignment.n_settled = 0

    def label(self, rows: NDArray[Any], n_threads: int, first: int = 0) -> tuple[NDArray[np.int32], int]:
        """The labels of the rows; no candidate needs an exact score."""
        return self.nearest(rows, 1, 1, n_threads)[0][:, 0].astype(np.int32), 0

    def label_csr(self, rows: kernels.CsrRows, n_threads: int) -> None:
        """None: the product needs dense rows."""
        return

    def nearest(
        self, rows: NDArray[Any], m: int, n_listed: int, n_threads: int
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The m nearest centroids of every row and their scores."""
        find = partial(self.product.nearest_rows, bias=self._bias, return_distance=True, n_threads=n_threads)
        try:
            labels, values = find(rows, m)
        except ComparisonError as error:
            raise NotComparableError(self.dtype, error.row) from None
        return labels, -values

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs; the centroids follow from the product."""
        return {name: value for name, value in self.__dict__.items() if name != "centers"}
