r"""The rows to cluster, and what is computed of them once.

With the mean :math:`m` and weights :math:`w_i`, every centroid is written as :math:`m + c_k`, and scores are compared:

.. math:: \|x - m - c_k\|^2 = \|x - m\|^2 - 2 (\langle x, c_k\rangle - b_k), \qquad
          b_k = \|c_k\|^2 / 2 + \langle m, c_k\rangle,

so centring costs one number per centroid, and X is neither copied nor changed.

In spherical k-means rows are compared by direction: the mean is taken as zero, centroids have length one, b is zero:

.. math:: \|x / |x| - c_k\|^2 = 2 - 2 \langle x, c_k\rangle / |x|.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.kmeans.moments import Moments
from quickmeans.kmeans.rows import Stream
from quickmeans.transform.checks import first_bad_position, readable

_BLOCK_ENTRIES = 1 << 20  # of rows that are made dense, or float64, at a time

NO_DIRECTION = "Row {} of X is zero and has no direction; spherical k-means cannot place it."

Rows = Any  # a 2-D array, a scipy.sparse matrix in CSR form, or a Stream


def locate(X: Rows, row: int) -> str:
    """What to call a row in an error message."""
    return X.locate(row) if hasattr(X, "locate") else f"row {row}"


def rows_at_a_time(n_columns: int) -> int:
    """How many rows make a block."""
    return int(np.clip(_BLOCK_ENTRIES // n_columns, 16, 4096))


def row_blocks(X: Rows) -> Iterator[tuple[slice, NDArray[Any]]]:
    """X as dense arrays: itself if it is one, else some rows at a time."""
    if isinstance(X, Stream):
        yield from X.blocks()
        return
    if not sp.issparse(X):
        yield slice(0, X.shape[0]), X
        return
    step = rows_at_a_time(X.shape[1])
    for begin in range(0, X.shape[0], step):
        part = slice(begin, min(begin + step, X.shape[0]))
        yield part, X[part].toarray()


def take_rows(X: Rows, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Some rows of X in float64."""
    return np.asarray(some_rows(X, index), np.float64)


def some_rows(X: Rows, index: NDArray[np.int64]) -> NDArray[Any]:
    """Some rows of X as a dense array."""
    if isinstance(X, Stream):
        return X.take(index)
    return np.asarray(X[index].toarray() if sp.issparse(X) else X[index])


def refuse_bad_rows(X: Rows, first: int, rows: NDArray[Any]) -> None:
    """Say where among these rows, the first of which has this number, there is NaN or infinity; if there is."""
    step = rows_at_a_time(rows.shape[1])
    for begin in range(0, len(rows), step):
        bad = first_bad_position(rows[begin : begin + step])
        if bad is not None:
            i, j = begin + bad[0], bad[1]
            kind = "NaN" if np.isnan(rows[i, j]) else "infinity"
            raise ValueError(
                f"Input X contains {kind} ({locate(X, first + i)}, column {j}); every entry must be finite."
            )


def squared_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """|x|^2 of every row."""
    return np.asarray(np.einsum("kd,kd->k", rows, rows), np.float64)


