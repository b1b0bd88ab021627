r"""palm4MSA: proximal alternating linearised minimisation for a product of sparse factors (the paper's Algorithm 2).

.. math:: \min \; \|N^{1/2} (U - \lambda S_1 \cdots S_Q)\|_F^2 \quad \text{with } S_q \in \mathcal E_q, \; \|S_q\|_F = 1

With :math:`L = S_1 \cdots S_{q-1}` and :math:`R = S_{q+1} \cdots S_Q` the gradient for factor q is
:math:`\lambda (\lambda P S G - M)`, where :math:`P = L' N L`, :math:`G = R R'`, :math:`M = L' H` and
:math:`H = N U R'`. A sweep goes from q = Q down to 1 and updates G and H from one factor to the next
(:math:`G \leftarrow S G S'`, :math:`H \leftarrow H S'`). So only the first step of a sweep handles matrices with the
larger side of U. The objective is computed without the product of all factors, as
:math:`\|N^{1/2} U\|^2 - 2 \lambda \langle M, S\rangle + \lambda^2 \langle S, P S G\rangle`. A sweep is one call of
native code (``native/palm.cpp``), in which factors are kept by their non-zeros.

The step along each entry is measured by its own curvature :math:`D_{ij} = P_{ii} G_{jj}`, not by one bound
:math:`\|P\| \|G\|` for all entries: :math:`D^{1/2} S - t D^{-1/2} \nabla` is projected, so that the entries that lower
the objective most are kept. A few steps of conjugate gradients on the support follow. If the objective has not risen,
the new factor is accepted. If it has, t is halved and the factor keeps its support for some sweeps, in which conjugate
gradients can only lower the objective.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from quickmeans import kernels
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
from quickmeans.transform.factors import dense
from quickmeans.transform.presets import check_n_factors, is_preset, preset_sets
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.projections import Matrix, Projection, TopPerRowAndColumn, quota

# Chosen between error and time: benchmarks/solver_constants.py prints both at lower and higher values.
_SHORTEST = 0.1  # step size t; with 1, the longest, an entry goes to its own minimum
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
    steps: str = "scaled",
    max_iter: int = 300,
    tol: float = 1e-6,
    callback: Callback | None = None,
) -> Factorization:
    r"""Factor U into sparse matrices by palm4MSA.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    n_factors : int, "auto", "paper" or "journal", default="auto"
        The number of factors Q, at most 64; "auto" is log2(min(K, D)) rounded, at least 2. "paper" and "journal" are
        the settings of the paper's experiments and of those of its journal version: Q is log2(min(K, D)) or
        log2(max(K, D)), rounded down, and the largest factor keeps more entries; see
        :mod:`quickmeans.transform.presets`. They need at least four rows and columns.
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
    steps : "scaled" or "paper", default="scaled"
        "scaled": steps by the curvature along every entry, then conjugate gradients, as described in
        :mod:`quickmeans.transform.palm`. "paper": one projected gradient step per factor, of length 1 / c with
        :math:`c > \lambda^2 \|L\|^2 \|R\|^2`, as in the paper's appendix. With ``lambda_update="sweep"`` this is the
        paper's algorithm to the letter.
    max_iter : int, default=300
        The most sweeps.
    tol : float, default=1e-6
        Stop when a sweep changes the objective by less than this share of it.
    callback : callable, default=None
        Called as ``callback(sweep, objective)`` after every sweep; a true result stops the solver.

    Returns
    -------
    Factorization
        Its objective never rises with ``steps="scaled"``, and `converged` says whether `tol` was reached. There is no
        randomness.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_whole("max_iter", max_iter, 1)
    check_number("tol", tol, 0)
    method = check_method(lambda_update, steps)
    shape: tuple[int, ...] = matrix.shape
    factors = _identity_start(factor_shapes(shape, n_factors)) if init is None else _given_start(init, shape)
    sets = _sets(projections, sparsity_level, n_factors, shape, len(factors))
    factors = [S if E.is_of_supports else _projected(E, S) for S, E in zip(factors, sets, strict=True)]
    solver = Palm(matrix, n, factors, sets, method)
    history, converged = solver.run(max_iter, tol, callback)
    return finished(matrix, n, solver.scaled_factors(), history, converged, result_dtype(U))


