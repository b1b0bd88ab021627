r"""Sparse alternating least squares: :math:`U \approx C W` within a budget of multiply-adds.

C is K x r, W is r x D. On fixed supports every row of C and every column of W is a small least-squares problem,

.. math:: c_k = \arg\min \|u_k - c W\|^2, \qquad w_j = \arg\min \|N^{1/2} (u_j - C w)\|^2,

with the Gram matrices :math:`W W'` and :math:`C' N C`; solving them in turn never raises the objective
:math:`\sum_k n_k \|u_k - c_k W\|^2`. The supports are chosen by price: taking an entry away raises the objective by
:math:`n_k c_i^2 / B_{ii}` with B the inverse of the Gram matrix on its support (the optimal brain surgeon), and
letting one in lowers it by about :math:`g_i^2 / G_{ii}` with g its gradient. Entries of C and W have the same currency,
so they are ranked together: first the dense rotated singular vectors are pruned down to the budget, then, round after
round, the most promising entries come in, the cheapest go, and the exchange stands if the objective has fallen.
"""

import os
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from quickmeans import _native
from quickmeans.threads import resolve_threads
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
from quickmeans.transform.varimax import varimax

_FIRST_CUT = 3.0  # the first cut from dense factors, in budgets: made at one go
_KEEP_PRUNING = 0.7  # share of the entries that a step of the first descent keeps
_KEEP_EXCHANGE = 0.9  # the same when new entries are exchanged for old ones
_GROWTH = 0.3  # entries that come in, as a share of the budget


