r"""Products in closed form within a budget of multiply-adds; a solver should be better than these.

Each function takes U (K x D), the weights n and the budget. It returns the factors of its kind with the smallest
:math:`\sum_k n_k \|u_k - v_k\|^2`, or None if no product of its kind is within the budget.
"""

import numpy as np
import scipy.linalg

from quickmeans.transform.factorization import Array, Factors
from quickmeans.transform.factors import DENSE_SHARE
from quickmeans.transform.fixed import dct, haar, hadamard

TRANSFORMS = {"dct": dct, "haar": haar, "hadamard": hadamard}


def truncated_svd(U: Array, n: Array, budget: int) -> Factors | None:
    """Return the best dense factors, K x r and r x D."""
    r = budget // sum(U.shape)
    if r == 0:
        return None
    V = singular_vectors(np.sqrt(n)[:, None] * U, r)
    return [U @ V, np.ascontiguousarray(V.T)]


def largest_entries(U: Array, n: Array, budget: int) -> Factors | None:
    """Return U with only the entries of largest n_k u_kj^2 kept, at least one in every row."""
    if budget < len(U):
        return None
    if budget < U.size:
        budget = min(budget, max(int(DENSE_SHARE * U.size), len(U)))
    worth = n[:, None] * U**2
    worth[np.arange(len(U)), worth.argmax(axis=1)] = np.inf
    kept = np.zeros(U.shape)
    chosen = np.argpartition(worth, worth.size - budget, axis=None)[worth.size - budget :]
    kept.flat[chosen] = U.flat[chosen]
    return [kept]


def largest_per_row(U: Array, budget: int) -> Factors | None:
    """Return U with only the largest entries of every row kept, equally many in each."""
    count = min(budget // len(U), int(DENSE_SHARE * U.shape[1]))
    if count == 0:
        return None
    chosen = np.argpartition(np.abs(U), U.shape[1] - count, axis=1)[:, U.shape[1] - count :]
    kept = np.zeros(U.shape)
    np.put_along_axis(kept, chosen, np.take_along_axis(U, chosen, axis=1), axis=1)
    return [kept]


def over_transform(U: Array, n: Array, budget: int, name: str) -> Factors | None:
    """Return the largest coefficients of U = (U T') T, and the factors of T, a fixed orthonormal transform."""
    transform = TRANSFORMS[name](U.shape[1])
    coefficients = largest_entries(transform.apply(U), n, budget - transform.macs)
    return None if coefficients is None else [*coefficients, *transform.factors]


def singular_vectors(A: Array, r: int) -> Array:
    """Return the r leading right singular vectors of A as columns; fewer if its rank is lower."""
    tall = A.shape[0] > A.shape[1]
    values, vectors = scipy.linalg.eigh(A.T @ A if tall else A @ A.T, check_finite=False)
    values, vectors = values[::-1][:r], vectors[:, ::-1][:, :r]
    real = values > 1e-12 * values[0]
    right = vectors[:, real] if tall else A.T @ (vectors[:, real] / np.sqrt(values[real]))
    return np.asarray(right, np.float64)
