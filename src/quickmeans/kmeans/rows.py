"""The rows to cluster: the protocol of whatever holds them, and what is computed of them once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kernels import CsrRows
from quickmeans.kmeans.assignment import NotComparableError
from quickmeans.kmeans.blocks import block_rows, distinct_rows, first_not_finite, slices
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.dense import DenseRows
from quickmeans.kmeans.geometry import NO_DIRECTION, Geometry
from quickmeans.kmeans.iteration import Iteration
from quickmeans.kmeans.moments import Moments, mean_and_variances
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.settings import Settings

T = TypeVar("T")
Weights = NDArray[np.float64] | None  # one per row; None stands for ones
Index = NDArray[np.int64]


class RowFunction(Protocol):
    """A function of rows, computed block by block or, where that is possible, of rows in CSR form."""

    def __call__(self, first: int, block: NDArray[Any]) -> NDArray[Any]:
        """The results for a dense block of rows, whose first row has this number."""

    def of_csr(self, rows: CsrRows) -> NDArray[Any] | None:
        """The results for rows in CSR form; None if they must come as blocks."""


class Batch(NamedTuple):
    """Some rows of X, their places in X and their weights."""

    places: slice | Index
    rows: NDArray[Any]
    weights: Weights


# Rows whose spread lies between these keep their unit; others get a power of two, so that the fourth powers of sums of
# rows, which a split needs, neither overflow nor vanish in float32.
_SMALL, _LARGE = 1e-3, 1e3
_FARTHEST = 1e15  # the squares of larger numbers could overflow float32
_NEAR = 4.0  # spreads: rows whose mean is no farther from zero lose few digits of their squares in float32
_FEW_ROWS = 512  # so few rows are merged where they are equal, so that a weight is the same as repetition,
_FEW_ENTRIES = 1 << 20  # if they are no wider than that


class Named(Protocol):
    """What can name its rows."""

    def locate(self, row: int) -> str:
        """What to call a row in an error message."""


class Rows(Named, Protocol):
    """Weighted rows, wherever they are: arrays, sparse matrices, files, functions, clusters."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of every block."""

    @property
    def weights(self) -> Weights:
        """The weights of the rows; None for ones, and where they are not in this process."""

    @property
    def in_memory(self) -> bool:
        """Whether any rows can be taken at little cost."""

    @property
    def samples_first(self) -> bool:
        """Whether samples must be taken before the start: later they would have to be read again."""
        return False

    @property
    def keeps_labels(self) -> bool:
        """Whether a pass that keeps anything gives the rows of a chunk with their labels of the pass before."""
        return False

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """All rows in order as dense arrays, each with the place of its rows; no block is empty."""

    def take(self, index: Index) -> NDArray[Any]:
        """The rows with these numbers, in the order of the index, as a dense array."""

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """n different rows drawn at random; all of them if there are no more."""

    def subset(self, index: Index) -> "Rows":
        """The rows with these numbers, in memory, with their weights."""

    def whole(self) -> Any:
        """All rows as a user's function gets them; a TypeError if they are not in memory."""

    def in_place(self) -> NDArray[Any] | None:
        """All rows as an array, without a copy, or None."""
        return None

    def fits_in_memory(self) -> bool:
        """Whether all rows may be in memory as an array of float32, beside what is there."""
        return self.in_place() is not None

    def scaled(self, scale: NDArray[np.float64]) -> "Rows":
        """The same rows with every column divided by its scale."""

    def deviations(self, n_threads: int) -> NDArray[np.float64]:
        """The standard deviation of every column."""
        return np.asarray(np.sqrt(column_moments(self, n_threads)[1]))

    def threads(self, n_threads: int | None) -> int:
        """How many threads work on a block, where `n_threads` was asked for."""

    def points(self, settings: Settings, seeds: Sequence[int]) -> "Points":
        """The rows with their moments, for runs with these settings and seeds."""

    def passes(self, points: "Points", n_clusters: int, *, stateless: bool) -> Pass:
        """How to pass over the rows. A stateless pass keeps nothing from one iteration to the next."""

    def start(self, points: "Points", context: Context) -> Start:
        """Starting centroids by k-means++, or rows drawn at random."""

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """All rows once, so many at a time: in random order where that is cheap."""

    def project(self, basis: NDArray[Any], n_threads: int, most_bytes: int) -> NDArray[Any] | None:
        """The rows times the basis, or None if that takes more memory or the rows are not in memory."""

    def iteration(self, points: "Points", settings: Settings, centers: NDArray[np.float64]) -> Iteration | None:
        """Iterations of the rows' own from these centered centroids; None if passes are to be made."""
        return None

    def each(self, function: RowFunction) -> Iterator[NDArray[Any]]:
        """The results of the function for some rows after the other."""
        return each_block(self, function)

    def map(self, function: RowFunction, dtype: Any, width: int | None = None) -> Any:
        """The results of the function for all rows, one after the other; lazy on a cluster.

        `dtype` and `width`, the number of columns or None for vectors, describe the results.
        """


