r"""Hierarchical palm4MSA: one factor at a time is split off a residual, and all factors so far are adjusted together.

At level l the residual :math:`T_{l-1}` is factored as :math:`S_l T_l` by palm4MSA (or :math:`T_l S` from the other end if K > D, so
that the residual always has the larger side), then palm4MSA runs on all of :math:`S_1 \cdots S_l T_l` against U: 2 (Q - 1)
calls. A residual keeps half as many entries per row and column as the one before.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quickmeans.transform.factorization import (
    Callback,
    Factorization,
    check_matrix,
    check_positive,
    check_weights,
    result_dtype,
)
from quickmeans.transform.palm import Palm, factor_shapes
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.projections import Matrix, Projection, TopPerRowAndColumn


def hierarchical_palm4msa(
    U: ArrayLike,
    n_factors: int | str = "auto",
    sparsity_level: int = 5,
    *,
    weights: ArrayLike | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
    callback: Callback | None = None,
) -> Factorization:
    r"""Factor U into sparse matrices by hierarchical palm4MSA.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    n_factors : int or "auto"
        Q; "auto" is log2(min(K, D)), at least 2.
    sparsity_level : int
        Entries per row and per column that every factor keeps.
    weights : array of shape (K,), optional
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`.
    max_iter : int
        The most sweeps of each of the 2 (Q - 1) calls of palm4MSA.
    tol : float
        Each call stops when a sweep lowers its objective by less than this share.
    callback : callable, optional
        Called after every level as ``callback(level, objective)``; a true result ends the sweeps of the levels to come early.

    Returns
    -------
    Factorization
        Its history is that of the last call, on all Q factors. From level to level the constraints get tighter, so the
        objective may rise there. Nothing is random.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_positive("sparsity_level", sparsity_level, whole=True)
    check_positive("max_iter", max_iter, whole=True)
    check_positive("tol", tol, zero=True)
    Q, A = len(factor_shapes(matrix.shape, n_factors)), min(matrix.shape)
    from_left = matrix.shape[0] <= matrix.shape[1]
    done: list[Matrix] = []
    residual, scale, history, converged = matrix, 1.0, [float((n[:, None] * matrix**2).sum())], True
    for level in range(1, Q):
        keep = max(sparsity_level, -(-A // 2**level))
        split = _split(residual, n, from_left and level > 1, from_left, sparsity_level, keep, max_iter, tol)
        factors = [*done, *split] if from_left else [*split, *done]
        sets: list[Projection] = [TopPerRowAndColumn(sparsity_level)] * len(factors)
        sets[-1 if from_left else 0] = TopPerRowAndColumn(keep)
        solver = Palm(matrix, n, factors, sets, once_per_sweep=False)
        history, converged = solver.run(max_iter, tol, None)
        factors, scale = solver.factors, solver.scale
        done, residual = (factors[:-1], factors[-1]) if from_left else (factors[1:], factors[0])
        if callback is not None and callback(level, history[-1]):
            max_iter = 1
    whole = [*done, residual] if from_left else [residual, *done]
    return _finished(matrix, n, [scale * whole[0], *whole[1:]], history, converged, result_dtype(U))
