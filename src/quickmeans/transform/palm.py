r"""palm4MSA: proximal alternating linearised minimisation for a product of sparse factors (the paper's Algorithm 2).

.. math:: \min \; \|N^{1/2} (U - \lambda S_1 \cdots S_Q)\|_F^2 \quad \text{with } S_q \in \mathcal E_q, \; \|S_q\|_F = 1

With :math:`L = S_1 \cdots S_{q-1}` and :math:`R = S_{q+1} \cdots S_Q` the gradient for factor q is
:math:`\lambda (\lambda P S G - M)`, where :math:`P = L' N L`, :math:`G = R R'`, :math:`M = L' H` and
:math:`H = N U R'`. A sweep goes from q = Q down to 1 and updates G and H from one factor to the next
(:math:`G \leftarrow S G S'`, :math:`H \leftarrow H S'`). So only the first step of a sweep handles matrices with the
larger side of U. The objective is computed without the product of all factors, as
:math:`\|N^{1/2} U\|^2 - 2 \lambda \langle M, S\rangle + \lambda^2 \langle S, P S G\rangle`.

The step along each entry is measured by its own curvature :math:`D_{ij} = P_{ii} G_{jj}`, not by one bound
:math:`\|P\| \|G\|` for all entries: :math:`D^{1/2} S - t D^{-1/2} \nabla` is projected, so that the entries that lower
the objective most are kept. A few steps of conjugate gradients on the support follow. If the objective has not risen,
the new factor is accepted. If it has, t is halved and the factor keeps its support for some sweeps, in which conjugate
gradients can only lower the objective.
"""

from collections.abc import Sequence
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
from quickmeans.transform.factors import MOST_FACTORS, dense
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.projections import Projection, TopPerRowAndColumn
from quickmeans.transform.quadratic import Matrix, Quadratic, WorkingFactor

# Chosen between error and time: benchmarks/solver_constants.py prints both at lower and higher values.
_LONGEST, _SHORTEST = 1.0, 0.1  # step sizes t; with 1 an entry goes to its own minimum
_LONGEST_PAUSE = 7  # sweeps with a fixed support after steps that failed
_REFINEMENTS = 3  # steps of conjugate gradients on the support after every projection


