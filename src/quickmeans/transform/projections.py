"""The constraint sets of the factors, given by the projections onto them.

The sets of sparse matrices keep the largest entries of a matrix and set the others to zero. Of entries of equal size
those with the lower index are kept. Every selection takes time linear in the size of the matrix.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quickmeans import kernels
from quickmeans.checks import check_whole
from quickmeans.transform.checks import check_dense

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Projection(Protocol):
    """A set of matrices and the projection onto it."""

    @property
    def name(self) -> str:
        """What the set is, in a few words."""
        ...

    @property
    def is_of_supports(self) -> bool:
        """Whether the set restricts supports only: then the values on a support of the set are free."""
        ...

    def project(self, M: Matrix) -> Matrix:
        """Return the matrix of the set nearest to M (only a near one for the greedy and the union sets)."""
        ...


def largest(M: Matrix, per_row: int, per_column: int) -> Mask:
    """Mark the entries of largest absolute value: `per_row` of every row and `per_column` of every column."""
    return kernels.mark_largest(M, per_row, per_column)


def _per_row_and_column(k: int, scaled: bool, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many entries every row and every column of a matrix keep."""
    n, m = shape
    return min(max(k, k * m // n if scaled else 0), m), min(max(k, k * n // m if scaled else 0), n)


class _OfSupports:
    """A set that restricts supports only."""

    @property
    def is_of_supports(self) -> bool:
        return True


def quota(E: Projection, shape: tuple[int, ...]) -> kernels.FactorSet:
    """Return how many entries every row and column keep; zeros if only :meth:`Projection.project` can say.

    A set with a method `quota` keeps the largest entries of every row and column; palm4MSA projects on it in native
    code.
    """
    counted = getattr(E, "quota", None)
    found: kernels.FactorSet = kernels.FactorSet(0, 0, False, E.is_of_supports) if counted is None else counted(shape)
    return found


class _Kept(_OfSupports):
    """A set with a quota; the union of the entries that rows and columns keep."""

    def quota(self, shape: tuple[int, ...]) -> kernels.FactorSet:
        raise NotImplementedError

    def project(self, M: Matrix) -> Matrix:
        per_row, per_column, greedy, _ = self.quota(M.shape)
        keep = kernels.match_largest if greedy else kernels.mark_largest
        return np.where(keep(M, per_row, per_column), M, 0)


@dataclass(frozen=True)
class _Counted(_OfSupports):
    """A set of matrices with a limited number of non-zeros."""

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_whole("k", self.k, 1))


class TopPerRow(_Counted, _Kept):
    """At most k non-zeros in every row."""

    @property
    def name(self) -> str:
        return f"{self.k} per row"

    def quota(self, shape: tuple[int, ...]) -> kernels.FactorSet:
        return kernels.FactorSet(min(self.k, shape[1]), 0, False, True)


class TopPerColumn(_Counted, _Kept):
    """At most k non-zeros in every column."""

    @property
    def name(self) -> str:
        return f"{self.k} per column"

    def quota(self, shape: tuple[int, ...]) -> kernels.FactorSet:
        return kernels.FactorSet(0, min(self.k, shape[0]), False, True)


class TopInAll(_Counted):
    """At most k non-zeros."""

    @property
    def name(self) -> str:
        return f"{self.k} in all"

    def project(self, M: Matrix) -> Matrix:
        return np.where(largest(M.reshape(1, -1), min(self.k, M.size), 0).reshape(M.shape), M, 0)


@dataclass(frozen=True)
class TopPerRowAndColumn(_Counted, _Kept):
    """The paper's set: the k largest entries of every row and the k largest entries of every column are kept.

    Their union has at least k entries in every row and column, and it is not an exact projection. With `scaled`,
    rows of an n x m matrix keep k max(1, m / n) entries and columns k max(1, n / m), so that both keep equally many in
    total.
    """

    scaled: bool = False

    @property
    def name(self) -> str:
        return f"{self.k} per row and column{', scaled' * self.scaled}"

    def quota(self, shape: tuple[int, ...]) -> kernels.FactorSet:
        return kernels.FactorSet(*_per_row_and_column(self.k, self.scaled, shape), False, True)


class TopByShare(_Counted, _Kept):
    """The paper's set for its largest factor: a budget of k entries, shared equally by rows and again by columns.

    Rows of an n x m matrix keep k / n and columns k / m entries, rounded down, but at least one; the union is kept.
    """

    @property
    def name(self) -> str:
        return f"{self.k} shared by rows and by columns"

    def quota(self, shape: tuple[int, ...]) -> kernels.FactorSet:
        per_row, per_column = (min(max(self.k // n, 1), m) for n, m in (shape, shape[::-1]))
        return kernels.FactorSet(per_row, per_column, False, True)


@dataclass(frozen=True)
class AtMostPerRowAndColumn(_Counted, _Kept):
    """At most k non-zeros in every row and every column. Entries are taken greedily, the largest first.

    The nearest point of the set is a matching of greatest weight; the greedy choice has at least half of its sum of
    squares. `scaled` has the meaning of :class:`TopPerRowAndColumn`.
    """

    scaled: bool = False

    @property
    def name(self) -> str:
        return f"at most {self.k} per row and column{', scaled' * self.scaled}"

    def quota(self, shape: tuple[int, ...]) -> kernels.FactorSet:
        return kernels.FactorSet(*_per_row_and_column(self.k, self.scaled, shape), True, True)


@dataclass(frozen=True, eq=False)
class FixedSupport(_OfSupports):
    """Matrices that are zero outside a given support, an array of truth values."""

    support: ArrayLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", check_dense(self.support, "support").astype(bool))

    @property
    def name(self) -> str:
        return f"a fixed support of {int(np.count_nonzero(self.support))}"

    def project(self, M: Matrix) -> Matrix:
        _check_shape("support", np.shape(self.support), M.shape)
        return np.where(self.support, M, 0)


@dataclass(frozen=True, eq=False)
class Constant:
    """A set of one matrix: the factor is fixed but for its scale."""

    value: ArrayLike

    def __post_init__(self) -> None:
        value = check_dense(self.value, "value").astype(np.float64, order="C")
        if not np.isfinite(value).all():
            raise ValueError("value must hold finite numbers only.")
        object.__setattr__(self, "value", value)

    @property
    def name(self) -> str:
        return "constant"

    @property
    def is_of_supports(self) -> bool:
        return False

    def project(self, M: Matrix) -> Matrix:
        _check_shape("value", np.shape(self.value), M.shape)
        return np.array(self.value, np.float64)


@dataclass(frozen=True)
class NonNegative:
    """The matrices of another set, or all matrices, that have no negative entries."""

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
    """The matrices of another set with Frobenius norm one. A matrix that projects to zero stays zero."""

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


def _check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise ValueError(f"{name} must have the shape of its factor, {wanted}, got {shape}.")
