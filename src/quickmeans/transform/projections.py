"""The constraint sets of the factors, as projections onto them.

Every projection keeps some entries of a matrix and sets the others to zero. Of entries of equal size those with the
lower index stay. All selections take time linear in the size of the matrix.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Projection(Protocol):
    """A set of matrices that one can project onto."""

    @property
    def name(self) -> str: ...

    def project(self, M: Matrix) -> Matrix:
        """The point of the set nearest to M (or near, for :class:`TopPerRowAndColumn`)."""
        ...


def largest_per_row(M: Matrix, k: int) -> Mask:
    """Where the k entries of largest absolute value of every row are."""
    n_columns = M.shape[1]
    if k >= n_columns:
        return np.ones(M.shape, bool)
    size = np.abs(M)
    bar = np.partition(size, n_columns - k, axis=1)[:, n_columns - k, None]
    above, level = size > bar, size == bar
    room = k - above.sum(axis=1, keepdims=True)
    if (level.sum(axis=1, keepdims=True) > room).any():  # ties
        level &= np.cumsum(level, axis=1) <= room
    return np.asarray(above | level)


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

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest_per_row(M, self.k), M, 0)


@dataclass(frozen=True)
class TopPerColumn:
    """At most k non-zeros in every column."""

    k: int

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"{self.k} per column"

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest_per_row(M.T, self.k).T, M, 0)


@dataclass(frozen=True)
class TopInAll:
    """At most k non-zeros."""

    k: int

    def __post_init__(self) -> None:
        _check_count(self.k)

    @property
    def name(self) -> str:
        return f"{self.k} in all"

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest_per_row(M.reshape(1, -1), self.k).reshape(M.shape), M, 0)


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

    def project(self, M: Matrix) -> Matrix:
        n, m = M.shape
        per_row = max(self.k, self.k * m // n) if self.scaled else self.k
        per_column = max(self.k, self.k * n // m) if self.scaled else self.k
        return np.where(largest_per_row(M, per_row) | largest_per_row(M.T, per_column).T, M, 0)


@dataclass(frozen=True, eq=False)
class FixedSupport:
    """Matrices that are zero outside a given support."""

    support: Mask

    @property
    def name(self) -> str:
        return f"a fixed support of {int(np.count_nonzero(self.support))}"

    def project(self, M: Matrix) -> Matrix:
        return np.where(self.support, M, 0)


@dataclass(frozen=True, eq=False)
class Constant:
    """One matrix alone."""

    value: Matrix

    @property
    def name(self) -> str:
        return "constant"

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

    def project(self, M: Matrix) -> Matrix:
        kept = self.inner.project(M)
        norm = np.linalg.norm(kept)
        return kept / norm if norm > 0 else kept
