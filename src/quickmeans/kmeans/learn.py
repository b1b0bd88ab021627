"""How Algorithm 1 learns its factors: by one of the solvers, started from the product of the last iteration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.algorithm1 import Factor
from quickmeans.transform import SolverSettings, SparseProduct
from quickmeans.transform.solvers import Solver, solver_by

_COMPRESSION = 10.0
_FROM_SCRATCH = "hierarchical"  # the paper's hierarchical variant takes every new product, even one farther from U


def factor_by(
    solver: str | Solver, compression: float | str, n_factors: int | str, sparsity_level: int, dtype: np.dtype[Any]
) -> Factor:
    """Return the update of V in Algorithm 1: no farther from U than the last product, unless hierarchical."""
    solve, rate = solver_by(solver), _COMPRESSION if isinstance(compression, str) else float(compression)

    def factor(U: NDArray[np.float64], n: NDArray[np.float64], previous: SparseProduct | None) -> SparseProduct:
        U = U.astype(dtype)
        K, D = U.shape
        feasible = rate if K * D / rate >= K + 1 else 1.0  # with less than one number per row: dense
        product = solve(U, n, previous, SolverSettings(feasible, n_factors, sparsity_level)).product
        if previous is None or solver == _FROM_SCRATCH or _error(U, n, product) < _error(U, n, previous):
            return product
        return previous

    return factor


def _error(U: NDArray[Any], n: NDArray[np.float64], product: SparseProduct) -> float:
    difference = U.astype(np.float64) - product.toarray()
    return float(np.einsum("kd,kd,k->", difference, difference, n))
