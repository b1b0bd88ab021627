"""Rows in CSR form: their points, iterations over them, and where centroids start.

Nothing here makes a row dense. The cost is that of the entries that are stored, times the number of centroids where
rows are compared with all of them.
"""

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import NotComparableError
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.iteration import Labelled
from quickmeans.kmeans.rows import Points, Rows, csr_lengths, spherical_geometry, working_dtype
from quickmeans.kmeans.screen import Screen


def sparse_points(rows: Rows, csr: kernels.CsrRows, n_threads: int, *, spherical: bool) -> Points:
    """The points of rows in CSR form, or a ValueError if their squares overflow."""
    weights = rows.weights
    mean, squares = csr.moments(weights)
    if not np.isfinite(squares.sum()):
        raise NotComparableError(csr.dtype, 0)
    total = float(rows.shape[0] if weights is None else weights.sum())
    variances = squares / total
    dtype = working_dtype(rows.dtype, mean, variances)
    if not spherical:
        return Points(rows, Geometry(mean, dtype), total, variances, n_threads, weights)
    lengths = csr_lengths(csr, n_threads)
    geometry = spherical_geometry(len(mean), dtype, float(lengths.min()))
    return Points(rows, geometry, total, variances, n_threads, (1.0 if weights is None else weights) / lengths)


class SparseIteration:
    """An :class:`quickmeans.kmeans.iteration.Iteration` over rows in CSR form, from centered centroids."""

    def __init__(self, points: Points, csr: kernels.CsrRows, centers: NDArray[np.float64]) -> None:
        self.points, self.csr = points, csr
        geometry = points.geometry
        self.norms = csr.norms(geometry.mean, points.n_threads)
        self.native = kernels.CsrClusters(
            csr,
            centers,
            mean=geometry.mean,
            norms=self.norms,
            weights=points.weights,
            sum_weights=points.sum_weights,
            scatter=points.scatter,
            spherical=geometry.spherical,
            dtype=geometry.dtype,
            n_threads=points.n_threads,
        )

    @property
    def converged(self) -> bool:
        return self.native.converged

    def step(self, tol: float) -> tuple[float, float]:
        bad = self.native.iterate(tol)
        if bad >= 0:
            raise NotComparableError(self.points.geometry.dtype, bad)
        return self.native.assigned, self.native.objective

    def centers(self) -> NDArray[np.float64]:
        return self.native.centers()

    def label(self, screen: Screen, centers: NDArray[np.float64]) -> Labelled:
        geometry, weights, n_threads = self.points.geometry, self.points.weights, self.points.n_threads
        labels = screen.label_csr(self.csr, n_threads)
        assert labels is not None
        squares = self.csr.own_squares(
            labels, centers, geometry.mean, self.norms, spherical=geometry.spherical, n_threads=n_threads
        )
        K = len(centers)
        counts = np.bincount(labels, weights, K).astype(np.float64)
        sizes = np.bincount(labels if weights is None else labels[weights > 0], minlength=K)
        return Labelled(labels, float(squares.sum() if weights is None else squares @ weights), counts, sizes)
