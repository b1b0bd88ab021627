"""The parameter gamma of kernels, and the moments of the rows that it may depend on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.checks import is_number
from quickmeans.kmeans.rows import Rows, column_moments

_NAMES = ("scale", "mean-distance")


def check_gamma(gamma: Any) -> None:
    """Refuse what is neither a positive number, nor a name, nor None."""
    named = gamma is None or (isinstance(gamma, str) and gamma in _NAMES)
    if not named and not (is_number(gamma) and 0 < float(gamma) < np.inf):
        raise ValueError(f"gamma must be a positive number, 'scale', 'mean-distance' or None, got {gamma!r}.")


def mean_and_spread(rows: Rows, n_threads: int) -> tuple[NDArray[np.float64], float]:
    """The mean of the rows, and the mean of their squared distances from it."""
    mean, variances = column_moments(rows, n_threads)
    with np.errstate(over="ignore"):
        if not np.isfinite(variances.sum() + mean @ mean):
            raise ValueError("The squares of the numbers in X overflow float64; scale X.")
    return mean, float(variances.sum())


def resolve_gamma(gamma: float | str | None, mean: NDArray[np.float64], spread: float) -> float:
    """gamma as a number; `spread` is the mean of ||x - mean||^2 over the rows x."""
    if gamma is None:
        return 1.0 / len(mean)
    if not isinstance(gamma, str):
        return float(gamma)
    inverse = spread + float(np.square(mean - mean.mean()).sum()) if gamma == "scale" else 2 * spread
    if inverse <= 1e-24 * (mean @ mean):  # rows that are equal but for the rounding of float64, squared
        return 1.0
    if inverse < np.finfo(np.float64).tiny:
        raise ValueError(f"The rows of X are too near each other for gamma={gamma!r}; scale X.")
    return 1.0 / inverse
