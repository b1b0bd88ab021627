"""The registry of solvers (provisional)."""

from dataclasses import dataclass
from typing import Any

from quickmeans.transform.als import sparse_als
from quickmeans.transform.hierarchical import hierarchical_palm4msa
from quickmeans.transform.palm import palm4msa
from quickmeans.transform.product import SparseProduct


@dataclass(frozen=True)
class SolverSettings:
    compression: float = 10.0
    n_factors: int | str = "auto"
    sparsity_level: int = 5


class Solver:
    starts_anew = False

    def __init__(self, function: Any, starts_anew: bool = False) -> None:
        self.function, self.starts_anew = function, starts_anew

    def __call__(self, U: Any, weights: Any, init: Any, settings: SolverSettings) -> Any:
        return self.function(U, weights, init, settings)


@dataclass
class _Dense:
    product: SparseProduct


def _als(U, n, previous, s):
    K, D = U.shape
    rate = s.compression
    if K * D / rate < K + 1:
        return _Dense(SparseProduct([U]))
    if previous is not None and len(previous.factors) == 2:
        return sparse_als(U, rate, weights=n, init=previous, max_iter=3)
    return sparse_als(U, rate, weights=n)


SOLVERS = {
    "als": Solver(_als),
    "palm4msa": Solver(lambda U, n, p, s: palm4msa(U, s.n_factors, s.sparsity_level, weights=n, init=p, max_iter=300)),
    "hierarchical": Solver(lambda U, n, p, s: hierarchical_palm4msa(U, s.n_factors, s.sparsity_level, weights=n), True),
}


def solver_by(solver):
    if callable(solver):
        return Solver(solver)
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {solver!r}.")
    return SOLVERS[solver]
