r"""QuicK-means, the paper's Algorithm 1: the centroids are the rows of a product of sparse factors.

.. math:: \min_{S_1, \ldots, S_Q, t} \; \sum_i w_i \|x_i - v_{t_i}\|^2, \qquad V = S_1 \cdots S_Q

Rows are assigned to the nearest :math:`v_k`; with :math:`u_k` the mean and :math:`n_k` the weight of cluster k, the
objective is :math:`\sum_k n_k \|u_k - v_k\|^2` plus what does not depend on V, so the factors are learned from U with
weights n, starting from the last ones. Neither step raises the objective.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quickmeans.lloyd.assign import ProductRows
from quickmeans.lloyd.loop import Clustering, Observer, stopping_at_interrupt
from quickmeans.lloyd.passes import Pass
from quickmeans.transform import SparseProduct

# factor(U, n, previous): a product near U, no farther than the previous one
Factor = Callable[[NDArray[np.float64], NDArray[np.float64], SparseProduct | None], SparseProduct]


def quick_means(
    passes: Pass,
    run: Clustering,
    factor: Factor,
    *,
    max_iter: int,
    tol: float,
    observe: Observer | None = None,
) -> Clustering:
    """Algorithm 1, from the centroids of `run`; its history gets the objective after every step.

    The first factors are learned from the means of the clusters around the given centroids. A step that raises the
    objective (only a hierarchical factorization may) is taken, and the best iterate is what is returned.
    """
    passes.assign(run.screen)
    passes.follow()
    rows = _factored(passes, run.centers, factor, None)
    run.centers, run.screen = rows.centers, rows
    with stopping_at_interrupt(run):
        _iterate(passes, rows, run, factor, max_iter, tol, observe)
    return run.finish(passes)


def _iterate(
    passes: Pass,
    rows: ProductRows,
    run: Clustering,
    factor: Factor,
    max_iter: int,
    tol: float,
    observe: Observer | None,
) -> None:
    lowest, best = np.inf, rows
    for _ in range(max_iter):
        passes.assign(rows)
        changed = passes.follow()
        assigned = passes.sums.objective(rows.centers)
        last, rows = rows, _update(passes, rows, factor)
        updated = passes.sums.objective(rows.centers)
        if updated < lowest:
            lowest, best = updated, rows
        run.advance(best.centers, best, assigned, updated)
        if observe is not None and observe(run.n_iter, updated):
            return
        if changed == 0 or float(((rows.centers - last.centers) ** 2).sum()) <= tol:
            run.converged = True
            return


def _update(passes: Pass, rows: ProductRows, factor: Factor) -> ProductRows:
    """New factors; empty clusters are given rows if that does not raise the objective."""
    before = passes.sums.objective(rows.centers)
    if moves := passes.refill():
        passes.follow()
        new = _factored(passes, rows.centers, factor, rows.product)
        if passes.sums.objective(new.centers) <= before:
            return new
        passes.undo(moves)
        passes.follow()
    return _factored(passes, rows.centers, factor, rows.product)


def _factored(
    passes: Pass, centers: NDArray[np.float64], factor: Factor, previous: SparseProduct | None
) -> ProductRows:
    """The product learned from the means of the clusters; of one without rows, from its centroid."""
    sums = passes.sums
    return ProductRows(factor(sums.means(centers), sums.weights, previous), passes.points.frame)
