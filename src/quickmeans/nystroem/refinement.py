r"""Landmarks refined on the error of the kernel matrix itself, and not on the k-means objective.

For n rows with kernel matrix K, kernel values C with the landmarks and W between landmarks, let

.. math:: A = C W^{-1}, \qquad R = K - A C', \qquad L = \sum_{ij} \omega_{ij} R_{ij}^2,

where the weight of the diagonal is smaller than one, because a sample has more of it than the kernel matrix of all
rows. With :math:`B = (\omega \circ R) A` the gradient is

.. math:: dL = \langle -4 B, dC\rangle + \langle 2 A' B, dW\rangle .

The kernel says what that is in the landmarks V, and the chain rule what it is in the factors,
:math:`\partial S_q = L_q' \, \partial V \, R_q'` on the support of :math:`S_q`. Steps are Adam's (Kingma and Ba, 2015)
with other rows in every step, and one step length for all entries of a row of a factor.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.nystroem.kernels import Kernel
from quickmeans.threads import with_one_blas_thread
from quickmeans.transform import SparseProduct

# Chosen by the error of held-out rows (benchmarks/thresholds.py).
_STEPS = 30
_RATE = 0.01  # the first steps, as a share of the root mean square of the entries of a factor
_MOMENTA = 0.9, 0.95  # of the gradient, and of its squares
_DIAGONAL = 0.3  # the weight of the diagonal: good for matrices of a thousand rows, and of all rows
_RIDGE = 1e-5  # added to the diagonal of W, as a share of its largest entry

Array = NDArray[Any]
Draw = Callable[[], Array]  # other rows at each call


def error_gradient(X: Array, kernel: Kernel, diagonal: float, n_threads: int) -> tuple[float, Array] | None:
    """L of these rows, where the weight of the diagonal is given, and its gradient in the landmarks.

    None if the kernel does not know its slope.
    """
    U = kernel.landmarks.rows().astype(X.dtype)
    C, W = kernel.values(X, n_threads), kernel.values(U, n_threads).astype(np.float64)
    W.flat[:: len(W) + 1] += _RIDGE * np.abs(W).max()
    A = scipy.linalg.solve(W, C.T.astype(np.float64), assume_a="sym", check_finite=False).T.astype(X.dtype)
    R = kernel.against(X, X.dtype).values(X, n_threads) - A @ C.T
    loss = float(np.vdot(R, R)) - (1 - diagonal) * float(np.vdot(np.diagonal(R), np.diagonal(R)))
    R.flat[:: len(R) + 1] *= diagonal
    B = R @ A
    of_rows = kernel.pull(X, C, -4 * B)
    of_landmarks = kernel.pull(U, W.astype(X.dtype), 4 * A.T @ B)  # each landmark is on both sides of W
    return None if of_rows is None or of_landmarks is None else (loss, of_rows + of_landmarks)


@with_one_blas_thread
def refined(
    product: SparseProduct, kernel: Callable[[SparseProduct], Kernel], draw: Draw, n_threads: int
) -> SparseProduct:
    """The product with other values on the same supports, after some steps."""
    factors = [sp.csr_array(S, copy=True) for S in product.factors]
    steps = [_Steps(S) for S in factors]
    for i in range(_STEPS):
        gradient = error_gradient(draw(), kernel(SparseProduct(factors)), _DIAGONAL, n_threads)
        if gradient is None:
            return product
        rate = _RATE * min(1.0, 2 * (1 - i / _STEPS))
        for step, change in zip(steps, factor_gradients(factors, gradient[1], n_threads), strict=True):
            step.take(change, rate)
    return SparseProduct(factors)


def factor_gradients(factors: list[sp.csr_array], G: Array, n_threads: int) -> list[Array]:
    """Gradients in the stored entries of the factors, from the gradient G in the entries of their product."""
    gradients, left = [], np.asarray(G)  # L_q' G
    for q, S in enumerate(factors):
        right = factors[q + 1 :]
        full = SparseProduct(right).apply(left, n_threads=n_threads) if right else left
        gradients.append(full[_rows(S), S.indices])
        left = S.T @ left
    return gradients


class _Steps:
    """Adam's steps on the stored entries of a factor, which it changes."""

    def __init__(self, S: sp.csr_array) -> None:
        self.S, self.row, self.taken = S, _rows(S), 0
        self.scale = float(np.sqrt(np.mean(S.data.astype(np.float64) ** 2))) if S.nnz else 0.0
        self.entries = np.maximum(np.diff(S.indptr), 1)
        self.mean, self.square = np.zeros(S.nnz), np.zeros(S.shape[0])

    def take(self, gradient: Array, rate: float) -> None:
        first, second = _MOMENTA
        self.taken += 1
        gradient = gradient.astype(np.float64)
        self.mean += (1 - first) * (gradient - self.mean)
        squares = np.bincount(self.row, gradient**2, len(self.square)) / self.entries
        self.square += (1 - second) * (squares - self.square)
        lengths = np.sqrt(self.square / (1 - second**self.taken))[self.row]
        move = np.divide(self.mean / (1 - first**self.taken), lengths, out=np.zeros_like(lengths), where=lengths > 0)
        self.S.data -= (rate * self.scale * move).astype(self.S.dtype)


def _rows(S: sp.csr_array) -> NDArray[np.intp]:
    return np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
