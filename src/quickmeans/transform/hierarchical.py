r"""Hierarchical palm4MSA: one factor at a time is split off, in 2 (Q - 1) calls of :mod:`quickmeans.transform.palm`.

With K <= D, level l splits the residual into two factors, :math:`R_{l-1} \approx S_l R_l` with :math:`R_0 = U`, and
then refits all factors of :math:`U \approx \lambda S_1 \cdots S_l R_l`. The residual must be on the larger side, so for
K > D the matrix :math:`U' N^{1/2}` is factored instead. The number of entries per row and column of the residual is
halved at every level; at the last level it is that of the other factors.

In a split the residual starts at zero, the other factor at the identity, and the residual is updated first. Its rows
are weighted by the curvature of the objective along them, :math:`(L' N L)_{ii}`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quickmeans.checks import check_number, check_whole
from quickmeans.threads import with_one_blas_thread
from quickmeans.transform.factorization import (
    Callback,
    Factorization,
    check_matrix,
    check_weights,
    finished,
    result_dtype,
)
from quickmeans.transform.palm import Method, Palm, check_method, factor_shapes, palm4msa
from quickmeans.transform.presets import is_preset, share
from quickmeans.transform.projections import AtMostPerRowAndColumn, Matrix, Projection, TopPerRowAndColumn


@with_one_blas_thread
def hierarchical_palm4msa(
    U: ArrayLike,
    n_factors: int | str = "auto",
    sparsity_level: int = 5,
    *,
    weights: ArrayLike | None = None,
    lambda_update: str = "factor",
    steps: str = "scaled",
    max_iter: int = 100,
    tol: float = 1e-4,
    callback: Callback | None = None,
) -> Factorization:
    r"""Factor U into sparse matrices by hierarchical palm4MSA.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    n_factors : int, "auto", "paper" or "journal", default="auto"
        The number of factors Q, at most 64, or a preset that also changes the sets; see :func:`palm4msa`.
    sparsity_level : int, default=5
        The number of entries per row and per column that every factor keeps.
    weights : array of shape (K,), default=None
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`; None stands for ones.
    lambda_update, steps : str, default="factor" and "scaled"
        How factors are updated; see :func:`palm4msa`.
    max_iter : int, default=100
        The most sweeps of each of the 2 (Q - 1) calls of palm4MSA.
    tol : float, default=1e-4
        A call ends when a sweep lowers its objective by less than this share of it.
    callback : callable, default=None
        Called as ``callback(sweep, objective)`` after every sweep of the last refit; a true result stops the solver.

    Returns
    -------
    Factorization
        Its history is that of the last refit, of all Q factors. There is no randomness.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_whole("sparsity_level", sparsity_level, 1)
    check_whole("max_iter", max_iter, 1)
    check_number("tol", tol, 0)
    method = check_method(lambda_update, steps)
    n_levels = len(factor_shapes(matrix.shape, n_factors)) - 1
    if n_levels == 0:
        same: dict[str, Any] = {"lambda_update": lambda_update, "steps": steps, "max_iter": max_iter, "tol": tol}
        return palm4msa(U, 1, sparsity_level, weights=weights, callback=callback, **same)
    levels = _Levels(n_levels, sparsity_level, is_preset(n_factors), method)
    if matrix.shape[0] <= matrix.shape[1]:
        factors, history, converged = levels.split(matrix, n, max_iter, tol, callback)
    else:
        root = np.sqrt(n)[:, None]
        turned, ones = np.ascontiguousarray((root * matrix).T), np.ones(matrix.shape[1])
        factors, history, converged = levels.split(turned, ones, max_iter, tol, callback)
        factors = [S.T for S in reversed(factors)]
        factors[0] = factors[0] / root
    return finished(matrix, n, factors, history, converged, result_dtype(U))


@dataclass(frozen=True)
class _Levels:
    """The levels of the hierarchy, and their sets for a sparsity level k."""

    count: int
    k: int
    is_preset: bool
    method: Method

    def residual(self, shape: tuple[int, ...], level: int) -> tuple[Projection, Projection]:
        """Return the sets of the residual, in the split and in the refit."""
        if self.is_preset:
            return (share(shape, self.k, level),) * 2
        last = level == self.count
        most = AtMostPerRowAndColumn(self.k if last else max(shape[0] >> level, self.k), scaled=True)
        return most, TopPerRowAndColumn(self.k) if last else most

    def split(
        self, U: Matrix, n: Matrix, max_iter: int, tol: float, callback: Callback | None
    ) -> tuple[list[Matrix], list[float], bool]:
        """Return the factors of a matrix with K <= D, the history of the last refit, and whether that converged."""
        factors, history, converged = [U], [0.0], True
        square: Projection = TopPerRowAndColumn(self.k) if self.is_preset else AtMostPerRowAndColumn(self.k)
        for level in range(1, self.count + 1):
            in_split, in_refit = self.residual(U.shape, level)
            start = [np.eye(len(U)), np.zeros(U.shape)]
            weights = _row_curvature(factors[:-1], n)
            split = Palm(factors[-1], weights, start, [square, in_split], self.method)
            split.run(max_iter, tol, None)
            sets = [*[TopPerRowAndColumn(self.k)] * level, in_refit]
            refit = Palm(U, n, [*factors[:-1], *split.scaled_factors()], sets, self.method)
            history, converged = refit.run(max_iter, tol, callback if level == self.count else None)
            factors = refit.scaled_factors()
        return factors, history, converged


def _row_curvature(factors: list[Matrix], n: Matrix) -> Matrix:
    """Return the diagonal of L' N L, with L the product of the factors."""
    if not factors:
        return n
    L = np.linalg.multi_dot(factors) if len(factors) > 1 else factors[0]
    curvature = (n[:, None] * L**2).sum(axis=0)
    return np.asarray(np.maximum(curvature, 1e-12 * curvature.max() or 1.0), np.float64)
