"""Where the centroids start."""

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.lloyd.points import Points, take_rows
from quickmeans.lloyd.screening import leading_directions
from quickmeans.threads import instruction_set

_COLUMNS = 16  # distances between starting points are measured in so many leading directions, plus the rest
_ROWS_PER_CENTER = 20  # k-means++ and the first iterations look at so many rows per centroid
_TRIALS = 3
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
    Y = points.take(rows)
    unit = max(float(np.abs(Y).max()), np.finfo(float).tiny)  # so that squares neither overflow nor vanish
    basis = _directions(Y / unit, rng)
    projected = Y @ basis / unit
    rest = np.maximum(np.einsum("ij,ij->i", Y / unit, Y / unit) - np.einsum("ij,ij->i", projected, projected), 0)
    chosen = np.zeros(n_clusters, np.int64)
    found = _native.seed(
        np.ascontiguousarray(projected.T, np.float32),
        rest.astype(np.float32),
        weights,
        int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())),
        rng.random((n_clusters, _TRIALS)),
        chosen,
        instruction_set(),
    )
    return _filled(Y[chosen[:found]], n_clusters)


def _directions(Y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """The leading directions of some of the rows."""
    some = Y[:: max(1, len(Y) // 2048)]
    start = rng.standard_normal((Y.shape[1], _COLUMNS + 8))[:, : min(some.shape)]
    return leading_directions(some, leading_directions(some, start))[:, :_COLUMNS]


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
