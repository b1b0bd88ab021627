r"""QuicK-means, the paper's Algorithm 1: the centroids are the rows of a product of sparse factors.

.. math:: \min_{S_1, \ldots, S_Q, t} \; \sum_i w_i \|x_i - v_{t_i}\|^2, \qquad V = S_1 \cdots S_Q

Rows are assigned to the nearest :math:`v_k`; with :math:`u_k` the mean and :math:`n_k` the weight of cluster k, the
objective is :math:`\sum_k n_k \|u_k - v_k\|^2` plus what does not depend on V, so the factors are learned from U with
weights n, starting from the last ones. Neither step raises the objective.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quickmeans.lloyd.assign import Assignment, ProductRows
from quickmeans.lloyd.loop import Clustering, Observer, finish, refill, stopping_at_interrupt
from quickmeans.lloyd.points import Points
from quickmeans.lloyd.screening import Screener
from quickmeans.lloyd.update import ClusterSums
from quickmeans.transform import SparseProduct

# factor(U, n, previous): a product near U, no farther than the previous one
Factor = Callable[[NDArray[np.float64], NDArray[np.float64], SparseProduct | None], SparseProduct]


def quick_means(
    points: Points,
    centers: NDArray[np.float64],
    screener: Screener,
    factor: Factor,
    *,
    max_iter: int,
    tol: float,
    observe: Observer | None = None,
) -> Clustering:
    """Algorithm 1, from centroids about the mean; the history has the objective after every step.

    The first factors are learned from the means of the clusters around the given centroids. A step that raises the
    objective (only a hierarchical factorization may) is taken, and the best iterate is what is returned.
    """
    sums = ClusterSums(points, len(centers))
    found = Assignment.empty(len(points), points.frame.dtype)
    screener(centers).assign(points.X, found, points.n_threads)
    sums.follow(found.labels)
    rows = ProductRows(factor(sums.means(centers), sums.weights, None), points.frame)
    run = Clustering(rows.centers, rows, found)
    with stopping_at_interrupt(run):
        _iterate(points, sums, rows, run, factor, max_iter, tol, observe)
    run.screen.assign(points.X, found, points.n_threads)
    finish(run, sums)
    return run


def _iterate(
    points: Points,
    sums: ClusterSums,
    rows: ProductRows,
    run: Clustering,
    factor: Factor,
    max_iter: int,
    tol: float,
    observe: Observer | None,
) -> None:
    lowest, best = np.inf, rows
    for _ in range(max_iter):
        rows.assign(points.X, run.found, points.n_threads)
        changed = sums.follow(run.found.labels)
        assigned = sums.objective(rows.centers)
        last, rows = rows, _update(points, sums, rows, factor, run.found)
        updated = sums.objective(rows.centers)
        if updated < lowest:
            lowest, best = updated, rows
        run.advance(best.centers, best, assigned, updated)
        if observe is not None and observe(run.n_iter, updated):
            return
        if changed == 0 or float(((rows.centers - last.centers) ** 2).sum()) <= tol:
            run.converged = True
            return


def _update(points: Points, sums: ClusterSums, rows: ProductRows, factor: Factor, found: Assignment) -> ProductRows:
    """New factors; empty clusters are given rows if that does not raise the objective."""
    labels, before = found.labels.copy(), sums.objective(rows.centers)
    if refill(points, found, len(rows.centers)):
        sums.follow(found.labels)
        new = ProductRows(factor(sums.means(rows.centers), sums.weights, rows.product), points.frame)
        if sums.objective(new.centers) <= before:
            return new
        found.labels[:] = labels
        sums.follow(labels)
    return ProductRows(factor(sums.means(rows.centers), sums.weights, rows.product), points.frame)