@dataclass
class Points:
    """Rows and what is computed of them once.

    Attributes
    ----------
    rows : Rows
    geometry : Geometry
        Its dtype is float32 where X is exact in it and of ordinary size, else float64.
    total : float
        The sum of the weights.
    variances : array of shape (n_features,)
    n_threads : int
    sum_weights : array of shape (n_rows,) or None
        What a row is multiplied with in the sum of its cluster: its weight, divided by its length if spherical.
    """

    rows: Rows
    geometry: Geometry
    total: float
    variances: NDArray[np.float64]
    n_threads: int
    sum_weights: Weights = None

    def __len__(self) -> int:
        return self.rows.shape[0]

    @property
    def n_columns(self) -> int:
        """The number of features."""
        return self.rows.shape[1]

    @property
    def weights(self) -> Weights:
        """Those of the rows."""
        return self.rows.weights

    @property
    def scatter(self) -> float:
        """The weighted sum of squared norms of the centered rows."""
        return self.total if self.geometry.spherical else float(self.variances.sum() * self.total)

    def tolerance(self, tol: float) -> float:
        """A bound on squared shifts, of `tol` in units of the mean variance of the features."""
        return tol * self.scatter / (self.total * self.n_columns)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The dtype that centroids are returned in: float32 for float32, else float64."""
        return np.dtype(np.float32 if self.rows.dtype == np.float32 else np.float64)

    def rounded(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centered centroids with the rounding that they will have once they are returned."""
        mean = self.geometry.mean
        return (centers + mean).astype(self.result_dtype).astype(np.float64) - mean

    def take(self, index: Index) -> NDArray[np.float64]:
        """Some rows, centered."""
        return self.geometry.centered(self.rows.take(index).astype(np.float64))

    def dense(self, index: Index | None = None) -> DenseRows:
        """All rows with weight, or those of an index, as the native search reads them.

        Of few rows, equal ones become one with the sum of their weights, in an order that does not depend on theirs.
        """
        few = len(self) <= _FEW_ROWS and len(self) * self.n_columns <= _FEW_ENTRIES
        places = np.arange(len(self)) if index is None and (few or self.weights is not None) else index
        if places is not None and self.weights is not None:
            places = places[self.weights[places] > 0]
        n_rows = len(self) if places is None else len(places)
        weights = np.ones(n_rows) if self.weights is None else np.asarray(self.weights[places], np.float64)
        if few and places is not None:
            first, inverse = distinct_rows(self.rows.take(places))
            places, weights = places[first], np.bincount(inverse, weights).astype(np.float64)
        return self._copied(places, weights)

    def shared(self) -> DenseRows:
        """All rows in their order, as the native search reads them: X itself if its numbers allow that, or a copy."""
        weights, X = np.ones(len(self)) if self.weights is None else self.weights, self.rows.in_place()
        if X is None or not self.is_read_in_place:
            copy = self._copied(None, weights)
            np.clip(copy.rows, -_FARTHEST, _FARTHEST, out=copy.rows)  # rows without weight may be of any size
            return copy
        unit, origin = float(weights.mean()), np.zeros(self.n_columns)
        return DenseRows(X, weights / unit, origin, 1.0, unit, self.geometry.spherical, self.n_threads)

    def float_blocks(self) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.float64], float]]:
        """All rows in float32 as (x - origin) / unit, or x / |x| if spherical, some at a time, with origin and unit."""
        X, unit = self.rows.in_place(), self._unit
        if X is not None and self.is_read_in_place:
            yield slice(0, len(self)), X, np.zeros(self.n_columns), 1.0
            return
        for part, block in self.rows.blocks():
            rows = np.empty(block.shape, np.float32)
            about = None if self.geometry.spherical else self.geometry.mean
            kernels.center_rows(block, about, 1 / unit, rows, self.n_threads)
            yield part, np.clip(rows, -_FARTHEST, _FARTHEST, out=rows), self.geometry.mean, unit

    @property
    def is_read_in_place(self) -> bool:
        """Whether `shared` makes no copy."""
        X, geometry = self.rows.in_place(), self.geometry
        if X is None or X.dtype != np.float32 or not (X.flags.c_contiguous and X.flags.aligned):
            return False
        near = float(np.linalg.norm(geometry.mean)) <= _NEAR * self._spread
        return near and self._unit == 1 and not geometry.spherical

    @property
    def _spread(self) -> float:
        """The root of the mean squared distance from the mean."""
        return float((self.scatter / self.total) ** 0.5)

    @property
    def _unit(self) -> float:
        """What the rows of a copy are divided by."""
        spread = self._spread
        ordinary = self.geometry.spherical or _SMALL < spread < _LARGE or not spread
        return 1.0 if ordinary else float(2.0 ** round(np.log2(spread)))

    def _copied(self, places: Index | None, weights: NDArray[np.float64]) -> DenseRows:
        """A copy of the rows at these places, or of all."""
        geometry, origin, unit = self.geometry, self.geometry.mean, self._unit
        if self.rows.dtype == np.float32 and geometry.dtype == np.float32:
            origin = origin.astype(np.float32).astype(np.float64)  # differences of neighbours are exact then
        rows = np.empty((len(weights), self.n_columns), np.float32)
        for part, block in self._pieces(places):
            about = None if geometry.spherical else origin
            kernels.center_rows(block, about, 1 / unit, rows[part], self.n_threads)
        weight_unit = float(weights.mean()) if len(weights) else 1.0
        return DenseRows(rows, weights / weight_unit, origin, unit, weight_unit, geometry.spherical, self.n_threads)

    def _pieces(self, places: Index | None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """The rows at these places, or all, some at a time."""
        if places is None:
            return self.rows.blocks()
        step = block_rows(self.n_columns)
        return ((part, self.rows.take(places[part])) for part in slices(len(places), step))


def local_points(rows: Rows, n_threads: int, *, spherical: bool) -> Points:
    """The points of rows that this process can read."""
    mean, variances = column_moments(rows, n_threads)
    weights = rows.weights
    total = float(rows.shape[0] if weights is None else weights.sum())
    dtype = working_dtype(rows.dtype, mean, variances)
    if not spherical:
        return Points(rows, Geometry(mean, dtype), total, variances, n_threads, weights)
    lengths = np.concatenate([row_lengths(block, part.start) for part, block in rows.blocks()])
    geometry = spherical_geometry(len(mean), dtype, float(lengths.min()))
    sum_weights = (1.0 if weights is None else weights) / lengths
    return Points(rows, geometry, total, variances, n_threads, sum_weights)


def column_moments(rows: Rows, n_threads: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of every column, in float64, from sums about the first row."""
    moments: Moments | None = None
    for part, block in rows.blocks():
        if moments is None:
            moments = Moments(block[0].astype(np.float64), n_threads)
        moments.add(block, None if rows.weights is None else rows.weights[part])
        if not moments.are_finite():
            refuse_not_finite(rows.locate, part.start, block)
            raise ValueError("Squares of the numbers in X overflow float64; scale X.")
    assert moments is not None
    total = float(rows.shape[0] if rows.weights is None else rows.weights.sum())
    return mean_and_variances(moments.shift, moments.sums, total)


def row_lengths(block: NDArray[Any], first: int) -> NDArray[np.float64]:
    """|x| of every row; a zero row is refused by its number, counted from `first`."""
    step = block_rows(block.shape[1])
    starts = range(0, len(block), step)
    lengths = np.concatenate([np.linalg.norm(block[i : i + step].astype(np.float64), axis=1) for i in starts])
    if not lengths.all():
        raise ValueError(NO_DIRECTION.format(first + int(np.argmin(lengths))))
    return np.asarray(lengths, np.float64)


def csr_lengths(rows: CsrRows, n_threads: int) -> NDArray[np.float64]:
    """|x| of every row in CSR form; a zero row is refused by its number."""
    lengths = np.sqrt(rows.norms(np.zeros(rows.shape[1]), n_threads))
    if not lengths.all():
        raise ValueError(NO_DIRECTION.format(int(np.argmin(lengths))))
    return np.asarray(lengths, np.float64)


def spherical_geometry(n_columns: int, dtype: np.dtype[Any], shortest: float) -> Geometry:
    """The geometry of directions; `shortest` is the length of the shortest row."""
    # The square of a length below 1e-15 would lose its digits in float32.
    return Geometry(np.zeros(n_columns), np.dtype(np.float64) if shortest < 1e-15 else dtype, spherical=True)


def working_dtype(dtype: np.dtype[Any], mean: NDArray[np.float64], variances: NDArray[np.float64]) -> np.dtype[Any]:
    """float32 if it holds every number of the dtype and squares stay accurate in it, else float64."""
    spread, offset = float(variances.sum()) ** 0.5, float(np.linalg.norm(mean))
    ordinary = spread + offset == 0 or (1e-12 < spread + offset < 1e12 and offset <= 1e3 * spread)
    return exact_dtype(dtype) if ordinary else np.dtype(np.float64)


def exact_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 if it holds every number of the dtype, else float64."""
    return np.dtype(np.float32 if dtype == np.float32 or dtype.itemsize <= 2 else np.float64)


def each_block(rows: Rows, function: Callable[[int, NDArray[Any]], T]) -> Iterator[T]:
    """The results of the function for one block after the other; its errors name the first row that is not finite."""
    for place, block in rows.blocks():
        with naming_rows(rows, place.start, block):
            result = function(place.start, block)
        yield result


@contextmanager
def naming_rows(rows: Named, first: int, block: NDArray[Any]) -> Iterator[None]:
    """Let errors about a block, whose first row has this number, name the row, or count rows from the first of all."""
    try:
        yield
    except NotComparableError as error:
        refuse_not_finite(rows.locate, first, block)
        raise NotComparableError(error.dtype, first + error.row) from None


def joined(results: Iterator[NDArray[Any]]) -> NDArray[Any]:
    """Results of blocks as one array."""
    parts = list(results)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def refuse_not_finite(locate: Callable[[int], str], first: int, block: NDArray[Any]) -> None:
    """Raise a ValueError that names the first NaN or infinity of a block, if it has one."""
    bad = first_not_finite(block)
    if bad is not None:
        refuse_entry(block[bad], locate(first + bad[0]), bad[1])


def refuse_entry(value: Any, row: str, column: int) -> None:
    """Raise a ValueError that names an entry, which is NaN or infinity."""
    kind = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(f"Input X contains {kind} ({row}, column {column}); every entry must be finite.")
