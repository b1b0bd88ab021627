"""Rows in an array or a CSR matrix: dense parts of them, and their moments."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.kmeans.moments import Moments
from quickmeans.kmeans.points import row_blocks, rows_at_a_time
from quickmeans.transform.checks import readable

# Rows of these types are used as they are, in native byte order; rows of other types are converted to float64.
TYPES = [np.float64, np.float32, np.dtype(np.float32).newbyteorder()]


def checked_rows(X: Any) -> Any:
    """An array that the kernels can read, or a CSR matrix."""
    return X if sp.issparse(X) else readable(X)


def take(X: Any, index: slice | NDArray[np.int64]) -> NDArray[Any]:
    """Some rows as a dense array."""
    rows = X[index]
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)


def blocks(X: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
    """All rows as dense arrays: an array in one block, a sparse matrix in several."""
    return row_blocks(X)


def slices(n: int, size: int) -> list[slice]:
    """0 to n in slices of this size, the last one shorter."""
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def dense_slices(X: Any, size: int) -> list[slice]:
    """Slices of this size, or shorter ones if so many rows of a sparse matrix would be a large array."""
    return slices(X.shape[0], min(size, block_rows(X.shape[1])) if sp.issparse(X) else size)


def block_rows(n_columns: int) -> int:
    """How many rows are made dense, or float64, at a time."""
    return rows_at_a_time(n_columns)


def mean_and_spread(X: Any, n_threads: int) -> tuple[NDArray[np.float64], float]:
    """The mean of the rows, and the mean of their squared distances from it."""
    moments = Moments(take(X, slice(0, 1))[0].astype(np.float64), n_threads)
    for _, rows in blocks(X):
        moments.add(rows, None)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variances = moments.over(X.shape[0])
        if not np.isfinite(variances.sum() + mean @ mean):
            raise ValueError("The squares of the numbers in X overflow float64; scale X.")
    return mean, float(variances.sum())
