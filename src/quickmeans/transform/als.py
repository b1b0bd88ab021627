r"""Sparse alternating least squares: :math:`U \approx C W` within a budget of multiply-adds.

Both factors are solved for exactly on their supports, in turn, and the supports are found by price (:mod:`.pair`).
The start is the leading singular vectors, rotated to have as many small entries as possible and cut to the budget at
one go. Then, round after round, the most promising entries come in, the cheapest go, and the exchange stands if the
objective has fallen.

How far singular vectors may be mixed by the rotation depends on the spectrum. Where it is flat, all of them together
give the sparsest basis; where it falls steeply, that would spread the few strong directions over all atoms, and
rotating within bands of similar singular values is far better. Both are tried for a few rounds, and the better one goes
on.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from quickmeans.threads import with_one_blas_thread
from quickmeans.transform.chain import Chain
from quickmeans.transform.direct import largest_entries, singular_vectors, truncated_svd
from quickmeans.transform.factorization import (
    Array,
    Callback,
    Factorization,
    Factors,
    check_matrix,
    check_positive,
    check_squares,
    check_weights,
    finished,
    objective,
    result_dtype,
)
from quickmeans.transform.pair import Pair
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.varimax import varimax

_GROWTH = 0.3  # entries that come in, as a share of the budget
_KEEP = 0.9  # share of the entries that one step of pruning keeps
_BANDS = (8.0, np.inf)  # largest ratio of singular values that are rotated together
_TRIAL = 3  # rounds before the better start is chosen
_REFITS = 3  # rounds of least squares when the supports stay


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
    compression : float
        The budget is K D / `compression` multiply-adds: non-zeros, or all entries of a factor more than half full. With
        1 or less the product is U itself.
    weights : array of shape (K,), optional
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`.
    inner_dim : int or "auto"
        The most atoms: C is K x r, W is r x D, and r is at most this and the rank of U. With "auto" the square root of
        the budget; atoms that are not worth their entries go.
    n_factors : int
        How many factors. With more than two, r x r matrices stand between C and W, identities to begin with.
    init : "auto", "svd", "identity" or SparseProduct
        "svd": rotated singular vectors. "identity": the largest entries of U themselves, one factor. "auto": the best
        of these two and of a truncated singular value decomposition. A product of two or more factors: go on from it,
        on its supports.
    max_iter : int
        The most rounds of exchange after the choice of a start; with 0 and a product to go on from, its supports stay.
    tol : float
        Stop when a round lowers the objective by less than this share.
    callback : callable, optional
        Called as ``callback(round, objective)``; a true result stops.

    Returns
    -------
    Factorization
        The product has float32 factors if U is float32, else float64; all arithmetic is in float64. Nothing is random.
    """
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    check_positive("max_iter", max_iter, whole=True, zero=True)
    check_positive("tol", tol, zero=True)
    check_positive("n_factors", n_factors, whole=True)
    if n_factors < 2:
        raise ValueError(f"n_factors must be at least 2, got {n_factors}.")
    if not isinstance(init, SparseProduct) and init not in ("auto", "svd", "identity"):
        raise ValueError(f"init must be 'auto', 'svd', 'identity' or a SparseProduct, got {init!r}.")
    check_squares(matrix, n)
    budget = check_budget(matrix.shape, compression)
    r = _most_atoms(inner_dim, budget, matrix.shape)
    factors, history, converged = _solve(matrix, n, budget, r, n_factors, init, _Stop(max_iter, tol, callback))
    return finished(matrix, n, factors, history, converged, result_dtype(U))


def check_budget(shape: tuple[int, int], compression: float) -> int:
    """The multiply-adds that a compression leaves; there must be enough for one entry per row and a basis."""
    check_positive("compression", compression)
    K, D = shape
    budget = int(K * D / compression)
    if budget < min(K + 1, K * D):
        raise ValueError(
            f"compression {compression:g} leaves {budget} non-zeros, but {K} rows need one each and a basis: "
            f"at most {K * D / (K + 1):.4g} is possible."
        )
    return budget


def _most_atoms(inner_dim: int | str, budget: int, shape: tuple[int, int]) -> int:
    if inner_dim != "auto":
        check_positive("inner_dim", inner_dim, whole=True)
    return min(int(np.sqrt(budget) if inner_dim == "auto" else inner_dim), *shape)


@dataclass(frozen=True)
class _Stop:
    max_iter: int
    tol: float
    callback: Callback | None


