"""One function for all ways to make a product of sparse factors close to a given matrix."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from quickmeans.transform.als import check_budget
from quickmeans.transform.direct import TRANSFORMS, largest_entries, over_transform, truncated_svd
from quickmeans.transform.factorization import (
    Factorization,
    check_matrix,
    check_weights,
    finished,
    objective,
    result_dtype,
)
from quickmeans.transform.solvers import SOLVERS, Solver, SolverSettings, solver_by

_DIRECT: dict[str, Callable[..., Any]] = {
    "svd": truncated_svd,
    "threshold": largest_entries,
    **{name: partial(over_transform, name=name) for name in TRANSFORMS},
}


def factorize(
    U: ArrayLike,
    method: str | Solver = "auto",
    compression: float = 10.0,
    *,
    weights: ArrayLike | None = None,
    **options: Any,
) -> Factorization:
    r"""Find a product of sparse factors close to U.

    Parameters
    ----------
    U : array of shape (K, D)
        Finite real numbers.
    method : str or callable, default="auto"
        A solver: "als" (:func:`sparse_als`), "palm4msa" (:func:`palm4msa`), "hierarchical"
        (:func:`hierarchical_palm4msa`), or a callable as in :mod:`quickmeans.transform.solvers`. A product in closed
        form: "svd", two dense factors; "threshold", the largest entries of U; "dct", "haar" or "hadamard", the largest
        coefficients over that transform ("haar" and "hadamard" need a D that is a power of two). "auto" takes the best
        of "als", which tries "svd" and "threshold" itself, and "dct".
    compression : float, default=10.0
        The product has at most K D / `compression` multiply-adds per vector. "palm4msa" and "hierarchical" ignore it;
        their size depends on the option `sparsity_level`.
    weights : array of shape (K,), default=None
        The :math:`n_k` of the objective :math:`\sum_k n_k \|u_k - v_k\|^2`; None stands for ones.
    **options
        Further parameters of the solver; with "auto" those of "als".

    Returns
    -------
    Factorization

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans.transform import factorize
    >>> U = np.cos(np.outer(np.arange(40), np.arange(64)) / 9)
    >>> result = factorize(U, compression=2)
    >>> result.product.macs <= 40 * 64 / 2, result.relative_error < factorize(U, "threshold", 2).relative_error
    (True, True)
    """
    if not callable(method) and method not in (names := ["auto", *SOLVERS, *_DIRECT]):
        raise ValueError(f"method must be one of {', '.join(map(repr, names))}, or a callable, got {method!r}.")
    if isinstance(method, str) and method in _DIRECT:
        if options:
            raise TypeError(f"method {method!r} is in closed form and takes no {', '.join(options)}.")
        result = _direct(U, method, compression, weights)
        if result is None:
            raise ValueError(f"method {method!r} does not fit compression {compression:g}; a lower one may.")
        return result
    solve = solver_by("als" if method == "auto" else method)
    learned = solve(U, weights, None, SolverSettings(compression, options=options))
    fixed = _direct(U, "dct", compression, weights) if method == "auto" else None
    return fixed if fixed is not None and fixed.relative_error < learned.relative_error else learned


def _direct(U: ArrayLike, method: str, compression: float, weights: ArrayLike | None) -> Factorization | None:
    """Return a product in closed form, or None if no such product is within the budget."""
    matrix = check_matrix(U)
    n = check_weights(weights, len(matrix))
    factors = _DIRECT[method](matrix, n, check_budget(matrix.shape, compression))
    if factors is None:
        return None
    return finished(matrix, n, factors, [objective(matrix, n, factors)], True, result_dtype(U))