class Method(NamedTuple):
    """How factors are updated."""

    paper_steps: bool = False
    once_per_sweep: bool = False


def check_method(lambda_update: str, steps: str) -> Method:
    """Return how factors are updated, or raise an error."""
    for name, value, options in (
        ("lambda_update", lambda_update, ("factor", "sweep")),
        ("steps", steps, ("scaled", "paper")),
    ):
        if not isinstance(value, str) or value not in options:
            raise ValueError(f"{name} must be {options[0]!r} or {options[1]!r}, got {value!r}.")
    return Method(steps == "paper", lambda_update == "sweep")


def factor_shapes(shape: tuple[int, ...], n_factors: int | str = "auto") -> list[tuple[int, int]]:
    """Return the paper's shapes: A x A with A = min(K, D), except for the factor at the end of the larger side."""
    K, D = shape
    A = min(K, D)
    inner = [(A, A)] * (check_n_factors(n_factors, shape) - 1)
    return [*inner, (A, D)] if K <= D else [(K, A), *inner]


class Palm:
    """An iteration: sweeps over factors of unit norm and their scale."""

    def __init__(self, U: Matrix, n: Matrix, factors: list[Matrix], sets: Sequence[Projection], method: Method) -> None:
        self.sets = sets
        quotas = [quota(E, S.shape) for E, S in zip(sets, factors, strict=True)]
        options = kernels.PalmOptions(*method, _SHORTEST, _LONGEST_PAUSE, _REFINEMENTS)
        self.native = kernels.Palm(U, n, factors, quotas, options)

    def run(self, max_iter: int, tol: float, callback: Callback | None) -> tuple[list[float], bool]:
        """Sweep until the objective no longer changes by `tol`; return its history and whether that happened."""
        history = [self.native.start()]
        rounding = float(np.finfo(float).eps) * self.native.total
        for i in range(max_iter):
            if history[-1] <= rounding:
                return history, True
            history.append(self.native.sweep(self._project))
            if callback is not None and callback(i + 1, history[-1]):
                return history, False
            if i > 0 and abs(history[-2] - history[-1]) <= tol * history[-2]:
                return history, True
        return history, False

    def scaled_factors(self) -> list[Matrix]:
        """Return the factors, with the scale in the first."""
        first, *rest = (self.native.factor(q) for q in range(len(self.sets)))
        return [self.native.scale * first, *rest]

    def _project(self, q: int, M: Matrix) -> None:
        M[:] = _projected(self.sets[q], M.copy())


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


def _sets(
    projections: Sequence[Projection] | None,
    sparsity_level: int,
    n_factors: int | str,
    shape: tuple[int, ...],
    count: int,
) -> Sequence[Projection]:
    """Return the sets of `count` factors."""
    if projections is not None:
        if len(projections) != count:
            raise ValueError(f"There must be one projection per factor: {count} factors, got {len(projections)}.")
        return projections
    level = check_whole("sparsity_level", sparsity_level, 1)
    if not is_preset(n_factors):
        return [TopPerRowAndColumn(level)] * count
    check_n_factors(n_factors, shape)
    return preset_sets(shape, level, count)


def _projected(projection: Projection, M: Matrix) -> Matrix:
    """Return the projection of M as a float64 array of the shape of M; users may write projections of their own."""
    projected = np.asarray(projection.project(M), np.float64)
    if projected.shape != M.shape:
        raise ValueError(f"The projection '{projection.name}' of a {M.shape} matrix has shape {projected.shape}.")
    return projected
