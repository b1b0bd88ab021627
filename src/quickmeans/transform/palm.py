r"""palm4MSA: proximal alternating linearised minimisation for a product of sparse factors (the paper's Algorithm 2).

.. math:: \min \; \|N^{1/2} (U - \lambda S_1 \cdots S_Q)\|_F^2 \quad \text{with } S_q \in \mathcal E_q, \; \|S_q\|_F = 1

With :math:`L = S_1 \cdots S_{q-1}` and :math:`R = S_{q+1} \cdots S_Q` the gradient for factor q is
:math:`\lambda (\lambda P S G - M)`, where :math:`P = L' N L`, :math:`G = R R'`, :math:`M = L' H` and
:math:`H = N U R'`. Within a sweep from q = Q down to 1, G and H follow from one factor to the next
(:math:`G \leftarrow S G S'`, :math:`H \leftarrow H S'`), so after the first factor the larger side of U never appears
again, and the objective is :math:`\|N^{1/2} U\|^2 - 2 \lambda \langle M, S\rangle + \lambda^2 \langle S, P S G\rangle`,
without a reconstruction.

Steps are measured by the curvature :math:`P_{ii} G_{jj}` along each entry, not by one bound
:math:`\|P\| \|G\|` for all: what is projected is :math:`D^{1/2} S - t D^{-1/2} \nabla` with D these curvatures, so that
entries compete by what they are worth to the objective. A few conjugate gradients on the support follow. The step
stands if the objective has not risen; if it has, the factor keeps its support, where conjugate gradients can only
descend, and t is halved. So no step is ever too long.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from quickmeans import _native
from quickmeans.transform.factorization import (
    Callback,
    Factorization,
    check_matrix,
    check_positive,
    check_weights,
    finished,
    result_dtype,
)
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.projections import Matrix, Projection, TopPerRowAndColumn

_LONGEST = 1.0  # the longest step, in units of the curvature along each entry
_REFINEMENTS = 3  # steps of conjugate gradients on the support


def palm4msa(
    U: ArrayLike,
    n_factors: int | str = "auto",
    sparsity_level: int = 5,
    *,
    weights: ArrayLike | None = None,
    projections: Sequence[Projection] | None = None,
    init: SparseProduct | None = None,
    lambda_update: str = "factor",
    max_iter: int = 300,
    tol: float = 1e-6,
    callback: Callback | None = None,
) -> Factorization:
    r"""Factor U into sparse matrices by palm4MSA.

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
    projections : sequence, optional
        One constraint set per factor, instead of `sparsity_level`; norms are taken care of.
    init : SparseProduct, optional
        Start from its factors. By default all factors are identities but the largest, which is zero.
    lambda_update : "factor" or "sweep"
        When the scale is set to its best value: after every factor, or after every sweep, as the paper has it.
    max_iter : int
        The most sweeps.
    tol : float
        Stop when a sweep lowers the objective by less than this share.
    callback : callable, optional
        Called as ``callback(sweep, objective)``; a true result stops.

    Returns
    -------
    Factorization
        The objective never rises. Its `converged` says whether `tol` was met. Nothing is random.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_positive("max_iter", max_iter, whole=True)
    check_positive("tol", tol, zero=True)
    if lambda_update not in ("factor", "sweep"):
        raise ValueError(f"lambda_update must be 'factor' or 'sweep', got {lambda_update!r}.")
    shapes = factor_shapes(matrix.shape, n_factors) if init is None else [S.shape for S in init.factors]
    factors = _identity_start(shapes) if init is None else _given_start(init, matrix.shape)
    sets = _sets(projections, sparsity_level, len(shapes))
    solver = Palm(matrix, n, factors, sets, lambda_update == "sweep")
    history, converged = solver.run(max_iter, tol, callback)
    return finished(matrix, n, solver.scaled_factors(), history, converged, result_dtype(U))


def factor_shapes(shape: tuple[int, ...], n_factors: int | str = "auto") -> list[tuple[int, int]]:
    """The paper's shapes: A x A with A = min(K, D), but for the one at the end of the larger side."""
    K, D = shape
    A = min(K, D)
    if n_factors == "auto":
        n_factors = max(2, int(np.log2(A)))
    check_positive("n_factors", n_factors, whole=True)
    inner = [(A, A)] * (int(n_factors) - 1)
    return [*inner, (A, D)] if K <= D else [(K, A), *inner]


