"""The constraint sets of the factors, as projections onto them.

Every projection keeps some entries of a matrix and sets the others to zero. Of entries of equal size those with the
lower index stay. All selections take time linear in the size of the matrix.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Projection(Protocol):
    """A set of matrices that one can project onto."""

    @property
    def name(self) -> str: ...

    @property
    def is_of_supports(self) -> bool:
        """Whether all matrices with the support of one in the set are in the set."""
        ...

    def project(self, M: Matrix) -> Matrix:
        """The point of the set nearest to M (or near, for :class:`TopPerRowAndColumn`)."""
        ...


def largest(M: Matrix, per_row: int, per_column: int) -> Mask:
    """Where the entries of largest absolute value of every row and every column are; 0 asks for none."""
    return kernels.mark_largest(M, per_row, per_column)


def _per_row_and_column(projection: Any, shape: tuple[int, ...]) -> tuple[int, int]:
    n, m = shape if projection.scaled else (1, 1)
    return max(projection.k, projection.k * m // n), max(projection.k, projection.k * n // m)


def _check_count(k: Any) -> None:
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise ValueError(f"The number of entries to keep must be a positive whole number, got {k!r}.")


@dataclass(frozen=True)
class TopPerRow:
    """At most k non-zeros in every row."""

    k: int

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"{self.k} per row"

    @property
    def is_of_supports(self) -> bool:
        return True

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest(M, self.k, 0), M, 0)


@dataclass(frozen=True)
class TopPerColumn:
    """At most k non-zeros in every column."""

    k: int

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"{self.k} per column"

    @property
    def is_of_supports(self) -> bool:
        return True

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest(M, 0, self.k), M, 0)


@dataclass(frozen=True)
class TopInAll:
    """At most k non-zeros."""

    k: int

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"{self.k} in all"

    @property
    def is_of_supports(self) -> bool:
        return True

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest(M.reshape(1, -1), self.k, 0).reshape(M.shape), M, 0)


@dataclass(frozen=True)
class TopPerRowAndColumn:
    """The paper's set: the k largest entries of every row and the k largest of every column are kept.

    Their union has at least k entries in every row and column and is not an exact projection. With `scaled` the longer
    side of a rectangular matrix gets more, so that rows and columns ask for the same number in all: k max(1, m / n) per
    row of an n x m matrix and k max(1, n / m) per column.
    """

    k: int
    scaled: bool = False

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"{self.k} per row and column{', scaled' * self.scaled}"

    @property
    def is_of_supports(self) -> bool:
        return True

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest(M, *_per_row_and_column(self, M.shape)), M, 0)


@dataclass(frozen=True)
class AtMostPerRowAndColumn:
    """At most k non-zeros in every row and every column: entries are taken greedily, the largest first.

    The nearest point would be a matching of greatest weight; the greedy one has at least half its sum of squares. With
    `scaled` the longer side of a rectangular matrix gets more, as in :class:`TopPerRowAndColumn`.
    """

    k: int
    scaled: bool = False

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"at most {self.k} per row and column{', scaled' * self.scaled}"

    @property
    def is_of_supports(self) -> bool:
        return True

    def project(self, M: Matrix) -> Matrix:
        kept = kernels.match_largest(M, *_per_row_and_column(self, M.shape))
        return np.where(kept, M, 0)


@dataclass(frozen=True, eq=False)
class FixedSupport:
    """Matrices that are zero outside a given support."""

    support: Mask

    @property
    def name(self) -> str:
        return f"a fixed support of {int(np.count_nonzero(self.support))}"

    @property
    def is_of_supports(self) -> bool:
        return True

    def project(self, M: Matrix) -> Matrix:
        return np.where(self.support, M, 0)


@dataclass(frozen=True, eq=False)
class Constant:
    """One matrix alone."""

    value: Matrix

    @property
    def name(self) -> str:
        return "constant"

    @property
    def is_of_supports(self) -> bool:
        return False

    def project(self, M: Matrix) -> Matrix:
        if M.shape != self.value.shape:
            raise ValueError(f"The constant has shape {self.value.shape}, but the factor has shape {M.shape}.")
        return self.value


@dataclass(frozen=True)
class NonNegative:
    """Matrices of another set (or all) without negative entries."""

    inner: Projection | None = None

    @property
    def name(self) -> str:
        return "non-negative" if self.inner is None else f"non-negative, {self.inner.name}"

    @property
    def is_of_supports(self) -> bool:
        return False

    def project(self, M: Matrix) -> Matrix:
        positive = np.maximum(M, 0)
        return positive if self.inner is None else self.inner.project(positive)


@dataclass(frozen=True)
class UnitNorm:
    """Matrices of another set with Frobenius norm one; a matrix that projects to zero stays zero."""

    inner: Projection

    @property
    def name(self) -> str:
        return f"{self.inner.name}, unit norm"

    @property
    def is_of_supports(self) -> bool:
        return False

    def project(self, M: Matrix) -> Matrix:
        kept = self.inner.project(M)
        norm = np.linalg.norm(kept)
        return kept / norm if norm > 0 else kept