@with_one_blas_thread
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
    n_factors : int or "auto", default="auto"
        The number of factors Q, at most 64; "auto" is log2(min(K, D)) rounded, at least 2.
    sparsity_level : int, default=5
        The number of entries per row and per column that every factor keeps.
    weights : array of shape (K,), default=None
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`; None stands for ones.
    projections : sequence of Projection, default=None
        One constraint set per factor, used instead of `sparsity_level`; factors are scaled to norm one after it.
    init : SparseProduct, default=None
        Start from its factors. For None the largest factor starts at zero and all others as identities.
    lambda_update : "factor" or "sweep", default="factor"
        When the scale is set to its best value: after every factor, or after every sweep as in the paper.
    max_iter : int, default=300
        The most sweeps.
    tol : float, default=1e-6
        Stop when a sweep lowers the objective by less than this share of it.
    callback : callable, default=None
        Called as ``callback(sweep, objective)`` after every sweep; a true result stops the solver.

    Returns
    -------
    Factorization
        Its objective never rises, and `converged` says whether `tol` was reached. There is no randomness.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_whole("max_iter", max_iter, 1)
    check_number("tol", tol, 0)
    if lambda_update not in ("factor", "sweep"):
        raise ValueError(f"lambda_update must be 'factor' or 'sweep', got {lambda_update!r}.")
    shape: tuple[int, ...] = matrix.shape
    factors = _identity_start(factor_shapes(shape, n_factors)) if init is None else _given_start(init, shape)
    sets = _sets(projections, sparsity_level, len(factors))
    factors = [S if E.is_of_supports else _projected(E, S) for S, E in zip(factors, sets, strict=True)]
    solver = Palm(matrix, n, factors, sets, lambda_update == "sweep")
    history, converged = solver.run(max_iter, tol, callback)
    return finished(matrix, n, solver.scaled_factors(), history, converged, result_dtype(U))


def factor_shapes(shape: tuple[int, ...], n_factors: int | str = "auto") -> list[tuple[int, int]]:
    """Return the paper's shapes: A x A with A = min(K, D), except for the factor at the end of the larger side."""
    K, D = shape
    A = min(K, D)
    if n_factors == "auto":
        n_factors = max(2, round(np.log2(A)))
    inner = [(A, A)] * (check_whole("n_factors", n_factors, 1, " or 'auto'", most=MOST_FACTORS) - 1)
    return [*inner, (A, D)] if K <= D else [(K, A), *inner]


@dataclass
class _Pause:
    """The sweeps for which a factor keeps its support after a step that failed; the pause doubles each time."""

    length: int = 0
    sweeps_left: int = 0


class Palm:
    """The state of the iteration: factors of unit norm and their scale."""

    def __init__(
        self, U: Matrix, n: Matrix, factors: list[Matrix], sets: Sequence[Projection], once_per_sweep: bool
    ) -> None:
        self.U, self.n, self.sets, self.once_per_sweep = U, n, sets, once_per_sweep
        self.weighted = n[:, None] * U
        self.total = float((self.weighted * U).sum())
        norms = [float(np.linalg.norm(S)) for S in factors]
        self.factors = [WorkingFactor.of(S / (norm or 1.0)) for S, norm in zip(factors, norms, strict=True)]
        self.scale = float(np.prod([norm for norm in norms if norm > 0]))
        self.steps = [_LONGEST] * len(factors)
        self.pauses = [_Pause() for _ in factors]
        self.objective = self.total

    def run(self, max_iter: int, tol: float, callback: Callback | None) -> tuple[list[float], bool]:
        """Sweep until the objective no longer falls by `tol`; return its history and whether that happened."""
        history = [self._start()]
        rounding = float(np.finfo(float).eps) * self.total
        for i in range(max_iter):
            if history[-1] <= rounding:
                return history, True
            self._sweep()
            history.append(self.objective)
            if callback is not None and callback(i + 1, self.objective):
                return history, False
            if i > 0 and history[-2] - history[-1] <= tol * history[-2]:
                return history, True
        return history, False

    def scaled_factors(self) -> list[Matrix]:
        """Return the factors, with the scale in the first."""
        first, *rest = (S.values for S in self.factors)
        return [self.scale * first, *rest]

    def _start(self) -> float:
        """Set the best scale for the present factors and return the objective."""
        V = self.factors[-1].values
        for S in reversed(self.factors[:-1]):
            V = S.times(V)
        inner, square = float((self.weighted * V).sum()), float((self.n[:, None] * V**2).sum())
        if square > 0:
            self.scale = inner / square
        self.objective = float((self.n[:, None] * np.square(self.U - self.scale * V)).sum())
        return self.objective

    def _value(self, inner: float, square: float) -> float:
        """Return the objective, from <M, S> and <S, P S G>."""
        return max(self.total - 2 * inner + square, 0.0)

    def _sweep(self) -> None:
        """Update every factor once, q = Q, ..., 1."""
        grams = self._left_grams()
        G: Matrix | None = None  # R_Q = I
        H = self.weighted
        for q in reversed(range(len(self.factors))):
            self._update(q, Quadratic(self.factors[:q], grams[q], self.n, G, H))
            S = self.factors[q]
            if q > 0:
                G = S.times(S.values.T if G is None else S.times(G).T)
                H = np.ascontiguousarray(S.times(H.T).T)
        if self.once_per_sweep:
            self._start()

    def _left_grams(self) -> list[Matrix | None]:
        """Return P = L' N L for every factor; None stands for N."""
        grams: list[Matrix | None] = [None]
        for S in self.factors[:-1]:
            PS = self.n[:, None] * S.values if grams[-1] is None else S.adjoint_times(grams[-1]).T
            grams.append(S.adjoint_times(PS))
        return grams

    def _update(self, q: int, quadratic: Quadratic) -> None:
        """Take a projected gradient step on factor q, or only refine it on its support if that step fails."""
        S, pause = self.factors[q].scaled(self.scale), self.pauses[q]
        if pause.sweeps_left == 0:
            if self._accept(q, quadratic, self._project(q, quadratic, S)):
                self.steps[q], pause.length = min(2 * self.steps[q], _LONGEST), 0
                return
            self.steps[q] = self.steps[q] / 2 if self.steps[q] > _SHORTEST else _LONGEST
            pause.length = pause.sweeps_left = min(2 * pause.length + 1, _LONGEST_PAUSE)
        else:
            pause.sweeps_left -= 1
        self._accept(q, quadratic, S)

    def _project(self, q: int, quadratic: Quadratic, S: WorkingFactor) -> WorkingFactor:
        """Return D^(-1/2) times the projection of D^(1/2) S - t D^(-1/2) gradient.

        D holds the curvatures if the set restricts supports only; else it is one bound, since a set that restricts
        values is not invariant to scaling its entries.
        """
        if self.sets[q].is_of_supports:
            root: Any = np.multiply.outer(np.sqrt(quadratic.row_curvature), np.sqrt(quadratic.column_curvature))
        else:
            root = max(quadratic.bound(), np.finfo(float).tiny) ** 0.5
        moved = quadratic.gradient(S)
        moved *= -self.steps[q] / root
        moved += root * S.values
        return WorkingFactor.of(_projected(self.sets[q], moved) / root)

    def _accept(self, q: int, quadratic: Quadratic, S: WorkingFactor) -> bool:
        """Refine S and let it replace factor q, unless that raises the objective; return whether it was replaced."""
        inner, square = quadratic.refine(S, _REFINEMENTS if self.sets[q].is_of_supports else 0)
        scale = 1.0 if self.once_per_sweep or square <= 0 else inner / square
        value, norm = self._value(scale * inner, scale**2 * square), S.norm()
        if norm == 0 or not value <= self.objective:
            return False
        self.factors[q], self.scale, self.objective = S.scaled(1 / norm), scale * norm, value
        return True


def _identity_start(shapes: list[tuple[int, int]]) -> list[Matrix]:
    """Return identities, and zero for the largest factor."""
    factors = [np.eye(*shape) for shape in shapes]
    largest = int(np.argmax([shape[0] * shape[1] for shape in shapes[::-1]]))
    factors[len(shapes) - 1 - largest][:] = 0
    return factors


def _given_start(init: Any, shape: tuple[int, ...]) -> list[Matrix]:
    if not isinstance(init, SparseProduct) or init.shape != shape:
        got = f"shape {init.shape}" if isinstance(init, SparseProduct) else repr(init)
        raise ValueError(f"init must be a SparseProduct of shape {shape}, got {got}.")
    return [dense(S) for S in init.factors]


def _sets(projections: Sequence[Projection] | None, sparsity_level: int, n_factors: int) -> Sequence[Projection]:
    if projections is None:
        return [TopPerRowAndColumn(check_whole("sparsity_level", sparsity_level, 1))] * n_factors
    if len(projections) != n_factors:
        raise ValueError(f"There must be one projection per factor: {n_factors} factors, got {len(projections)}.")
    return projections


def _projected(projection: Projection, M: Matrix) -> Matrix:
    """Return the projection of M as a float64 array of the shape of M; users may write projections of their own."""
    projected = np.asarray(projection.project(M), np.float64)
    if projected.shape != M.shape:
        raise ValueError(f"The projection '{projection.name}' of a {M.shape} matrix has shape {projected.shape}.")
    return projected
