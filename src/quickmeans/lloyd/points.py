r"""The rows to cluster, and what is computed of them once.

With the mean :math:`m` and weights :math:`w_i`, every centroid is written as :math:`m + c_k`, and scores are compared:

.. math:: \|x - m - c_k\|^2 = \|x - m\|^2 - 2 (\langle x, c_k\rangle - b_k), \qquad
          b_k = \|c_k\|^2 / 2 + \langle m, c_k\rangle,

so centring costs one number per centroid, and X is neither copied nor changed.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.threads import instruction_set
from quickmeans.transform.checks import first_bad_position, readable

_BLOCK_ROWS = 4096  # rows of a sparse matrix that are made dense at a time
_MOMENT_ROWS = 1024  # rows whose moments are summed by one thread

Rows = Any  # a 2-D array, or a scipy.sparse matrix in CSR form


def row_blocks(X: Rows) -> Iterator[tuple[slice, NDArray[Any]]]:
    """X as dense arrays: itself if it is one, else some rows at a time."""
    if not sp.issparse(X):
        yield slice(0, X.shape[0]), X
        return
    for begin in range(0, X.shape[0], _BLOCK_ROWS):
        part = slice(begin, min(begin + _BLOCK_ROWS, X.shape[0]))
        yield part, X[part].toarray()


def take_rows(X: Rows, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Some rows of X in float64."""
    rows = X[index]
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, np.float64)


class Points:
    """Rows, weights, their mean and their scatter.

    Attributes
    ----------
    X : array or CSR matrix of shape (N, D)
    weights : array of shape (N,) or None
        None stands for ones.
    mean : array of shape (D,)
    total : float
        The sum of the weights.
    variances : array of shape (D,)
    dtype : dtype
        What the kernel computes in: float32 where X is exact in it and of ordinary size, else float64.
    """

    def __init__(self, X: Rows, weights: NDArray[np.float64] | None, n_threads: int) -> None:
        self.X = X if sp.issparse(X) else readable(X)
        self.weights = weights
        self.n_threads = n_threads
        self.total = float(len(self)) if weights is None else float(weights.sum())
        self.mean, self.variances = self._moments()
        self.dtype = self._working_dtype()

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def scatter(self) -> float:
        """The weighted sum of squared distances from the mean."""
        return float(self.variances.sum() * self.total)

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of every column, in float64, from sums about the first row."""
        shift = take_rows(self.X, np.zeros(1, np.int64))[0]
        sums, squares = np.zeros_like(shift), np.zeros_like(shift)
        for part, rows in row_blocks(self.X):
            n_blocks = -(-len(rows) // _MOMENT_ROWS)
            block_sums, block_squares = np.zeros((2, n_blocks, len(shift)))
            weights = None if self.weights is None else self.weights[part]
            _native.moments(rows, weights, shift, block_sums, block_squares, self.n_threads, instruction_set())
            sums += block_sums.sum(axis=0)
            squares += block_squares.sum(axis=0)
        if not np.isfinite(sums).all():
            self._refuse()
        offset = sums / self.total
        return shift + offset, np.maximum(squares / self.total - offset**2, 0)

    def _refuse(self) -> None:
        for part, rows in row_blocks(self.X):
            for begin in range(0, len(rows), _BLOCK_ROWS):
                bad = first_bad_position(rows[begin : begin + _BLOCK_ROWS])
                if bad is not None:
                    i, j = part.start + begin + bad[0], bad[1]
                    kind = "NaN" if np.isnan(rows[begin + bad[0], j]) else "infinity"
                    raise ValueError(f"Input X contains {kind} (row {i}, column {j}); every entry must be finite.")
        raise ValueError("Sums of the rows of X overflow float64; scale X.")

    def _working_dtype(self) -> np.dtype[Any]:
        dtype, size = self.X.dtype, self.variances.sum() ** 0.5 + np.abs(self.mean).max()
        exact = dtype == np.float32 or dtype.itemsize <= 2
        ordinary = size == 0 or 1e-12 < size < 1e12
        return np.dtype(np.float32 if exact and ordinary else np.float64)
