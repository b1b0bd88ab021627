r"""Sparse alternating least squares: :math:`U \approx C W` within a budget of multiply-adds.

The two factors are solved for in turn, exactly on their supports (:mod:`.pair`). The start is the leading singular
vectors, rotated to have as many small entries as possible and cut to the budget. Then, in every round, the entries with
the largest gain are added and the ones with the lowest price are removed. A round that does not lower the objective is
undone.

Which singular vectors may be mixed by the rotation depends on the spectrum. If it is flat, rotating all of them
together gives the sparsest basis. If it falls steeply, that would spread the few strong directions over all atoms (the
rows of W), and rotating within bands of similar singular values is far better. Both starts are tried for a few rounds,
and the better one is kept.

Atoms may be more than the rank of U. A third start has the positive and the negative part of every atom of the better
one as two atoms: where rows of U are different above and below their mean, each row needs one of the two only.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from quickmeans.checks import check_number, check_whole
from quickmeans.threads import with_one_blas_thread
from quickmeans.transform.chain import Chain
from quickmeans.transform.direct import largest_entries, singular_vectors, truncated_svd
from quickmeans.transform.factorization import (
    Array,
    Callback,
    Factorization,
    Factors,
    check_matrix,
    check_squares,
    check_weights,
    finished,
    objective,
    result_dtype,
)
from quickmeans.transform.factors import MOST_FACTORS, dense
from quickmeans.transform.pair import Pair
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.varimax import varimax

# Chosen between error and time: benchmarks/solver_constants.py prints both at lower and higher values.
_GROWTH = 0.6  # entries added in a round, as a share of the budget
_KEEP = 0.9  # share of the entries that one step of pruning keeps
_BANDS = (8.0, np.inf)  # largest ratio of singular values that are rotated together, in each of the two starts
_TRIAL = 3  # rounds before the better start is chosen
_REFITS = 3  # rounds of least squares if supports are kept


@with_one_blas_thread
def sparse_als(
    U: ArrayLike,
    compression: float = 10.0,
    *,
    weights: ArrayLike | None = None,
    inner_dim: int | str = "auto",
    n_factors: int = 2,
    init: str | SparseProduct = "auto",
    max_iter: int = 5,
    tol: float = 1e-3,
    callback: Callback | None = None,
) -> Factorization:
    r"""Factor U into sparse matrices with at most K D / `compression` multiply-adds per vector.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    compression : float, default=10.0
        The budget is K D / `compression` multiply-adds: the non-zeros of the factors, and all entries of a factor that
        is more than half full. With 1 or less the product is U itself.
    weights : array of shape (K,), default=None
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`; None stands for ones.
    inner_dim : int or "auto", default="auto"
        The largest inner dimension r: C is K x r, W is r x D, and r is at most this number and the rank of U. "auto" is
        the square root of half the budget, or twice that with two factors if splitting atoms in two is better. Atoms
        that are not worth their entries are removed.
    n_factors : int, default=2
        The number of factors, from 2 to 64. The ones between C and W are r x r and start as identities.
    init : "auto", "svd", "identity" or SparseProduct, default="auto"
        "svd" starts from rotated singular vectors. "identity" takes the largest entries of U itself, as one factor.
        "auto" takes the best of these two and of a truncated singular value decomposition. A product of two or more
        factors is continued from, with its supports.
    max_iter : int, default=5
        The most rounds after the choice of a start. With 0, a product given as `init` keeps its supports.
    tol : float, default=1e-3
        Stop when a round lowers the objective by less than this share of it.
    callback : callable, default=None
        Called as ``callback(round, objective)`` after every round; a true result stops the solver.

    Returns
    -------
    Factorization
        Its factors are float32 if U is float32 or float16, else float64. All arithmetic is in float64, and there is no
        randomness.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_whole("max_iter", max_iter, 0)
    check_number("tol", tol, 0)
    check_whole("n_factors", n_factors, 2, most=MOST_FACTORS)
    if not isinstance(init, SparseProduct) and init not in ("auto", "svd", "identity"):
        raise ValueError(f"init must be 'auto', 'svd', 'identity' or a SparseProduct, got {init!r}.")
    budget = check_budget(matrix.shape, compression)
    if budget < matrix.size:
        check_squares(matrix, n)
    atoms = _atoms(inner_dim, budget, matrix.shape, n_factors)
    factors, history, converged = _solve(matrix, n, budget, atoms, n_factors, init, _Stop(max_iter, tol, callback))
    return finished(matrix, n, factors, history, converged, result_dtype(U))


def check_budget(shape: tuple[int, int], compression: float) -> int:
    """Return the multiply-adds that a compression allows; each row needs at least one, and the basis at least one."""
    K, D = shape
    budget = int(min(K * D / check_number("compression", compression, 0, above=True), K * D))
    if budget < min(K + 1, K * D):
        raise ValueError(
            f"compression {compression:g} leaves {budget} non-zeros, but {K} rows need one each and a basis: "
            f"at most {K * D / (K + 1):.4g} is possible."
        )
    return budget


class _Atoms(NamedTuple):
    """How many singular vectors a start has, and whether it may have two atoms for each of them."""

    most: int
    in_halves: bool


def _atoms(inner_dim: int | str, budget: int, shape: tuple[int, int], n_factors: int) -> _Atoms:
    if inner_dim == "auto":
        return _Atoms(max(1, min(int(np.sqrt(budget / 2)), *shape)), n_factors == 2)
    return _Atoms(min(check_whole("inner_dim", inner_dim, 1, " or 'auto'"), *shape), False)


@dataclass(frozen=True)
class _Stop:
    max_iter: int
    tol: float
    callback: Callback | None


Solution = tuple[Factors, list[float], bool]  # factors, history of the objective, whether it converged


def _solve(
    U: Array, n: Array, budget: int, atoms: _Atoms, n_factors: int, init: str | SparseProduct, stop: _Stop
) -> Solution:
    if budget >= U.size:
        return [U], [0.0], True
    if not U.any():
        return [np.zeros((len(U), 1)), np.zeros((1, U.shape[1]))], [0.0], True
    if isinstance(init, SparseProduct):
        return _continue(U, n, budget, init, stop)
    closed = {"identity": [largest_entries], "svd": [], "auto": [largest_entries, truncated_svd]}[init]
    candidates = [_in_closed_form(U, n, factors) for kind in closed if (factors := kind(U, n, budget)) is not None]
    if init != "identity":
        candidates.append(_learn(U, n, budget, atoms, n_factors, stop))
    return min(candidates, key=lambda solution: solution[1][-1])


def _in_closed_form(U: Array, n: Array, factors: Factors) -> Solution:
    return factors, [objective(U, n, factors)], True


def _learn(U: Array, n: Array, budget: int, atoms: _Atoms, n_factors: int, stop: _Stop) -> Solution:
    """Learn the factors from singular vectors; the middle factors start as identities."""
    r = atoms.most
    spare = (n_factors - 2) * r
    if budget - spare < len(U) + 1:
        raise ValueError(
            f"{n_factors} factors with inner dimension {r} need more than {spare + len(U)} non-zeros, "
            f"but the budget is {budget}; take fewer factors, a smaller inner_dim or less compression."
        )
    pair = Pair(U, n, budget - spare)
    first = _best_start(pair, atoms)
    if n_factors == 2:
        history, converged = _exchange(pair, first, stop)
        return pair.factors(), history, converged
    _exchange(pair, first, _Stop(stop.max_iter, stop.tol, None))
    C, W = pair.factors()
    chain = Chain(U, n, budget)
    chain.start([C, *(np.eye(len(W)) for _ in range(n_factors - 2)), W])
    history, converged = _exchange(chain, chain.fit(), stop)
    return chain.factors(), history, converged


def _continue(U: Array, n: Array, budget: int, product: SparseProduct, stop: _Stop) -> Solution:
    """Start from the factors of a product, on their supports."""
    if len(product.factors) < 2 or product.shape != U.shape:
        raise ValueError(
            f"init must be a product of two or more factors of shape {U.shape}, "
            f"got {len(product.factors)} of shape {product.shape}."
        )
    factors = [dense(S) for S in product.factors]
    solver: Pair | Chain = Pair(U, n, budget) if len(factors) == 2 else Chain(U, n, budget)
    solver.start(factors)
    solver.meet_budget(_KEEP)
    if stop.max_iter == 0:
        history, converged = [solver.fit() for _ in range(_REFITS)], False
    else:
        history, converged = _exchange(solver, solver.fit(), stop)
    return solver.factors(), history, converged


def _best_start(pair: Pair, atoms: _Atoms) -> float:
    """Start from rotated singular vectors, in the bands that promise most after a few rounds; return the objective.

    Then the positive and the negative parts of these atoms are tried, if wanted.
    """
    V = singular_vectors(np.sqrt(pair.n)[:, None] * pair.U, atoms.most)
    values = np.sqrt(pair.n @ (pair.U @ V) ** 2)
    one_band = values[0] <= _BANDS[0] * values[-1]  # both ratios give it
    starts = [_rotated(V, values, ratio) for ratio in (_BANDS[:1] if one_band else _BANDS)]
    trials = [_tried(pair, pair.U @ W, W.T) for W in starts]
    W, best = min(zip(starts, trials, strict=True), key=lambda started: started[1].promise)
    if atoms.in_halves:
        C, halves = pair.U @ W, np.vstack([np.maximum(W.T, 0), np.minimum(W.T, 0)])
        best = min(best, _tried(pair, np.hstack([C, C]), halves), key=lambda trial: trial.promise)
    pair.restore(best.state)
    return best.objective


class _Trial(NamedTuple):
    """What a start has reached after a few rounds, and what it would reach if the last fall came once more."""

    objective: float
    promise: float
    state: dict[str, Any]


def _tried(pair: Pair, C: Array, W: Array) -> _Trial:
    """Make a few rounds from the largest entries of C W."""
    pair.start([C, W])
    pair.cut(pair.n[:, None] * C**2 * np.square(W).sum(axis=1), W.T**2 * (pair.n @ C**2))
    pair.fit()
    history, _ = _exchange(pair, pair.fit(), _Stop(_TRIAL, 0.0, None))
    return _Trial(history[-1], 2 * history[-1] - history[-2], pair.state())


def _rotated(V: Array, values: Array, ratio: float) -> Array:
    """Rotate by varimax within bands of columns whose singular values differ by at most the given ratio."""
    bands, begin = [], 0
    while begin < len(values):
        end = max(begin + 1, int(np.count_nonzero(values * ratio >= values[begin])))
        bands.append(varimax(V[:, begin:end]))
        begin = end
    return np.ascontiguousarray(np.hstack(bands))


def _exchange(solver: Pair | Chain, first: float, stop: _Stop) -> tuple[list[float], bool]:
    """Add and remove entries in rounds that lower the objective; return its history and whether it converged."""
    history, growth = [first], _GROWTH
    for i in range(stop.max_iter):
        before = solver.state()
        solver.grow(int(growth * solver.budget))
        value = solver.prune(_KEEP)
        if value >= history[-1]:
            solver.restore(before)
            value, growth = history[-1], growth / 2
        history.append(value)
        if stop.callback is not None and stop.callback(i + 1, value):
            return history, False
        if history[-2] - value <= stop.tol * history[-2] and (value < history[-2] or growth < 0.05):
            return history, True
    return history, False
