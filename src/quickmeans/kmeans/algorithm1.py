r"""The paper's Algorithm 1, QuicK-means: the centroids are the rows of a product of sparse factors.

.. math:: \min_{S_1, \ldots, S_Q, t} \; \sum_n w_n \|x_n - v_{t_n}\|^2, \qquad V = S_1 \cdots S_Q, \quad S_q \in E_q

For fixed t the objective is :math:`\sum_k n_k \|u_k - v_k\|^2` plus a constant, with :math:`u_k` the mean and
:math:`n_k` the weight of cluster k, so :math:`A = D_{\sqrt n} U` is factored with a fixed leftmost factor
:math:`D_{\sqrt n}`. Neither step raises the objective. Line numbers are those of the paper's Algorithm 1.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.lloyd import Iterate, Observer, stopping_at_interrupt
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.transform import SparseProduct

# learn(U, n, init, n_iter) -> V: after n_iter iterations, the factors nearest to U with weights n, from those of `init`
Learn = Callable[[NDArray[np.float64], NDArray[np.float64], SparseProduct | None, int], SparseProduct]


def quick_means(
    X: Pass, iterate: Iterate, learn: Learn, *, max_iter: int, tol: float, observe: Observer | None = None
) -> None:
    """Algorithm 1, from an iterate on. The best V is kept as its assigner.

    Stops when an assignment leaves the objective as it was, or when V moves by no more than `tol`. Only a hierarchical
    factorization may raise the objective. Empty clusters get a row if that does not raise it.
    """
    if iterate.latest is None:  # line 1: the first factors, of the means around the given centroids
        X.assign(iterate.assigner)
        iterate.latest = iterate.assigner = update(X, iterate.centers, learn, None, iterate)
        iterate.centers = iterate.latest.centers
    with stopping_at_interrupt(iterate):
        while iterate.n_iter < max_iter and not iterate.converged:  # line 2
            V = iterate.latest
            X.assign(V)  # line 3: t = argmin sum_n |x_n - v_{t_n}|^2, through the fast operator
            assigned = X.sums.objective(V.centers)
            moves = X.refill()
            V_new = update(X, V.centers, learn, V.product, iterate)  # lines 4 to 8
            if moves and X.sums.objective(V_new.centers) > assigned:
                X.undo(moves)
                V_new = update(X, V.centers, learn, V.product, iterate)
            advance(iterate, V, V_new, assigned, X.sums.objective(V_new.centers), tol)
            if observe is not None and observe(iterate.n_iter, iterate.history[-1]):
                break


def update(
    X: Pass, fallback: NDArray[np.float64], learn: Learn, init: SparseProduct | None, iterate: Iterate
) -> ProductRows:
    """Lines 4 to 8: the means of the clusters, and the sparse factors nearest to them."""
    n = X.sums.weights  # line 4
    U = X.sums.means(fallback)  # line 4; an empty cluster keeps its centroid
    V = learn(U, n, init, iterate.n_iter)  # lines 5 to 7: A = D_sqrt(n) U and E_0 = {D_sqrt(n)} are the weights n
    return ProductRows(V, iterate.assigner.geometry)  # line 8


def advance(iterate: Iterate, V: Assigner, V_new: Assigner, assigned: float, updated: float, tol: float) -> None:
    """Record one iteration; the best V so far is what will be returned."""
    stalled = bool(iterate.history) and assigned == iterate.history[-1]
    if updated < min(iterate.history[1::2], default=np.inf):
        iterate.assigner, iterate.centers = V_new, V_new.centers
    iterate.history += [assigned, updated]
    iterate.n_iter += 1
    iterate.latest = V_new
    iterate.converged = stalled or float(((V_new.centers - V.centers) ** 2).sum()) <= tol
