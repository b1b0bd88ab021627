"""Sweeps of palm4MSA."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quickmeans import _native
from quickmeans.kernels.arrays import UINT8, Floats, floats
from quickmeans.threads import instruction_set, resolve_threads


class FactorSet(NamedTuple):
    """The constraint set of a factor: how many entries every row and every column keep.

    They keep their largest entries, in the union of both or, if `greedy`, at most so many. With zeros for both numbers
    the set is given by a function.
    """

    per_row: int
    per_column: int
    greedy: bool
    of_supports: bool


class PalmOptions(NamedTuple):
    """How factors are updated."""

    paper_steps: bool
    once_per_sweep: bool
    shortest: float
    longest_pause: int
    n_refinements: int


class Palm:
    """Factors of unit norm of a matrix with weighted rows, their scale, and sweeps over them."""

    __slots__ = ("_native", "shapes")

    def __init__(
        self, U: Floats, weights: Floats, factors: Sequence[Floats], sets: Sequence[FactorSet], options: PalmOptions
    ) -> None:
        self.shapes = [S.shape for S in factors]
        counts = np.array([[each.per_row, each.per_column] for each in sets], np.int64)
        greedy, of_supports = np.array([[each.greedy, each.of_supports] for each in sets], UINT8).T.copy()
        dense = [floats(S) for S in factors]
        self._native = _native.Palm(
            floats(U),
            floats(weights),
            dense,
            counts,
            greedy,
            of_supports,
            *options,
            resolve_threads(),
            instruction_set(),
        )

    @property
    def total(self) -> float:
        """The weighted sum of squares of the matrix."""
        return self._native.total

    @property
    def scale(self) -> float:
        """The scale of the product."""
        return self._native.scale

    def start(self) -> float:
        """Set the best scale, and return the objective."""
        return self._native.start()

    def sweep(self, project: Callable[[int, Any], None]) -> float:
        """Update every factor once, and return the objective.

        ``project(q, M)`` replaces the numbers of M by those of its projection, for factors whose set has no counts.
        """
        return self._native.sweep(project)

    def factor(self, q: int) -> Floats:
        """Factor q as a dense matrix of norm one."""
        out = np.zeros(self.shapes[q])
        self._native.put_factor(q, out)
        return out
