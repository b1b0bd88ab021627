"""Where centroids of rows in CSR form start.

The search for better clusters needs dense rows. It gets the projections of some rows on their leading singular vectors:
the differences between clusters lie there, and what is lost is much the same for all centroids. The means of the
clusters that it finds are one start. Rows that are drawn by k-means++ are another, and sometimes better where there are
hardly any clusters: a few iterations decide.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.dense import DenseRows
from quickmeans.kmeans.rows import Index, Points
from quickmeans.kmeans.sparse import SparseIteration
from quickmeans.kmeans.start import DRAWS
from quickmeans.kmeans.swaps import improve

_ROWS = 64  # per centroid that a start looks at,
_LEAST_ROWS = 2048  # or so many if that is more
_DRAWS = 8  # per centroid: as many as one cache line holds, which take no longer than fewer
_DRAW_WORK = 2e9  # k-means++ sees as many rows as their entries times K are, a second or so, if that is still more
_TRIED = 5  # iterations over all rows, after which the better of two starts is taken
_MORE = 8  # more directions than centroids are projected on,
_MOST_DIRECTIONS = 128  # but not more than that
_POWERS = 2  # steps of subspace iteration
_FIRST_ITERATIONS, _LAST_ITERATIONS = 3, 10  # before the first swaps and after the last, as for dense rows


def sparse_start(points: Points, X: Any, csr: kernels.CsrRows, context: Context) -> Start:
    """Centroids drawn from some rows, or better ones that a search finds.

    Parameters
    ----------
    points : Points
    X : csr_array
        The rows.
    csr : kernels.CsrRows
        The same.
    context : Context
    """
    settings = context.settings
    if not settings.effort.passes or settings.n_clusters == 1:
        return Start(_drawn(points, csr, context))
    index = _sample(points, max(_ROWS * settings.n_clusters, _LEAST_ROWS), context.rng)
    start = _searched(points, X[index], _weights(points, index), context)
    if start.interrupted or settings.init == "random":
        return start
    try:
        return Start(_better(points, csr, start.centers, _drawn(points, csr, context), settings.tol))
    except KeyboardInterrupt:
        return start._replace(ended=True, interrupted=True)


def _better(
    points: Points,
    csr: kernels.CsrRows,
    centers: NDArray[np.float64],
    others: NDArray[np.float64],
    tol: float,
) -> NDArray[np.float64]:
    """The centroids that have the lower objective after some iterations, moved by these."""
    lowest, best = np.inf, centers
    for start in (centers, others):
        iteration, steps = SparseIteration(points, csr, start), 0
        while steps < _TRIED and not iteration.converged:
            objective = iteration.step(points.tolerance(tol))[1]
            steps += 1
        if objective < lowest:
            lowest, best = objective, iteration.centers()
    return best


def _sample(points: Points, size: int, rng: np.random.Generator) -> Index:
    """So many rows with weight, or all, in ascending order."""
    index = np.arange(len(points)) if points.weights is None else np.flatnonzero(points.weights > 0)
    return np.sort(rng.choice(index, size, replace=False)) if len(index) > size else index


def _weights(points: Points, index: Index) -> NDArray[np.float64]:
    return np.ones(len(index)) if points.weights is None else points.weights[index]


def _drawn(points: Points, csr: kernels.CsrRows, context: Context) -> NDArray[np.float64]:
    """Rows, centered, that k-means++ draws, or that are drawn by weight; some twice if there are too few."""
    K, rng = context.settings.n_clusters, context.rng
    affordable = int(_DRAW_WORK * len(points) / (K * max(csr.n_entries, 1)))
    index = _sample(points, max(affordable, _ROWS * K, _LEAST_ROWS), rng)
    weights = _weights(points, index)
    if context.settings.init == "random":
        chosen = np.argsort(rng.exponential(size=len(index)) / weights, kind="stable")[:K]
    else:
        chosen = _plusplus(csr, index, weights, K, rng, points.n_threads)
    return np.resize(points.take(index[chosen]), (K, points.n_columns))


def _plusplus(
    csr: kernels.CsrRows,
    index: Index,
    weights: NDArray[np.float64],
    n_clusters: int,
    rng: np.random.Generator,
    n_threads: int,
) -> Index:
    """Positions in the index, each the best of a few drawn by weight times squared distance from those before it."""
    total = np.cumsum(weights)
    first = min(int(np.searchsorted(total, rng.random() * total[-1])), len(index) - 1)
    uniforms = rng.random((n_clusters, _DRAWS))
    return csr.seed(index, weights, first, uniforms, n_threads)


def _searched(points: Points, X: Any, weights: NDArray[np.float64], context: Context) -> Start:
    """The means of the clusters that a search finds among the projections of these rows."""
    settings = context.settings
    assert isinstance(settings.init, str)
    X, factors = X.astype(points.geometry.dtype), np.ones(X.shape[0])
    if points.geometry.spherical:
        factors = 1 / np.sqrt(X.multiply(X).sum(axis=1))
    rows = _projected(sp.diags_array(factors, dtype=X.dtype) @ X, points, settings.n_clusters + _MORE, context.rng)
    dense = DenseRows(rows, weights / weights.mean(), np.zeros(rows.shape[1]), 1.0, 1.0, False, points.n_threads)
    centers, moves, interrupted = DRAWS[settings.init](dense, settings.n_clusters, context.rng), [], False
    native = dense.search(centers, kernels.Search)
    native.iterate(1)  # Ctrl-C before the first labels ends the fit
    native.keep()
    try:
        native.iterate(_FIRST_ITERATIONS)
        improve(native, settings.effort, 0.0, lambda move, _: moves.append(move))
        native.iterate(_LAST_ITERATIONS)
        context.say(f"Search among {len(rows)} of {len(points)} rows: {', '.join(moves) or 'nothing to move'}")
    except KeyboardInterrupt:
        native.go_back()
        interrupted = True
    centers = _means(points, X, factors * weights, weights, native.labels(), settings.n_clusters)
    return Start(centers, ended=interrupted, interrupted=interrupted)


def _projected(X: Any, points: Points, rank: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The centered rows in the directions of their largest singular values, in a unit of about one."""
    n, D = X.shape
    dtype, mean = points.geometry.dtype, points.geometry.mean.astype(points.geometry.dtype)
    rank = min(rank, _MOST_DIRECTIONS, n, D)
    Q = rng.standard_normal((n, rank)).astype(dtype)
    for _ in range(_POWERS):
        W = X.T @ Q - np.outer(mean, Q.sum(axis=0))
        Q, _ = np.linalg.qr(X @ W - mean @ W)
    W = X.T @ Q - np.outer(mean, Q.sum(axis=0))
    squares, V = np.linalg.eigh((W.T @ W).astype(np.float64))
    rows = Q @ (V * np.sqrt(np.maximum(squares, 0)))
    spread = np.sqrt((rows**2).sum() / n)
    return np.asarray(rows / (spread or 1.0), np.float32)


def _means(
    points: Points,
    X: Any,
    sum_weights: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: NDArray[np.int32],
    K: int,
) -> NDArray[np.float64]:
    """The centered means of the K clusters of these rows; zero is the mean of none."""
    n = X.shape[0]
    members = sp.csr_array((sum_weights, (labels, np.arange(n))), shape=(K, n))
    sums = (members @ X).toarray()
    if points.geometry.spherical:
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.where(lengths > 0, lengths, 1))
    counts = np.bincount(labels, weights, K)[:, None]
    return np.asarray(sums / np.where(counts > 0, counts, 1) - points.geometry.mean)