class Palm:
    """The state of the iteration: factors of unit norm and their scale."""

    def __init__(
        self, U: Matrix, n: Matrix, factors: list[Matrix], sets: Sequence[Projection], once_per_sweep: bool
    ) -> None:
        self.n, self.sets, self.once_per_sweep = n, sets, once_per_sweep
        self.weighted = n[:, None] * U
        self.total = float((self.weighted * U).sum())
        norms = [float(np.linalg.norm(S)) for S in factors]
        self.factors = [S / norm if norm > 0 else S for S, norm in zip(factors, norms, strict=True)]
        self.scale = float(np.prod([norm for norm in norms if norm > 0]))
        self.steps = [_LONGEST] * len(factors)
        self.isa = os.environ.get("QUICKMEANS_ISA", "")
        self.objective = self.total

    def run(self, max_iter: int, tol: float, callback: Callback | None) -> tuple[list[float], bool]:
        """Sweeps until the objective settles; its history and whether it did."""
        history = [self._start()]
        for i in range(max_iter):
            self._sweep()
            history.append(self.objective)
            if callback is not None and callback(i + 1, self.objective):
                return history, False
            if i > 0 and history[-2] - history[-1] <= tol * max(history[-2], 1e-30 * self.total):
                return history, True
        return history, False

    def scaled_factors(self) -> list[Matrix]:
        return [self.scale * self.factors[0], *self.factors[1:]]

    def _start(self) -> float:
        """The objective of the factors as they are, with the best scale."""
        V = np.linalg.multi_dot(self.factors) if len(self.factors) > 1 else self.factors[0]
        inner, square = float((self.weighted * V).sum()), float((self.n[:, None] * V**2).sum())
        if square > 0:
            self.scale = inner / square
        self.objective = self._value(self.scale * inner, self.scale**2 * square)
        return self.objective

    def _value(self, inner: float, square: float) -> float:
        """The objective, from <M, S> and <S, P S G>."""
        return max(self.total - 2 * inner + square, 0.0)

    def _sweep(self) -> None:
        """One pass over the factors, q = Q, ..., 1."""
        lefts: list[Matrix | None] = [None]  # L_1 = I
        for S in self.factors[:-1]:
            lefts.append(S if lefts[-1] is None else lefts[-1] @ S)
        G: Matrix | None = None  # R_Q = I
        H = self.weighted
        for q in reversed(range(len(self.factors))):
            L = lefts[q]
            P = None if L is None else L.T @ (self.n[:, None] * L)
            self._update(q, P, G, H if L is None else L.T @ H)
            S = self.factors[q]
            if q > 0:
                G = S @ S.T if G is None else S @ G @ S.T
                H = H @ S.T
        if self.once_per_sweep:
            self._start()

    def _update(self, q: int, P: Matrix | None, G: Matrix | None, M: Matrix) -> None:
        """A projected gradient step on factor q; if it would raise the objective, only least squares on its support."""
        S = self.scale * self.factors[q]
        rows, columns = self._curvature(q, P, G, S.shape)
        root = np.sqrt(rows)[:, None] * np.sqrt(columns)
        gradient = self._apply(P, S, G) - M
        new = self.sets[q].project(root * S - self.steps[q] / root * gradient) / root
        if self._accept(q, new, P, G, M, rows, columns):
            self.steps[q] = min(2 * self.steps[q], _LONGEST)
        else:
            self.steps[q] /= 2
            self._accept(q, S, P, G, M, rows, columns)

    def _accept(
        self, q: int, S: Matrix, P: Matrix | None, G: Matrix | None, M: Matrix, rows: Matrix, columns: Matrix
    ) -> bool:
        """Put S in the place of factor q, after some steps of least squares, unless that raises the objective."""
        n_steps = _REFINEMENTS if self.sets[q].is_of_supports else 0
        inner, square = _native.refine(P, self.n, G, M, rows, columns, S, n_steps, self.isa)
        scale = 1.0 if self.once_per_sweep or square <= 0 else inner / square
        value, norm = self._value(scale * inner, scale**2 * square), float(np.linalg.norm(S))
        if norm == 0 or not value <= self.objective:
            return False
        self.factors[q], self.scale, self.objective = S / norm, scale * norm, value
        return True

    def _apply(self, P: Matrix | None, S: Matrix, G: Matrix | None) -> Matrix:
        """P S G; no P stands for N, no G for the identity."""
        left = self.n[:, None] * S if P is None else P @ S
        return left if G is None else left @ G

    def _curvature(self, q: int, P: Matrix | None, G: Matrix | None, shape: tuple[int, ...]) -> tuple[Matrix, Matrix]:
        """The second derivative of entry (i, j) is P_ii G_jj; where entries are not free, a bound for all of them."""
        if self.sets[q].is_of_supports:
            rows = self.n if P is None else np.diag(P)
            columns = np.ones(shape[1]) if G is None else np.diag(G)
        else:
            rows = np.full(shape[0], self.n.max() if P is None else np.abs(P).sum(axis=1).max())
            columns = np.full(shape[1], 1.0 if G is None else np.abs(G).sum(axis=1).max())
        return _away_from_zero(rows), _away_from_zero(columns)


def _away_from_zero(values: Matrix) -> Matrix:
    return np.asarray(np.maximum(values, 1e-12 * values.max() + np.finfo(float).tiny), np.float64)


def _identity_start(shapes: list[tuple[int, int]]) -> list[Matrix]:
    """Identities, and zero for the largest factor."""
    factors = [np.eye(*shape) for shape in shapes]
    largest = int(np.argmax([shape[0] * shape[1] for shape in shapes[::-1]]))
    factors[len(shapes) - 1 - largest][:] = 0
    return factors


def _given_start(init: Any, shape: tuple[int, ...]) -> list[Matrix]:
    if not isinstance(init, SparseProduct) or init.shape != shape:
        got = f"shape {init.shape}" if isinstance(init, SparseProduct) else repr(init)
        raise ValueError(f"init must be a SparseProduct of shape {shape}, got {got}.")
    return [np.array(S.toarray() if sp.issparse(S) else S, np.float64) for S in init.factors]


def _sets(projections: Sequence[Projection] | None, sparsity_level: int, n_factors: int) -> Sequence[Projection]:
    if projections is None:
        check_positive("sparsity_level", sparsity_level, whole=True)
        return [TopPerRowAndColumn(sparsity_level)] * n_factors
    if len(projections) != n_factors:
        raise ValueError(f"There must be one projection per factor: {n_factors} factors, got {len(projections)}.")
    return projections
