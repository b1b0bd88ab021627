r"""Features whose inner products approximate a kernel.

With kernel values :math:`C` between rows and landmarks and :math:`W` between landmarks,

.. math:: \tilde K = C W^+ C' = F F', \qquad F = C W^{-1/2}.

The rows go by blocks: the native kernel computes the kernel values of a block, and a matrix product normalises them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from quickmeans.data.memory_rows import MemoryRows
from quickmeans.kmeans.blocks import slices
from quickmeans.nystroem.kernels import Gaussian, Kernel
from quickmeans.threads import run_in_threads

_ROWS = 512  # of a block: its kernel values, 1 MB for 512 landmarks in float32, are normalised while in the cache
_ENTRIES = 1 << 22  # of a block of a kernel matrix: 32 MB in float64


def root_inverse(W: NDArray[np.float64], dtype: Any) -> NDArray[np.float64]:
    r""":math:`|W|^{-1/2} = V |\Lambda|^{-1/2} V'`, symmetric, for features in arithmetic of the given type.

    Eigenvalues below the unit of rounding times the largest are raised to that: they are smaller than the rounding of
    kernel values. So equal landmarks do no harm. As in scikit-learn, the absolute values of the eigenvalues are taken,
    for kernels that are not positive (sigmoid).
    """
    values, vectors = scipy.linalg.eigh((W + W.T) / 2, check_finite=False)
    sizes = np.abs(values)
    floor = float(np.finfo(dtype).eps) * (sizes.max() or 1.0)
    return np.asarray((vectors / np.sqrt(np.maximum(sizes, floor))) @ vectors.T, np.float64)


def features(rows: MemoryRows, kernel: Kernel, normalization: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """F of all rows."""
    out = np.empty((rows.shape[0], len(normalization)), normalization.dtype)

    def fill(part: slice) -> None:
        np.dot(kernel.values(rows.take(part), 1).astype(out.dtype, copy=False), normalization, out=out[part])

    _over_blocks(fill, rows, n_threads)
    return out


def kernel_values(rows: MemoryRows, kernel: Kernel, n_threads: int) -> NDArray[Any]:
    """C of all rows."""
    if isinstance(kernel, Gaussian):
        return _gaussian_values(rows, kernel, n_threads)
    out = _empty_values(rows, kernel)

    def fill(part: slice) -> None:
        out[part] = kernel.values(rows.take(part), 1)

    _over_blocks(fill, rows, n_threads)
    return out


def _gaussian_values(rows: MemoryRows, kernel: Gaussian, n_threads: int) -> NDArray[Any]:
    """C by the native code, which has threads and needs memory for tiles of rows only."""
    out: NDArray[Any] | None = None
    for part, block in rows.blocks():
        if len(block) == rows.shape[0]:
            return kernel.values(block, n_threads)
        out = _empty_values(rows, kernel) if out is None else out
        out[part] = kernel.values(block, n_threads)
    assert out is not None
    return out


def _empty_values(rows: MemoryRows, kernel: Kernel) -> NDArray[Any]:
    product = kernel.landmarks.product
    return np.empty((rows.shape[0], product.shape[0]), np.result_type(product.dtype, rows.dtype))


def _over_blocks(work: Callable[[slice], None], rows: MemoryRows, n_threads: int) -> None:
    """Do the work for all blocks of rows; their bounds do not depend on the number of threads."""
    parts = rows.slices(_ROWS)
    if len(parts) == 1:
        work(parts[0])
    else:
        run_in_threads(lambda: work, parts, n_threads)


def relative_error(rows: NDArray[Any], F: NDArray[Any], kernel: Kernel, n_total: int, n_threads: int) -> float:
    r""":math:`\|K - F F'\|_F / \|K\|_F` over `n_total` rows, estimated from a sample of them with features F."""
    numerator, denominator = scaled_up(error_squares(rows, F, kernel, n_threads), len(rows), n_total)
    return float(np.sqrt(max(numerator, 0.0) / denominator)) if denominator > 0 else 0.0


def error_squares(rows: NDArray[Any], F: NDArray[Any], kernel: Kernel, n_threads: int) -> NDArray[np.float64]:
    """The squares of K - F F' and of K, in columns: their sums on the diagonal and elsewhere, in rows."""
    n = len(rows)
    to_rows = kernel.against(rows, rows.dtype)
    squares = np.zeros((2, 2))
    for part in slices(n, max(1, _ENTRIES // n)):
        K = to_rows.values(rows[part], n_threads).astype(np.float64, copy=False)
        E = K - F[part] @ F.T
        diagonal = np.array([_diagonal_squares(E, part.start), _diagonal_squares(K, part.start)])
        squares += [diagonal, [np.vdot(E, E), np.vdot(K, K)] - diagonal]
    return squares


def scaled_up(squares: NDArray[np.float64], n: int, n_total: int) -> NDArray[np.float64]:
    """Sums over a matrix of `n_total` rows, from the sums on the diagonal and elsewhere over a sample of n rows.

    A sample has a share n / N of the diagonal and a share n (n - 1) / N (N - 1) of the other entries. For n = N this is
    exact.
    """
    pairs = n_total * (n_total - 1) / (n * (n - 1)) if n > 1 else 0.0
    return np.asarray([n_total / n, pairs] @ squares)


def _diagonal_squares(block: NDArray[np.float64], first: int) -> float:
    return float((np.diagonal(block, first) ** 2).sum())
