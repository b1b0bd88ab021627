"""The input and the result of a solver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from quickmeans.transform.checks import check_dense
from quickmeans.transform.product import SparseProduct

Callback = Callable[[int, float], object]
Array = NDArray[np.float64]
Factors = list[Any]  # arrays, or SciPy sparse arrays (SciPy is untyped), from left to right


@dataclass(frozen=True)
class Factorization:
    r"""A product V close to a matrix U, with the history of the solver that found it.

    Attributes
    ----------
    product : SparseProduct
        The product V.
    history : array of shape (n_iter + 1,)
        The objective :math:`\sum_k n_k \|u_k - v_k\|^2` at the start and after every sweep; it never rises.
    relative_error : float
        :math:`\|N^{1/2} (U - V)\|_F / \|N^{1/2} U\|_F`, or 0 if U is zero.
    converged : bool
        True if the solver stopped because the objective no longer fell, False if it reached its number of sweeps or was
        stopped by a callback.
    n_iter : int
        The number of sweeps.
    """

    product: SparseProduct
    history: NDArray[np.float64]
    relative_error: float
    converged: bool

    @property
    def n_iter(self) -> int:
        """The number of sweeps."""
        return len(self.history) - 1


def finished(
    U: Array,
    n: Array,
    factors: Factors,
    history: list[float],
    converged: bool,
    dtype: np.dtype[Any],
) -> Factorization:
    """Return the result of a solver: the product of its factors in the given type, and the error of its last sweep."""
    total = float(n @ np.einsum("kd,kd->k", U, U))
    error = (history[-1] / total) ** 0.5 if total > 0 else 0.0
    product = SparseProduct([factor.astype(dtype) for factor in factors])
    return Factorization(product, np.array(history), error, converged)


def objective(U: Array, n: Array, factors: Factors) -> float:
    r"""Return :math:`\sum_k n_k \|u_k - v_k\|^2` for V the product of the factors."""
    V = factors[-1].toarray() if sp.issparse(factors[-1]) else factors[-1]
    for S in factors[-2::-1]:
        V = S @ V
    return float(n @ np.square(U - V).sum(axis=1))


def check_matrix(U: ArrayLike) -> Array:
    """Return U as a finite 2-D float64 array in row-major order, without a copy if it is one already."""
    matrix = check_dense(U, "U")
    if matrix.ndim != 2 or min(matrix.shape) == 0:
        raise ValueError(f"U must be a matrix with at least one row and one column, got shape {matrix.shape}.")
    matrix = np.ascontiguousarray(matrix, np.float64)
    if not np.isfinite(matrix).all():
        bad = np.argwhere(~np.isfinite(matrix))
        raise ValueError(f"U holds {matrix[tuple(bad[0])]} at row {bad[0, 0]}, column {bad[0, 1]}; it must be finite.")
    return matrix


def check_squares(U: Array, n: Array) -> None:
    """Raise an error if the weighted sum of squares of U overflows float64, or nearly so, or underflows."""
    with np.errstate(over="ignore"):
        total = float(n @ np.einsum("kd,kd->k", U, U))
    if not np.finfo(float).tiny < total < np.sqrt(np.finfo(float).max) and U.any():
        raise ValueError(f"the weighted sum of squares of U is {total:g}, out of the safe range of float64; scale U.")


def check_weights(weights: ArrayLike | None, n_rows: int) -> Array:
    """Return one positive weight per row; ones for None.

    Weights of zero become 1e-12 of the largest: so a solver still finds coefficients for such rows, at no cost to the
    others.
    """
    if weights is None:
        return np.ones(n_rows)
    values = check_dense(weights, "weights").astype(np.float64)
    if values.shape != (n_rows,):
        raise ValueError(f"weights must have shape ({n_rows},), one per row of U, got {values.shape}.")
    if not (np.isfinite(values) & (values >= 0)).all() or not values.any():
        raise ValueError("weights must be finite, not negative, and not all zero.")
    return np.asarray(np.maximum(values, 1e-12 * values.max()), np.float64)


def result_dtype(U: Any) -> np.dtype[Any]:
    """Return the dtype of the factors: float32 if U is float32 or float16, else float64."""
    dtype = np.asarray(U).dtype
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)
