"""Functions of rows that a fitted model computes: of dense blocks, and of rows in CSR form."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assigner, NotComparableError
from quickmeans.kmeans.distances import CenterDistances
from quickmeans.kmeans.memory_pass import difference_squares
from quickmeans.kmeans.rows import csr_lengths


@dataclass(frozen=True)
class Labels:
    """The labels of rows; a :class:`quickmeans.kmeans.rows.RowFunction`."""

    assigner: Assigner
    n_threads: int

    def __call__(self, first: int, block: NDArray[Any]) -> NDArray[np.int32]:
        return self.assigner.label(block, self.n_threads, first)[0]

    def of_csr(self, rows: kernels.CsrRows) -> NDArray[np.int32] | None:
        """The labels of rows in CSR form, or None if they must come as blocks."""
        if self.assigner.geometry.spherical:
            csr_lengths(rows, self.n_threads)  # refuses zero rows by their number
        return self.assigner.label_csr(rows, self.n_threads)


@dataclass(frozen=True)
class Squares:
    """Squared distances of rows from the centroids of their labels, in float64; a RowFunction too."""

    labels: Labels
    centers: NDArray[np.float64]

    def __call__(self, first: int, block: NDArray[Any]) -> NDArray[np.float64]:
        labels = self.labels(first, block)
        return difference_squares(block, labels, self.centers, self.labels.assigner.geometry, self.labels.n_threads)

    def of_csr(self, rows: kernels.CsrRows) -> NDArray[np.float64] | None:
        """The same of rows in CSR form, or None if they must come as blocks."""
        labels, geometry, n_threads = self.labels.of_csr(rows), self.labels.assigner.geometry, self.labels.n_threads
        if labels is None:
            return None
        norms = rows.norms(geometry.mean, n_threads)
        options: dict[str, Any] = {"spherical": geometry.spherical, "n_threads": n_threads}
        return rows.own_squares(labels, self.centers, geometry.mean, norms, **options)


@dataclass(frozen=True)
class Distances:
    """Distances of rows from all centroids; a RowFunction too."""

    of_blocks: CenterDistances
    n_threads: int

    def __call__(self, first: int, block: NDArray[Any]) -> NDArray[Any]:
        return self.of_blocks(self.n_threads, first, block)

    def of_csr(self, rows: kernels.CsrRows) -> NDArray[Any]:
        """The same of rows in CSR form."""
        geometry, dtype = self.of_blocks.geometry, self.of_blocks.dtype
        norms = rows.norms(geometry.mean, self.n_threads)
        if not np.isfinite(norms).all():
            raise NotComparableError(rows.dtype, int(np.argmin(np.isfinite(norms))))
        if geometry.spherical:
            csr_lengths(rows, self.n_threads)
        centers = self.of_blocks.centers.astype(np.float64) - geometry.mean
        options: dict[str, Any] = {"spherical": geometry.spherical, "n_threads": self.n_threads}
        return rows.distances(centers, geometry.mean, norms, dtype, **options)
