r"""The solvers that can be chosen by name, with one signature: :data:`SOLVERS` is the only list of them.

A solver is a callable ``solver(U, weights, init, settings)``. It returns a :class:`Factorization` of the K x D matrix U
for the objective :math:`\sum_k n_k \|u_k - v_k\|^2`, with the weights n. `init` is the product of the last iteration of
k-means, from which the solver may start, or None. QKMeans and :func:`factorize` take such a callable wherever they take
a name; the command line takes the names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quickmeans.transform.als import sparse_als
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
from quickmeans.transform.presets import is_preset
from quickmeans.transform.product import SparseProduct

_WARM_ROUNDS = 3  # of sparse ALS from the last product; fewer than the 5 of a first call, since that product is near


@dataclass(frozen=True)
class SolverSettings:
    """How large the product of a solver may be.

    Parameters
    ----------
    compression : float, default=10.0
        The product may have K D / `compression` multiply-adds. For "als".
    n_factors : int, "auto", "paper" or "journal", default="auto"
        The number of factors, or a preset. For "palm4msa" and "hierarchical".
    sparsity_level : int, default=5
        The number of entries per row and per column of every factor. For "palm4msa" and "hierarchical".
    options : mapping, default={}
        Further keyword arguments of the solver's function, as given to :func:`factorize`.
    """

    compression: float = 10.0
    n_factors: int | str = "auto"
    sparsity_level: int = 5
    options: Mapping[str, Any] = field(default_factory=dict)


Solver = Callable[[Any, Any, SparseProduct | None, SolverSettings], Factorization]


def _als(
    U: ArrayLike, weights: ArrayLike | None, init: SparseProduct | None, settings: SolverSettings
) -> Factorization:
    warm: dict[str, Any] = {} if init is None or len(init.factors) != 2 else {"init": init, "max_iter": _WARM_ROUNDS}
    return sparse_als(U, settings.compression, weights=weights, **warm | dict(settings.options))


def _palm4msa(
    U: ArrayLike, weights: ArrayLike | None, init: SparseProduct | None, settings: SolverSettings
) -> Factorization:
    """Start from `init`. With a preset the first factorization is hierarchical, as in the paper's experiments."""
    options: dict[str, Any] = {"n_factors": settings.n_factors, "sparsity_level": settings.sparsity_level}
    options |= settings.options
    if init is None and is_preset(options["n_factors"]) and not options.keys() & {"init", "projections"}:
        return hierarchical_palm4msa(U, weights=weights, **options)
    return palm4msa(U, weights=weights, **{"init": init} | options)


def _hierarchical(
    U: ArrayLike, weights: ArrayLike | None, init: SparseProduct | None, settings: SolverSettings
) -> Factorization:
    """Factor U anew: there is no start from `init`."""
    sizes = {"n_factors": settings.n_factors, "sparsity_level": settings.sparsity_level}
    return hierarchical_palm4msa(U, weights=weights, **sizes | dict(settings.options))


SOLVERS: dict[str, Solver] = {"als": _als, "palm4msa": _palm4msa, "hierarchical": _hierarchical}


def solver_by(solver: str | Solver) -> Solver:
    """Return the solver of a name; a callable is returned with a check of its results."""
    if callable(solver):
        return partial(_checked, solver)
    if not isinstance(solver, str) or solver not in SOLVERS:
        names = ", ".join(map(repr, SOLVERS))
        raise ValueError(f"solver must be one of {names}, or a callable, got {solver!r}.")
    return SOLVERS[solver]


def _checked(
    solver: Callable[..., Any],
    U: ArrayLike,
    weights: ArrayLike | None,
    init: SparseProduct | None,
    settings: SolverSettings,
) -> Factorization:
    """Call a solver of the user's own; its product must have the shape of U and be finite, and gets the type for U."""
    result = solver(U, weights, init, settings)
    product = result.product if isinstance(result, Factorization) else result
    if not isinstance(product, SparseProduct):
        raise TypeError(f"solver must return a Factorization or a SparseProduct, got {type(result).__name__}.")
    matrix, dtype = check_matrix(U), result_dtype(U)
    if product.shape != matrix.shape:
        raise ValueError(f"solver must return a product of shape {matrix.shape}, got {product.shape}.")
    if not np.isfinite(product.toarray()).all():
        raise ValueError("solver must return a product of finite numbers, but its rows overflow.")
    if isinstance(result, Factorization):
        return replace(result, product=SparseProduct([S.astype(dtype) for S in product.factors]))
    n = check_weights(weights, len(matrix))
    return finished(matrix, n, list(product.factors), [objective(matrix, n, list(product.factors))], True, dtype)
