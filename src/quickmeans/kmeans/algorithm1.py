r"""QuicK-means, the paper's Algorithm 1: the centroids are the rows of a product of sparse factors.

.. math:: \min_{S_1, \ldots, S_Q, t} \; \sum_i w_i \|x_i - v_{t_i}\|^2, \qquad V = S_1 \cdots S_Q

Rows are assigned to the nearest :math:`v_k`; with :math:`u_k` the mean and :math:`n_k` the weight of cluster k, the
objective is :math:`\sum_k n_k \|u_k - v_k\|^2` plus what does not depend on V, so the factors are learned from U with
weights n, starting from the last ones. Neither step raises the objective.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.lloyd import Clustering, Observer, stopping_at_interrupt
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.screen import ProductRows
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
    """Algorithm 1, from where `run` has got to; its history gets the objective after every step.

    The first factors are learned from the means of the clusters around the given centroids. A step that raises the
    objective (only a hierarchical factorization may) is taken, and the best iterate is what is returned. It ends when
    an assignment leaves the objective as it was, or the centroids move by no more than `tol`.
    """
    if run.current is None:
        passes.assign(run.screen)
        passes.follow()
        run.current = _factored(passes, run.centers, factor, None)
        run.centers, run.screen = run.current.centers, run.current
    with stopping_at_interrupt(run):
        while run.n_iter < max_iter and not run.converged:
            _iterate(passes, run, factor, tol)
            if observe is not None and observe(run.n_iter, run.history[-1]):
                break
    return run.finish(passes)


def _iterate(passes: Pass, run: Clustering, factor: Factor, tol: float) -> None:
    """One iteration."""
    rows = run.current
    assert rows is not None
    passes.assign(rows)
    passes.follow()
    assigned = passes.sums.objective(rows.centers)
    new = _update(passes, rows, factor)
    updated = passes.sums.objective(new.centers)
    stalled = bool(run.history) and assigned == run.history[-1]
    is_best = updated < min(run.history[1::2], default=np.inf)
    run.advance(new.centers if is_best else run.centers, new if is_best else run.screen, assigned, updated)
    run.current = new
    run.converged = stalled or float(((new.centers - rows.centers) ** 2).sum()) <= tol


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