def sparse_als(
    U: ArrayLike,
    compression: float = 10.0,
    *,
    weights: ArrayLike | None = None,
    inner_dim: int | str = "auto",
    init: str | SparseProduct = "auto",
    max_iter: int = 6,
    tol: float = 1e-3,
    callback: Callback | None = None,
) -> Factorization:
    r"""Factor U into two sparse matrices with at most K D / `compression` non-zeros in all.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    compression : float
        The budget is K D / `compression` non-zeros, as many multiply-adds per vector while both factors are kept
        sparse. With 1 or less the product is U itself.
    weights : array of shape (K,), optional
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`.
    inner_dim : int or "auto"
        The r of C (K x r) and W (r x D), at most the rank of U; "auto" is 0.8 times the square root of the budget.
    init : "auto", "svd", "identity" or SparseProduct
        "svd": rotated singular vectors, pruned. "identity": the largest entries of U themselves, one factor. "auto":
        the better of the two. A product of two factors: go on from it, on its supports.
    max_iter : int
        The most rounds of exchange; with 0 the supports stay as they are.
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
    check_positive("compression", compression)
    check_positive("max_iter", max_iter, whole=True, zero=True)
    check_positive("tol", tol, zero=True)
    K, D = matrix.shape
    budget = int(K * D / compression)
    if budget >= K * D:
        return finished(matrix, n, [matrix], [0.0], True, result_dtype(U))
    if budget < K + 1:
        raise ValueError(
            f"compression {compression:g} leaves {budget} non-zeros, but {K} rows need one each and a basis: "
            f"at most {K * D / (K + 1):.4g} is possible."
        )
    if not matrix.any():
        return finished(matrix, n, [np.zeros((K, 1)), np.zeros((1, D))], [0.0], True, result_dtype(U))
    if isinstance(init, str) and init not in ("auto", "svd", "identity"):
        raise ValueError(f"init must be 'auto', 'svd', 'identity' or a SparseProduct, got {init!r}.")
    if init in ("auto", "identity"):
        kept = _largest_entries(matrix, n, budget)
        identity = finished(matrix, n, [kept], [_objective(matrix, n, kept)], True, result_dtype(U))
        if init == "identity":
            return identity
    pair = _Pair(matrix, n)
    if isinstance(init, SparseProduct):
        pair.start_from(init)
    else:
        pair.start_from_singular_vectors(_inner_dim(inner_dim, budget, min(K, D)), budget)
    history, converged = _exchange(pair, budget, max_iter, tol, callback)
    if init == "auto" and identity.history[-1] < history[-1]:
        return identity
    return finished(matrix, n, [pair.C, pair.Wt.T], history, converged, result_dtype(U))


def _exchange(
    pair: "_Pair", budget: int, max_iter: int, tol: float, callback: Callback | None
) -> tuple[list[float], bool]:
    """Rounds of growing and pruning, each kept only if it lowers the objective; the history and whether it settled."""
    history = [pair.prune(budget, _KEEP_PRUNING)]
    growth = _GROWTH
    for i in range(max_iter):
        before = pair.state()
        pair.grow(int(growth * budget))
        objective = pair.prune(budget, _KEEP_EXCHANGE)
        if objective >= history[-1]:
            pair.restore(before)
            objective, growth = history[-1], growth / 2
        history.append(objective)
        if callback is not None and callback(i + 1, objective):
            return history, False
        if history[-2] - objective <= tol * history[-2] and (objective < history[-2] or growth < 0.05):
            return history, True
    return history, False


class _Pair:
    """C and W' (so that both are one small problem per row), their supports and prices."""

    def __init__(self, U: NDArray[np.float64], n: NDArray[np.float64]) -> None:
        self.U, self.n = U, n
        self.weighted = n[:, None] * U
        self.total = float((self.weighted * U).sum())

    # ---- starts ---------------------------------------------------------------------------------------------------

    def start_from(self, product: SparseProduct) -> None:
        """The factors of a product of two, and their supports."""
        if len(product.factors) != 2 or product.shape != self.U.shape:
            raise ValueError(
                f"init must be a product of two factors of shape {self.U.shape}, "
                f"got {len(product.factors)} of shape {product.shape}."
            )
        self.C, W = (S.toarray() if sp.issparse(S) else S for S in product.factors)
        self.C, self.Wt = self.C.astype(np.float64), np.ascontiguousarray(W.T, np.float64)
        self.support_C, self.support_W = (self.C != 0).astype(np.uint8), (self.Wt != 0).astype(np.uint8)
        self.fit_C()
        self.fit_W()

    def start_from_singular_vectors(self, r: int, budget: int) -> None:
        """Rotated right singular vectors of N^(1/2) U, cut to a few budgets at once by the prices of dense factors."""
        self.Wt = varimax(_singular_vectors(np.sqrt(self.n)[:, None] * self.U, r))
        self.C = self.U @ self.Wt
        self.support_C = np.ones(self.C.shape, np.uint8)
        self.support_W = np.ones(self.Wt.shape, np.uint8)
        inverse = np.linalg.inv(_regular((self.n[:, None] * self.C).T @ self.C))
        self.price_C = self.n[:, None] * self.C**2  # W is orthonormal
        self.price_W = self.Wt**2 / np.diag(inverse)
        surplus = self.nnz - int(_FIRST_CUT * budget)
        if surplus > 0:
            limit_C, limit_W = self._protected_prices()
            limit = _smallest(surplus, limit_C, limit_W)
            self.support_C[limit_C <= limit] = 0
            self.support_W[limit_W <= limit] = 0
        self.fit_C()
        self.fit_W()

    # ---- least squares on the supports ----------------------------------------------------------------------------

    def fit_C(self, drop: NDArray[np.int64] | None = None) -> None:
        self.C, self.price_C = _fit(self.Wt.T @ self.Wt, self.U @ self.Wt, self.n, self.support_C, drop)

    def fit_W(self, drop: NDArray[np.int64] | None = None) -> None:
        """Solve for W; the objective follows from its normal equations."""
        self.gram = (self.n[:, None] * self.C).T @ self.C
        self.targets = self.weighted.T @ self.C
        self.Wt, self.price_W = _fit(self.gram, self.targets, np.ones(len(self.Wt)), self.support_W, drop)
        self.objective = max(self.total - float((self.Wt * self.targets).sum()), 0.0)

    # ---- supports -------------------------------------------------------------------------------------------------

    @property
    def nnz(self) -> int:
        return int(self.support_C.sum(dtype=np.int64) + self.support_W.sum(dtype=np.int64))

    def prune(self, budget: int, keep: float) -> float:
        """Take the cheapest entries away, a share at a time, until the budget is met; the objective then."""
        while (surplus := self.nnz - budget) > 0:
            step = max(1, min(surplus, int((1 - keep) * self.nnz)))
            price_C, price_W = self._protected_prices()
            limit = _smallest(step, price_C, price_W)
            self.fit_C((price_C <= limit).sum(axis=1))
            self.fit_W((price_W <= limit).sum(axis=1))
        self.fit_C()
        self.fit_W()
        return self.objective

    def grow(self, count: int) -> None:
        """Let in the entries whose gradients promise most."""
        gram = self.Wt.T @ self.Wt
        gain_C = self.n[:, None] * _gain(self.U @ self.Wt - self.C @ gram, gram, self.support_C)
        gain_W = _gain(self.targets - self.Wt @ self.gram, self.gram, self.support_W)
        limit = -_smallest(min(max(count, 1), gain_C.size + gain_W.size), -gain_C, -gain_W)
        self.support_C |= (gain_C >= max(limit, np.finfo(float).tiny)).astype(np.uint8)
        self.support_W |= (gain_W >= max(limit, np.finfo(float).tiny)).astype(np.uint8)
        self.fit_C()
        self.fit_W()

    def _protected_prices(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The prices, with the dearest entry of every row of C beyond price: no row may lose all."""
        price_C = self.price_C.copy()
        dearest = np.where(np.isfinite(price_C), price_C, -1).argmax(axis=1)
        price_C[np.arange(len(price_C)), dearest] = np.inf
        return price_C, self.price_W

    def state(self) -> dict[str, Any]:
        return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()
                if name not in ("U", "n", "weighted", "total")}  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _fit(
    gram: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    support: NDArray[np.uint8],
    drop: NDArray[np.int64] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients and prices on the supports, after dropping so many of the cheapest entries of every row."""
    values, prices = np.empty_like(targets), np.empty_like(targets)
    drop = np.zeros(len(targets), np.int64) if drop is None else drop
    isa = os.environ.get("QUICKMEANS_ISA", "")
    _native.fit_supports(_regular(gram), targets, weights, drop, support, values, prices, resolve_threads(), isa)
    return values, prices


def _regular(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Gram matrix with a little on its diagonal, so that dead or equal atoms do no harm."""
    ridge = 1e-10 * float(np.trace(gram)) / len(gram) + float(np.finfo(float).tiny)
    return gram + ridge * np.eye(len(gram))


def _gain(gradient: NDArray[np.float64], gram: NDArray[np.float64], support: NDArray[np.uint8]) -> NDArray[np.float64]:
    """What each entry outside the support would lower the objective by if it came in alone."""
    diagonal = np.diag(gram)
    gain = np.divide(gradient**2, diagonal, out=np.zeros_like(gradient), where=diagonal > 1e-12 * diagonal.max())
    gain[support > 0] = 0
    return gain


def _smallest(count: int, *arrays: NDArray[np.float64]) -> float:
    """The count-th smallest of all numbers."""
    together = np.concatenate([array.ravel() for array in arrays])
    return float(np.partition(together, count - 1)[count - 1])


def _singular_vectors(A: NDArray[np.float64], r: int) -> NDArray[np.float64]:
    """The r leading right singular vectors of A as columns; fewer if its rank is lower."""
    tall = A.shape[0] > A.shape[1]
    values, vectors = scipy.linalg.eigh(A.T @ A if tall else A @ A.T, check_finite=False)
    values, vectors = values[::-1][:r], vectors[:, ::-1][:, :r]
    real = values > 1e-12 * values[0]
    right = vectors[:, real] if tall else A.T @ (vectors[:, real] / np.sqrt(values[real]))
    return np.asarray(right, np.float64)


def _inner_dim(inner_dim: int | str, budget: int, most: int) -> int:
    if inner_dim == "auto":
        return max(1, min(most, int(0.8 * np.sqrt(budget))))
    check_positive("inner_dim", inner_dim, whole=True)
    return min(int(inner_dim), most)


def _largest_entries(U: NDArray[np.float64], n: NDArray[np.float64], budget: int) -> NDArray[np.float64]:
    """U with only the entries of the largest n_k u_kj^2, one of every row among them."""
    worth = n[:, None] * U**2
    worth[np.arange(len(U)), worth.argmax(axis=1)] = np.inf
    limit = -_smallest(budget, -worth)
    return np.where(worth >= limit, U, 0)


def _objective(U: NDArray[np.float64], n: NDArray[np.float64], V: NDArray[np.float64]) -> float:
    return float((n[:, None] * (U - V) ** 2).sum())
