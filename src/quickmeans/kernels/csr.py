"""Rows in CSR form, and Lloyd's iteration over them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, FLOAT64, INT32, INT64, Array, Floats, Ints, floats, ints, packed
from quickmeans.threads import instruction_set


class CsrCenters:
    """Centers, kept column by column, that rows in CSR form are compared with.

    Parameters
    ----------
    centers : array of shape (K, D)
        In float32 or float64, the type of all arithmetic.
    offset : array of shape (K,)
        To be added to <x, c_k>, which makes them scores.
    n_threads : int
    """

    __slots__ = ("n_centers", "native")

    def __init__(self, centers: Array, offset: Floats, n_threads: int) -> None:
        narrow = centers.dtype == FLOAT32
        bind = _native.CsrCenters32.bind if narrow else _native.CsrCenters64.bind
        tight = packed(centers, FLOAT32 if narrow else FLOAT64)
        self.n_centers = len(centers)
        self.native: _native.CsrCenters32 | _native.CsrCenters64 = bind(
            tight, floats(offset), n_threads, instruction_set()
        )


class CsrRows:
    """Rows in CSR form, checked once for many calls: an index out of range is a ValueError.

    Parameters
    ----------
    starts : array of int, shape (n_rows + 1,)
        Where the entries of each row begin.
    columns, values : arrays
        The entries; values in float32 or float64. They must not be changed afterwards.
    n_columns : int

    Attributes
    ----------
    n_entries : int
        The number of stored entries.
    distinct : bool
        Whether no row has two entries in one column, which all methods need.
    """

    __slots__ = ("distinct", "dtype", "n_entries", "native", "shape")

    def __init__(self, starts: Array, columns: Array, values: Array, n_columns: int) -> None:
        index = INT32 if starts.dtype == INT32 and columns.dtype == INT32 else INT64
        self.dtype = FLOAT32 if values.dtype == FLOAT32 else FLOAT64
        arrays = packed(starts, index), packed(columns, index), packed(values, self.dtype)
        self.native = _native.CsrRows(*arrays, n_columns)
        self.n_entries = len(values)
        self.shape, self.distinct = (len(starts) - 1, n_columns), self.native.distinct

    def moments(self, weights: Floats | None) -> tuple[Floats, Floats]:
        """The mean of every column, and the weighted sum of squares about it."""
        mean, squares = np.empty(self.shape[1]), np.empty(self.shape[1])
        self.native.moments(floats(weights), mean, squares)
        return mean, squares

    def norms(self, mean: Floats, n_threads: int) -> Floats:
        """|x - mean|^2 of every row."""
        out = np.empty(self.shape[0])
        self.native.norms(floats(mean), out, n_threads)
        return out

    def nearest(self, centers: CsrCenters, n_threads: int) -> tuple[NDArray[np.int32], int]:
        """The center of the largest score of every row, and -1 or the first row whose scores are not finite.

        Rows of float64 need centers of float64.
        """
        labels = np.zeros(self.shape[0], np.int32)
        return labels, self.native.nearest(centers.native, labels, n_threads)

    def own_squares(
        self,
        labels: NDArray[np.int32],
        centers: Floats,
        mean: Floats,
        norms: Floats,
        *,
        spherical: bool,
        n_threads: int,
    ) -> Floats:
        """|x - mean - c|^2 of every row and the center of its label; |x / |x| - c|^2 if spherical.

        ``norms`` are those about the mean, which is zero if spherical. Small squares are accurate too.
        """
        out = np.empty(self.shape[0])
        arrays = floats(mean), floats(norms), floats(centers)
        self.native.own_squares(*arrays, spherical, packed(labels, INT32), out, n_threads)
        return out

    def distances(
        self, centers: Floats, mean: Floats, norms: Floats, dtype: Any, *, spherical: bool, n_threads: int
    ) -> Array:
        """The distances of all rows from all centers, computed in float64, stored in float32 or float64."""
        out = np.empty((self.shape[0], len(centers)), dtype)
        arrays = floats(mean), floats(norms), floats(centers)
        self.native.distances(*arrays, spherical, out, n_threads, instruction_set())
        return out

    def seed(self, index: Ints, weights: Floats, first: int, uniforms: Floats, n_threads: int) -> Ints:
        """Starting rows by greedy k-means++ among the rows of the index, as positions in it.

        The arguments and the result are as in :func:`quickmeans.kernels.seed`.
        """
        chosen = np.empty(len(uniforms), np.int64)
        arrays = ints(index), floats(weights), first, floats(uniforms)
        return chosen[: self.native.seed(*arrays, chosen, n_threads, instruction_set())]


class CsrClusters:
    """Clusters of rows in CSR form, with Lloyd's iteration; sums are float64.

    Parameters
    ----------
    rows : CsrRows
    centers : array of shape (K, D)
        About the mean.
    mean, norms : arrays
        The mean, zero if spherical, and the squared norms of the rows about it.
    weights, sum_weights : arrays or None
        One per row: what it counts, and what it is multiplied with in the sum of its cluster.
    scatter : float
        The weighted sum of the norms; that of the weights if spherical.
    spherical : bool
        Whether directions are compared, by centers of length one.
    dtype : numpy.dtype
        float32 or float64: the type of the scores. Rows of float64 need float64.
    n_threads : int
    """

    __slots__ = ("_native", "shape")

    def __init__(
        self,
        rows: CsrRows,
        centers: Floats,
        *,
        mean: Floats,
        norms: Floats,
        weights: Floats | None,
        sum_weights: Floats | None,
        scatter: float,
        spherical: bool,
        dtype: np.dtype[Any],
        n_threads: int,
    ) -> None:
        make = _native.CsrClusters32 if dtype == FLOAT32 else _native.CsrClusters64
        arrays = floats(mean), floats(norms), floats(weights), floats(sum_weights)
        self.shape = centers.shape
        self._native: _native.CsrClusters32 | _native.CsrClusters64 = make(
            rows.native, *arrays, scatter, spherical, floats(centers), n_threads, instruction_set()
        )

    def iterate(self, tol: float) -> int:
        """Assign every row, give empty clusters a row, and move the centers to their means.

        If that is interrupted, the centers are those before it. Returns -1, or the first row whose scores are not
        finite.
        """
        return self._native.iterate(tol)

    def centers(self) -> Floats:
        """The centers, about the mean."""
        out = np.empty(self.shape)
        self._native.centers(out)
        return out

    @property
    def assigned(self) -> float:
        """The objective after the last assignment."""
        return self._native.assigned

    @property
    def objective(self) -> float:
        """The objective after the last update."""
        return self._native.objective

    @property
    def converged(self) -> bool:
        """Whether the last iteration changed no label, or its squared shifts added up to `tol` or less."""
        return self._native.converged

    @property
    def n_compared(self) -> int:
        """How many rows the last iteration compared with all centers."""
        return self._native.n_compared
