"""One door to all ways of making a product of sparse factors close to a given matrix."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from quickmeans.transform.als import check_budget, sparse_als
from quickmeans.transform.direct import TRANSFORMS, largest_entries, over_transform, truncated_svd
from quickmeans.transform.factorization import (
    Factorization,
    check_matrix,
    check_weights,
    finished,
    objective,
    result_dtype,
)
from quickmeans.transform.hierarchical import hierarchical_palm4msa
from quickmeans.transform.palm import palm4msa

# Solvers with parameters of their own; those of the second kind take no budget but a sparsity level.
_LEARNED: dict[str, Callable[..., Factorization]] = {"als": sparse_als}
_BY_SPARSITY_LEVEL: dict[str, Callable[..., Factorization]] = {
    "palm4msa": palm4msa,
    "hierarchical": hierarchical_palm4msa,
}
_DIRECT: dict[str, Callable[..., Any]] = {
    "svd": truncated_svd,
    "threshold": largest_entries,
    **{name: partial(over_transform, name=name) for name in TRANSFORMS},
}


def factorize(
    U: ArrayLike,
    method: str = "auto",
    compression: float = 10.0,
    *,
    weights: ArrayLike | None = None,
    **options: Any,
) -> Factorization:
    r"""A product of sparse factors close to U.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    method : str
        "als": :func:`sparse_als`. "palm4msa": :func:`palm4msa`. "hierarchical": :func:`hierarchical_palm4msa`. In
        closed form: "svd", two dense factors; "threshold", the largest entries of U; "dct", "haar" or "hadamard", the
        largest coefficients over that transform (the last two need a D that is a power of two). "auto": the best of
        sparse ALS, which tries "svd" and "threshold" itself, and "dct".
    compression : float
        At most K D / `compression` multiply-adds per vector. "palm4msa" and "hierarchical" have a sparsity
        level instead and ignore it.
    weights : array of shape (K,), optional
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`.
    **options
        Further parameters of the solver; with "auto" those of sparse ALS.

    Returns
    -------
    Factorization

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans.transform import factorize
    >>> U = np.cos(np.outer(np.arange(40), np.arange(64)) / 9)
    >>> found = factorize(U, compression=2)
    >>> found.product.macs <= 40 * 64 / 2, found.relative_error < factorize(U, "threshold", 2).relative_error
    (True, True)
    """
    methods = ["auto", *_LEARNED, *_BY_SPARSITY_LEVEL, *_DIRECT]
    if method not in methods:
        raise ValueError(f"method must be one of {', '.join(map(repr, methods))}, got {method!r}.")
    if method in _BY_SPARSITY_LEVEL:
        return _BY_SPARSITY_LEVEL[method](U, weights=weights, **options)
    if method in _LEARNED:
        return _LEARNED[method](U, compression, weights=weights, **options)
    if method in _DIRECT:
        if options:
            raise TypeError(f"method {method!r} is in closed form and takes no {', '.join(options)}.")
        found = _direct(U, method, compression, weights)
        if found is None:
            raise ValueError(f"method {method!r} does not fit compression {compression:g}; a lower one may.")
        return found
    learned, fixed = sparse_als(U, compression, weights=weights, **options), _direct(U, "dct", compression, weights)
    return fixed if fixed is not None and fixed.relative_error < learned.relative_error else learned


def _direct(U: ArrayLike, method: str, compression: float, weights: ArrayLike | None) -> Factorization | None:
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    budget = min(check_budget(matrix.shape, compression), matrix.size)
    factors = _DIRECT[method](matrix, n, budget)
    if factors is None:
        return None
    return finished(matrix, n, factors, [objective(matrix, n, factors)], True, result_dtype(U))
