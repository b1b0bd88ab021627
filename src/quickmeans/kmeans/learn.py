"""How Algorithm 1 learns its factors: one of the solvers, started from the last product."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.algorithm1 import Factor
from quickmeans.transform import SparseProduct, hierarchical_palm4msa, palm4msa, sparse_als

_COMPRESSION = 10.0
_EXCHANGES = 3  # rounds of sparse ALS in every iteration after the first
_SWEEPS = 300  # of palm4MSA in every iteration


def factor_by(
    solver: str, compression: float | str, n_factors: int | str, sparsity_level: int, dtype: np.dtype[Any]
) -> Factor:
    """The update of V in Algorithm 1: no farther from U than the previous product, unless hierarchical."""
    rate = _COMPRESSION if isinstance(compression, str) else float(compression)

    def factor(U: NDArray[np.float64], n: NDArray[np.float64], previous: SparseProduct | None) -> SparseProduct:
        U = U.astype(dtype)
        if solver == "als":
            product = _by_als(U, n, previous, rate)
        elif solver == "hierarchical":
            product = hierarchical_palm4msa(U, n_factors, sparsity_level, weights=n).product
        else:
            product = palm4msa(U, n_factors, sparsity_level, weights=n, init=previous, max_iter=_SWEEPS).product
        if previous is None or solver == "hierarchical" or _error(U, n, product) < _error(U, n, previous):
            return product
        return previous

    return factor


def _by_als(U: NDArray[Any], n: NDArray[np.float64], previous: SparseProduct | None, rate: float) -> SparseProduct:
    K, D = U.shape
    if K * D / rate < K + 1:  # less than one number per row: dense
        return SparseProduct([U])
    if previous is not None and len(previous.factors) == 2:
        return sparse_als(U, rate, weights=n, init=previous, max_iter=_EXCHANGES).product
    return sparse_als(U, rate, weights=n).product


def _error(U: NDArray[Any], n: NDArray[np.float64], product: SparseProduct) -> float:
    difference = U.astype(np.float64) - product.toarray()
    return float(np.einsum("kd,kd,k->", difference, difference, n))
