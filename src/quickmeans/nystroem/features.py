r"""Features whose inner products approximate a kernel.

With kernel values :math:`C` between rows and landmarks and :math:`W` between landmarks,

.. math:: \tilde K = C W^+ C' = F F', \qquad F = C W^{-1/2}.

Rows go by blocks: the values of one block come from the native kernel, and a matrix product normalises them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.kmeans.blocks import block_rows as rows_at_a_time
from quickmeans.nystroem.kernels import Gaussian, Kernel
from quickmeans.threads import with_one_blas_thread

_ROWS = 512  # of a block: its kernel values stay in the cache until they are normalised
_ENTRIES = 1 << 22  # of a block of a kernel matrix


def root_inverse(W: NDArray[np.float64], dtype: Any) -> NDArray[np.float64]:
    r""":math:`|W|^{-1/2} = V |\Lambda|^{-1/2} V'`, symmetric, for features in arithmetic of the given type.

    Eigenvalues that the rounding of kernel values would drown, below the unit of rounding times the largest, are
    raised to that; so equal landmarks do no harm. The absolute value, as in scikit-learn, is for kernels that are not
    positive (sigmoid).
    """
    values, vectors = scipy.linalg.eigh((W + W.T) / 2, check_finite=False)
    sizes = np.abs(values)
    floor = float(np.finfo(dtype).eps) * (sizes.max() or 1.0)
    return np.asarray((vectors / np.sqrt(np.maximum(sizes, floor))) @ vectors.T, np.float64)


def features(X: Any, kernel: Kernel, normalization: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """F for rows in an array or a CSR matrix."""
    out = np.empty((X.shape[0], len(normalization)), normalization.dtype)

    def fill(part: slice) -> None:
        np.dot(kernel.values(dense(X[part]), 1).astype(out.dtype, copy=False), normalization, out=out[part])

    _over_blocks(fill, X, n_threads)
    return out


def kernel_values(X: Any, kernel: Kernel, n_threads: int) -> NDArray[Any]:
    """C for rows in an array or a CSR matrix."""
    if isinstance(kernel, Gaussian) and not sp.issparse(X):  # which takes no memory but for tiles
        return kernel.values(X, n_threads)
    product = kernel.landmarks.product
    out = np.empty((X.shape[0], product.shape[0]), np.result_type(product.dtype, X.dtype))

    def fill(part: slice) -> None:
        out[part] = kernel.values(dense(X[part]), 1)

    _over_blocks(fill, X, n_threads)
    return out


def dense(rows: Any) -> NDArray[Any]:
    """Rows of a sparse matrix as an array."""
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)


def _over_blocks(work: Callable[[slice], None], X: Any, n_threads: int) -> None:
    """Do the work for all blocks of rows of X; their bounds do not depend on the number of threads."""
    parts = _blocks(X.shape[0], min(_ROWS, rows_at_a_time(X.shape[1])) if sp.issparse(X) else _ROWS)
    if len(parts) == 1:
        work(parts[0])
    else:
        _in_threads(work, parts, min(n_threads, len(parts)))


@with_one_blas_thread
def _in_threads(work: Callable[[slice], None], parts: list[slice], n_threads: int) -> None:
    if n_threads == 1:
        for part in parts:
            work(part)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        for _ in pool.map(work, parts):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def relative_error(rows: NDArray[Any], F: NDArray[Any], kernel: Kernel, n_total: int, n_threads: int) -> float:
    r""":math:`\|K - F F'\|_F / \|K\|_F` over `n_total` rows, from those of a sample.

    A sample of n rows has a share n / N of the diagonal and a share n (n - 1) / N (N - 1) of the other entries; both
    are scaled up. With all rows that is the error itself.
    """
    n = len(rows)
    to_rows = kernel.against(rows, rows.dtype)
    on_diagonal, elsewhere = np.zeros(2), np.zeros(2)
    for part in _blocks(n, max(1, _ENTRIES // n)):
        K = to_rows.values(rows[part], n_threads).astype(np.float64, copy=False)
        E = K - F[part] @ F.T
        squares = np.array([_diagonal_squares(E, part.start), _diagonal_squares(K, part.start)])
        on_diagonal += squares
        elsewhere += [np.vdot(E, E), np.vdot(K, K)] - squares
    pairs = n_total * (n_total - 1) / (n * (n - 1)) if n > 1 else 0.0
    numerator, denominator = on_diagonal * (n_total / n) + elsewhere * pairs
    return float(np.sqrt(max(numerator, 0.0) / denominator)) if denominator > 0 else 0.0


def _diagonal_squares(block: NDArray[np.float64], first: int) -> float:
    return float((np.diagonal(block, first) ** 2).sum())
