"""Where the centroids start."""

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.calibration import leading_directions
from quickmeans.kmeans.points import Points, rows_at_a_time, squared_norms, take_rows

_COLUMNS = 16  # distances between starting points are measured in so many leading directions, plus the rest
_ROWS_PER_CENTER = 16  # k-means++ and the first iterations look at so many rows per centroid
_FEW_TRIALS = 3  # draws per centre where there are many centres; else as many as scikit-learn makes
_FEW_ROWS = 2048


def random_rows(points: Points, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Different rows of X, drawn by weight, about the mean."""
    rows, weights = candidates(points, len(points), rng)
    keys = rng.exponential(size=len(rows)) / weights
    chosen = np.argsort(keys, kind="stable")[:n_clusters]
    return _filled(points.take(rows[chosen]), n_clusters)


def kmeans_plusplus(points: Points, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows of X, each the best of a few drawn by weight times squared distance from those before it.

    Distances are those in the leading directions of a sample, plus what the two rows have outside of them.
    """
    rows, weights = candidates(points, sample_size(points, n_clusters), rng)
    projected, rest = _projected(points, rows, rng)
    chosen = kernels.seed(
        projected,
        rest,
        weights,
        min(int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())), len(rows) - 1),
        rng.random((n_clusters, _FEW_TRIALS if n_clusters > 512 else 2 + int(np.log(n_clusters)))),
    )
    return _filled(points.take(rows[chosen]), n_clusters)


def _projected(
    points: Points, rows: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The rows in some leading directions, one direction after the other, and their squared distances from these."""
    step = rows_at_a_time(points.X.shape[1])
    some = points.take(rows[np.linspace(0, len(rows) - 1, min(len(rows), step)).astype(np.int64)])
    unit = (points.scatter / points.total) ** 0.5 or 1.0  # so that squares neither overflow nor vanish
    start = rng.standard_normal((some.shape[1], _COLUMNS + 8))[:, : min(some.shape)]
    basis = leading_directions(some / unit, leading_directions(some / unit, start))[:, :_COLUMNS]
    projected, rest = np.empty((basis.shape[1], len(rows)), np.float32), np.empty(len(rows), np.float32)
    for begin in range(0, len(rows), step):
        Y = points.take(rows[begin : begin + step]) / unit
        Z = Y @ basis
        projected[:, begin : begin + step] = Z.T
        rest[begin : begin + step] = np.maximum(squared_norms(Y) - squared_norms(Z), 0)
    return projected, rest


def _filled(centers: NDArray[np.float64], n_clusters: int) -> NDArray[np.float64]:
    """The centroids, some of them twice if there are too few: empty clusters are refilled later."""
    return np.resize(centers, (n_clusters, centers.shape[1])) if len(centers) < n_clusters else centers


def candidates(points: Points, count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Some rows with weight, and their weights.

    Where rows are few they are looked at all together: equal ones become one with the sum of their weights, in an order
    that does not depend on theirs, so that a weight is as good as repetition.
    """
    weights = np.ones(len(points)) if points.weights is None else points.weights
    rows = np.flatnonzero(weights > 0)
    if len(rows) <= _FEW_ROWS:
        _, first, inverse = np.unique(take_rows(points.X, rows), axis=0, return_index=True, return_inverse=True)
        return rows[first], np.bincount(inverse.ravel(), weights[rows]).astype(np.float64)
    if count < len(rows):
        rows = np.sort(rng.choice(rows, count, replace=False))
    return rows, np.asarray(weights[rows], np.float64)


def sample_size(points: Points, n_clusters: int) -> int:
    """How many rows stand for all of them at the start."""
    return min(len(points), max(_ROWS_PER_CENTER * n_clusters, _FEW_ROWS))
