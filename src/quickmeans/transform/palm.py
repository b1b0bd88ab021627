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
stands if the objective has not risen; if it has, the factor keeps its support for some sweeps, where conjugate
gradients can only descend, and t is halved. So no step is ever too long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from quickmeans.threads import with_one_blas_thread
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
from quickmeans.transform.projections import Projection, TopPerRowAndColumn
from quickmeans.transform.quadratic import Factor, Matrix, Quadratic

_LONGEST, _SHORTEST = 1.0, 0.1  # steps, in units of the curvature along each entry
_LONGEST_REST = 7  # sweeps without a new support, after steps that failed
_REFINEMENTS = 3  # steps of conjugate gradients on the support


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
    n_factors : int or "auto"
        Q; "auto" is log2(min(K, D)) rounded, at least 2.
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
    factors = [S if E.is_of_supports else E.project(S) for S, E in zip(factors, sets, strict=True)]
    solver = Palm(matrix, n, factors, sets, lambda_update == "sweep")
    history, converged = solver.run(max_iter, tol, callback)
    return finished(matrix, n, solver.scaled_factors(), history, converged, result_dtype(U))


def factor_shapes(shape: tuple[int, ...], n_factors: int | str = "auto") -> list[tuple[int, int]]:
    """The paper's shapes: A x A with A = min(K, D), but for the one at the end of the larger side."""
    K, D = shape
    A = min(K, D)
    if n_factors == "auto":
        n_factors = max(2, round(np.log2(A)))
    check_positive("n_factors", n_factors, whole=True)
    inner = [(A, A)] * (int(n_factors) - 1)
    return [*inner, (A, D)] if K <= D else [(K, A), *inner]


@dataclass
class _Rest:
    """For how many sweeps a factor keeps its support after a step that failed; longer each time."""

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
        self.factors = [Factor.of(S / norm if norm > 0 else S) for S, norm in zip(factors, norms, strict=True)]
        self.scale = float(np.prod([norm for norm in norms if norm > 0]))
        self.steps = [_LONGEST] * len(factors)
        self.rests = [_Rest() for _ in factors]
        self.objective = self.total

    def run(self, max_iter: int, tol: float, callback: Callback | None) -> tuple[list[float], bool]:
        """Sweeps until the objective settles; its history and whether it did."""
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
        first, *others = (S.values for S in self.factors)
        return [self.scale * first, *others]

    def _start(self) -> float:
        """The objective of the factors as they are, with the best scale."""
        V = self.factors[-1].values
        for S in reversed(self.factors[:-1]):
            V = S.times(V)
        inner, square = float((self.weighted * V).sum()), float((self.n[:, None] * V**2).sum())
        if square > 0:
            self.scale = inner / square
        self.objective = float((self.n[:, None] * np.square(self.U - self.scale * V)).sum())
        return self.objective

    def _value(self, inner: float, square: float) -> float:
        """The objective, from <M, S> and <S, P S G>."""
        return max(self.total - 2 * inner + square, 0.0)

    def _sweep(self) -> None:
        """One pass over the factors, q = Q, ..., 1."""
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
        """P = L' N L for every factor; None stands for N."""
        grams: list[Matrix | None] = [None]
        for S in self.factors[:-1]:
            PS = self.n[:, None] * S.values if grams[-1] is None else S.adjoint_times(grams[-1]).T
            grams.append(S.adjoint_times(PS))
        return grams

    def _update(self, q: int, quadratic: Quadratic) -> None:
        """A projected gradient step on factor q; if it would raise the objective, only least squares on its support."""
        S, rest = self.factors[q].scaled(self.scale), self.rests[q]
        if rest.sweeps_left == 0:
            if self._accept(q, quadratic, self._project(q, quadratic, S)):
                self.steps[q], rest.length = min(2 * self.steps[q], _LONGEST), 0
                return
            self.steps[q] = self.steps[q] / 2 if self.steps[q] > _SHORTEST else _LONGEST
            rest.length = rest.sweeps_left = min(2 * rest.length + 1, _LONGEST_REST)
        else:
            rest.sweeps_left -= 1
        self._accept(q, quadratic, S)

    def _project(self, q: int, quadratic: Quadratic, S: Factor) -> Factor:
        """D^(-1/2) times the projection of D^(1/2) S - t D^(-1/2) gradient; D is a number where values are not free."""
        if self.sets[q].is_of_supports:
            root: Any = np.multiply.outer(np.sqrt(quadratic.rows), np.sqrt(quadratic.columns))
        else:
            root = max(quadratic.bound(), np.finfo(float).tiny) ** 0.5
        moved = quadratic.gradient(S)
        moved *= -self.steps[q] / root
        moved += root * S.values
        return Factor.of(self.sets[q].project(moved) / root)

    def _accept(self, q: int, quadratic: Quadratic, S: Factor) -> bool:
        """Put S in the place of factor q, after some steps of least squares, unless that raises the objective."""
        inner, square = quadratic.refine(S, _REFINEMENTS if self.sets[q].is_of_supports else 0)
        scale = 1.0 if self.once_per_sweep or square <= 0 else inner / square
        value, norm = self._value(scale * inner, scale**2 * square), S.norm()
        if norm == 0 or not value <= self.objective:
            return False
        self.factors[q], self.scale, self.objective = S.scaled(1 / norm), scale * norm, value
        return True


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
