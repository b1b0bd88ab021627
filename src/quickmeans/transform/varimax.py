"""The varimax rotation: the same subspace, in a basis with as many small entries as possible."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray


def varimax(V: NDArray[Any], max_iter: int = 10, tol: float = 1e-4) -> NDArray[np.float64]:
    r"""Rotate the columns of V so that their squared entries vary most.

    This maximises :math:`\sum_{ij} L_{ij}^4 - \sum_j (\sum_i L_{ij}^2)^2 / n` over :math:`L = V R` with R orthogonal.
    In every step R is the polar factor of the gradient. Most of the rise is in the first few steps.
    """
    n = len(V)
    L, last = V, 0.0
    for _ in range(max_iter):
        gradient = V.T @ (L * (L * L - np.square(L).sum(axis=0) / n))
        left, singular_values, right = scipy.linalg.svd(gradient, check_finite=False)
        L = V @ (left @ right)
        if singular_values.sum() < last * (1 + tol):
            break
        last = singular_values.sum()
    return np.ascontiguousarray(L)