Solution = tuple[Factors, list[float], bool]  # with the history, and whether it settled


def _solve(U: Array, n: Array, budget: int, r: int, n_factors: int, init: str | SparseProduct, stop: _Stop) -> Solution:
    if budget >= U.size:
        return [U], [0.0], True
    if not U.any():
        return [np.zeros((len(U), 1)), np.zeros((1, U.shape[1]))], [0.0], True
    if isinstance(init, SparseProduct):
        return _go_on(U, n, budget, init, stop)
    closed = {"identity": [largest_entries], "svd": [], "auto": [largest_entries, truncated_svd]}[init]
    candidates = [_in_closed_form(U, n, factors) for kind in closed if (factors := kind(U, n, budget)) is not None]
    if init != "identity":
        candidates.append(_learn(U, n, budget, r, n_factors, stop))
    return min(candidates, key=lambda solution: solution[1][-1])


def _in_closed_form(U: Array, n: Array, factors: Factors) -> Solution:
    return factors, [objective(U, n, factors)], True


def _learn(U: Array, n: Array, budget: int, r: int, n_factors: int, stop: _Stop) -> Solution:
    """From singular vectors; middle factors begin as identities."""
    spare = (n_factors - 2) * r
    if budget - spare < len(U) + 1:
        raise ValueError(
            f"{n_factors} factors with inner dimension {r} need more than {spare + len(U)} non-zeros, "
            f"but the budget is {budget}; take fewer factors, a smaller inner_dim or less compression."
        )
    pair = Pair(U, n, budget - spare)
    first = _best_start(pair, r)
    if n_factors == 2:
        history, converged = _exchange(pair, first, stop)
        return pair.factors(), history, converged
    _exchange(pair, first, _Stop(stop.max_iter, stop.tol, None))
    C, W = pair.factors()
    chain = Chain(U, n, budget)
    chain.start([C, *(np.eye(len(W)) for _ in range(n_factors - 2)), W])
    history, converged = _exchange(chain, chain.fit(), stop)
    return chain.factors(), history, converged


def _go_on(U: Array, n: Array, budget: int, product: SparseProduct, stop: _Stop) -> Solution:
    """From the factors of a product, on their supports."""
    if len(product.factors) < 2 or product.shape != U.shape:
        raise ValueError(
            f"init must be a product of two or more factors of shape {U.shape}, "
            f"got {len(product.factors)} of shape {product.shape}."
        )
    factors = [np.asarray(S.toarray() if sp.issparse(S) else S, np.float64) for S in product.factors]
    solver: Pair | Chain = Pair(U, n, budget) if len(factors) == 2 else Chain(U, n, budget)
    solver.start(factors)
    solver.meet_budget(_KEEP)
    if stop.max_iter == 0:
        history, converged = [solver.fit() for _ in range(_REFITS)], False
    else:
        history, converged = _exchange(solver, solver.fit(), stop)
    return solver.factors(), history, converged


def _best_start(pair: Pair, r: int) -> float:
    """Rotated singular vectors in C and W, with the bands that do best in the first rounds; the objective then."""
    V = singular_vectors(np.sqrt(pair.n)[:, None] * pair.U, r)
    values = np.sqrt(pair.n @ (pair.U @ V) ** 2)
    best, state = np.inf, {}
    for ratio in _BANDS:
        if np.isinf(ratio) and values[0] <= _BANDS[0] * values[-1]:
            continue  # one band either way
        W = _rotated(V, values, ratio)
        C = pair.U @ W
        pair.start([C, W.T])
        pair.cut(pair.n[:, None] * C**2, W**2 * (pair.n @ C**2))
        pair.fit()
        history, _ = _exchange(pair, pair.fit(), _Stop(_TRIAL, 0.0, None))
        if history[-1] < best:
            best, state = history[-1], pair.state()
    pair.restore(state)
    return best


def _rotated(V: Array, values: Array, ratio: float) -> Array:
    """Varimax within bands of columns whose singular values differ by the ratio at most."""
    bands, begin = [], 0
    while begin < len(values):
        end = max(begin + 1, int(np.count_nonzero(values * ratio >= values[begin])))
        bands.append(varimax(V[:, begin:end]))
        begin = end
    return np.ascontiguousarray(np.hstack(bands))


def _exchange(solver: Pair | Chain, first: float, stop: _Stop) -> tuple[list[float], bool]:
    """Rounds of growing and pruning, each kept only if it lowers the objective; the history and whether it settled."""
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