@dataclass(frozen=True)
class Frame:
    """How rows are compared with centroids: about which mean, in which arithmetic, and whether by direction only."""

    mean: NDArray[np.float64]
    dtype: np.dtype[Any]
    spherical: bool = False

    def offset(self, V: NDArray[np.float64], squares: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """-b_k = -(|v_k|^2 / 2 + <m, v_k>), from the squared norms if they are known."""
        if self.spherical:
            return np.zeros(len(V))
        squares = squared_norms(V) if squares is None else squares
        return np.asarray(0.0 - (squares / 2 + V @ self.mean), np.float64)

    def squared_distances(self, norms: NDArray[Any], scores: NDArray[Any]) -> NDArray[Any]:
        """From scores, and squared norms about the mean."""
        if self.spherical:
            return np.asarray(np.maximum(2 - 2 * scores / np.sqrt(norms), 0))
        return np.asarray(np.maximum(norms - 2 * scores, 0))

    def centred(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """x - m, or x / |x|."""
        if self.spherical:
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            if not lengths.all():
                raise ValueError(NO_DIRECTION.format(int(np.flatnonzero(lengths == 0)[0])))
            return np.asarray(rows / lengths, np.float64)
        return np.asarray(rows - self.mean, np.float64)


class Points:
    """Rows, weights, their mean and their scatter.

    Attributes
    ----------
    X : array, CSR matrix or Stream of shape (N, D)
    weights : array of shape (N,) or None
        None stands for ones.
    pulls : array of shape (N,) or None
        What a row is multiplied with in the sum of its cluster: its weight, over its length if that does not count.
    frame : Frame
        Its dtype is float32 where X is exact in it and of ordinary size, else float64.
    total : float
        The sum of the weights.
    variances : array of shape (D,)
    """

    def __init__(
        self, X: Rows, weights: NDArray[np.float64] | None, n_threads: int, *, spherical: bool = False
    ) -> None:
        self.X = readable(X) if isinstance(X, np.ndarray) else X
        self.weights = weights
        self.n_threads = n_threads
        mean, self.variances, self.total = self._moments()
        dtype = self._working_dtype(mean)
        self.pulls = weights
        if spherical:
            lengths = self._lengths()
            if lengths.min() < 1e-15:  # its square would be nothing in float32
                dtype = np.dtype(np.float64)
            self.pulls = (1.0 if weights is None else weights) / lengths
            mean = np.zeros_like(mean)
        self.frame = Frame(mean, dtype, spherical)

    @classmethod
    def of_frame(
        cls, rows: NDArray[Any], weights: NDArray[np.float64] | None, n_threads: int, frame: Frame
    ) -> "Points":
        """Some of the rows of a frame, to be summed; their own moments are not computed."""
        self = object.__new__(cls)
        self.X, self.weights, self.pulls, self.n_threads, self.frame = rows, weights, weights, n_threads, frame
        if frame.spherical:
            self.pulls = (1.0 if weights is None else weights) / self._lengths()
        return self

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def scatter(self) -> float:
        """The weighted sum of squared distances from the mean (from zero, if only directions count)."""
        return self.total if self.frame.spherical else float(self.variances.sum() * self.total)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """What centroids are returned in: float32 for float32, else float64."""
        return np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)

    def rounded(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centroids about the mean as they will be once they are returned."""
        return (centers + self.frame.mean).astype(self.result_dtype).astype(np.float64) - self.frame.mean

    def take(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Some rows, about the mean."""
        return self.frame.centred(take_rows(self.X, index))

    def _lengths(self) -> NDArray[np.float64]:
        lengths = np.empty(len(self))
        for part, rows in row_blocks(self.X):
            step = rows_at_a_time(rows.shape[1])
            for begin in range(0, len(rows), step):
                block = rows[begin : begin + step].astype(np.float64)
                lengths[part.start + begin : part.start + begin + len(block)] = np.linalg.norm(block, axis=1)
        zero = np.flatnonzero(lengths == 0)
        if len(zero):
            raise ValueError(NO_DIRECTION.format(zero[0]))
        return lengths

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Mean and variance of every column, in float64, from sums about the first row; and the sum of the weights."""
        moments: Moments | None = None
        for part, rows in row_blocks(self.X):
            if moments is None:
                moments = Moments(rows[0].astype(np.float64), self.n_threads)
            moments.add(rows, None if self.weights is None else self.weights[part])
            if not moments.are_finite():
                refuse_bad_rows(self.X, part.start, rows)
                raise ValueError("Squares of the numbers in X overflow float64; scale X.")
        assert moments is not None
        total = float(len(self)) if self.weights is None else float(self.weights.sum())
        return *moments.over(total), total

    def _working_dtype(self, mean: NDArray[np.float64]) -> np.dtype[Any]:
        spread, offset = float(self.variances.sum()) ** 0.5, float(np.linalg.norm(mean))
        ordinary = spread + offset == 0 or (1e-12 < spread + offset < 1e12 and offset <= 1e3 * spread)
        return exact_dtype(self.X.dtype) if ordinary else np.dtype(np.float64)


def exact_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32, if it holds every number of the type; else float64."""
    return np.dtype(np.float32 if dtype == np.float32 or dtype.itemsize <= 2 else np.float64)


class Elsewhere(Points, ABC):
    """Points whose rows are on other machines: they know how to go over them, and how to start."""

    @abstractmethod
    def passes(self, n_clusters: int) -> Any:
        """A :class:`quickmeans.kmeans.passes.Pass`."""

    @abstractmethod
    def start(self, n_clusters: int, seed: int, screener: Any) -> NDArray[np.float64]:
        """Starting centroids about the mean; the screener is for the rows."""
