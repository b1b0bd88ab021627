r"""palm4MSA: proximal alternating linearised minimisation for a product of sparse factors (the paper's Algorithm 2).

.. math:: \min \; \|N^{1/2} (U - \lambda S_1 \cdots S_Q)\|_F^2 \quad \text{with } S_q \in \mathcal E_q, \; \|S_q\|_F = 1

With :math:`L = S_1 \cdots S_{q-1}` and :math:`R = S_{q+1} \cdots S_Q` the gradient for factor q is
:math:`\lambda (\lambda P S G - M)`, where :math:`P = L' N L`, :math:`G = R R'`, :math:`M = L' H` and
:math:`H = N U R'`. Within a sweep from q = Q down to 1, G and H follow from one factor to the next
(:math:`G \leftarrow S G S'`, :math:`H \leftarrow H S'`), so after the first factor the larger side of U never appears
again, and the objective is :math:`\|N^{1/2} U\|^2 - 2 \lambda \langle M, S\rangle + \lambda^2 \langle S, P S G\rangle`,
without a reconstruction.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

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

_SAFETY = 1.001  # the step is so much shorter than the estimated norms allow


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
        self.vectors: dict[Any, Matrix] = {}
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
        self._rescale(inner, square)
        return self.objective

    def _rescale(self, inner: float, square: float) -> None:
        """lambda = <M, S> / <S, P S G>: the best scale, and the objective with it."""
        if square > 0:
            self.scale = inner / square
        self.objective = max(self.total - 2 * self.scale * inner + self.scale**2 * square, 0.0)

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
            self._rescale(self.inner, self.square)

    def _update(self, q: int, P: Matrix | None, G: Matrix | None, M: Matrix) -> None:
        """A projected gradient step on factor q, or one on its support if the projection would raise the objective."""
        S, scale = self.factors[q], self.scale
        PSG = self._apply(P, S, G)
        curvature = _SAFETY * scale**2 * self._norm((q, "P"), P) * self._norm((q, "G"), G)
        if curvature <= 0:
            return
        gradient = scale * (scale * PSG - M)
        before = self._value(S, PSG, M)
        while True:
            new = self.sets[q].project(S - gradient / curvature)
            PNG = self._apply(P, new, G)
            bend = float((new * PNG).sum() - 2 * (new * PSG).sum() + (S * PSG).sum())  # <d, P d G>, d the change
            if scale**2 * bend <= curvature * float(np.square(new - S).sum()) * (1 + 1e-9):
                break
            curvature *= 2  # the norms were underestimated
        if self._best_value(new, PNG, M) > before and S.any():
            new = np.where(S != 0, S - gradient / curvature, 0)
            PNG = self._apply(P, new, G)
        norm = float(np.linalg.norm(new))
        if norm == 0 or self._best_value(new, PNG, M) > before:
            return
        self.factors[q], PNG = new / norm, PNG / norm
        self.inner, self.square = float((M * self.factors[q]).sum()), float((self.factors[q] * PNG).sum())
        if self.once_per_sweep:
            self.scale *= norm
            self.objective = self._value(self.factors[q], PNG, M)
        else:
            self._rescale(self.inner, self.square)

    def _apply(self, P: Matrix | None, S: Matrix, G: Matrix | None) -> Matrix:
        """P S G; no P stands for N, no G for the identity."""
        left = self.n[:, None] * S if P is None else P @ S
        return left if G is None else left @ G

    def _value(self, S: Matrix, PSG: Matrix, M: Matrix) -> float:
        return self.total - 2 * self.scale * float((M * S).sum()) + self.scale**2 * float((S * PSG).sum())

    def _best_value(self, S: Matrix, PSG: Matrix, M: Matrix) -> float:
        """The objective with this factor and, where the scale may follow, the best scale."""
        if self.once_per_sweep:
            return self._value(S, PSG, M)
        square = float((S * PSG).sum())
        return self.total - (float((M * S).sum()) ** 2 / square if square > 0 else 0.0)

    def _norm(self, key: Any, A: Matrix | None) -> float:
        """The spectral norm of a positive semi-definite matrix by power iteration, from where the last one ended.

        The estimate is from below; a step that is too long is found by its curvature and shortened.
        """
        if A is None:
            return float(self.n.max()) if key[1] == "P" else 1.0
        v = self.vectors.get(key)
        if v is None:
            v = A.sum(axis=1) + np.abs(A).max() * np.linspace(1, 2, len(A))
        estimate = 0.0
        for _ in range(30):
            w = A @ v
            norm = float(np.linalg.norm(w))
            if norm == 0:
                return float(np.linalg.norm(A))
            v = w / norm
            done, estimate = abs(norm - estimate) <= 1e-3 * norm, norm
            if done:
                break
        self.vectors[key] = v
        return estimate


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
