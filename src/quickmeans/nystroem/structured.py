r"""Structured landmarks (Si, Hsieh and Dhillon, 2016): rows of :math:`T\, \mathrm{diag}(d)` for a fast transform T.

Each block of landmarks has a vector :math:`d` of its own; landmark k of the block is :math:`t_k \circ d`: the vector
with the signs, and the support, of a row of T. Where there are fewer landmarks than rows in a block, those rows are
drawn. The vectors are rows of the data (about their mean), or learned: for fixed labels the k-means objective is

.. math:: \sum_k n_k \|m_k - t_k \circ d\|^2 \quad\text{with minimum}\quad
          d_j = \frac{\sum_k n_k t_{kj} m_{kj}}{\sum_k n_k t_{kj}^2}.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.kmeans.blocks import block_rows as rows_at_a_time
from quickmeans.nystroem.features import dense
from quickmeans.transform import SparseProduct, haar, hadamard

TRANSFORMS = {"hadamard": hadamard, "haar": haar}
_ITERATIONS = 10


class Structured:
    """Landmarks of one transform: which rows of it make them, and with which vectors."""

    def __init__(self, name: str, n_landmarks: int, n_columns: int, rng: np.random.RandomState) -> None:
        """See the class."""
        order = 1 << (n_columns - 1).bit_length()
        self.transform = TRANSFORMS[name](order)
        self.n_columns = n_columns
        useful = np.flatnonzero(_reaches(self.transform, n_columns))  # not those on columns that fill up the order
        self.blocks = -(-n_landmarks // len(useful))
        sizes = [min(len(useful), n_landmarks - i * len(useful)) for i in range(self.blocks)]
        rows = np.concatenate([np.sort(rng.permutation(useful)[:size]) for size in sizes])
        self.block = np.repeat(np.arange(self.blocks), sizes)
        # The rows of T that are used, scaled so that their largest entry is one.
        signs = self.transform.T.apply(sp.eye_array(order, format="csr")[rows].toarray())[:, :n_columns]
        self.scale = 1 / np.abs(signs).max(axis=1)
        self.signs = np.asarray(signs * self.scale[:, None], np.float64)
        self.select = sp.csr_array(
            (self.scale, (np.arange(len(rows)), self.block * order + rows)), shape=(len(rows), self.blocks * order)
        )

    def product(self, vectors: NDArray[np.float64], dtype: Any) -> SparseProduct:
        """The landmarks with these vectors, one row for each block."""
        order = self.transform.shape[0]
        pad = sp.vstack([sp.dia_array((d[None], [0]), shape=(order, self.n_columns)) for d in vectors])
        factors = [sp.kron(sp.eye_array(self.blocks), S, format="csr") for S in self.transform.factors]
        factors[0] = self.select @ factors[0]
        factors[-1] = factors[-1] @ pad
        return SparseProduct([S.astype(dtype) for S in factors])

    def learned(
        self, X: Any, mean: NDArray[np.float64], vectors: NDArray[np.float64], dtype: Any, n_threads: int
    ) -> SparseProduct:
        """Lloyd's iteration over vectors."""
        product = self.product(vectors, dtype)
        for _ in range(_ITERATIONS):
            counts, sums = _clusters(X, product, mean, n_threads)
            new = vectors.copy()
            for i in range(self.blocks):
                mine = self.block == i
                weights = counts[mine] @ self.signs[mine] ** 2
                moments = np.einsum("kj,kj->j", self.signs[mine], sums[mine])
                np.divide(moments, weights, out=new[i], where=weights > 0)
            if np.array_equal(new, vectors):
                break
            vectors, product = new, self.product(new, dtype)
        return product


def _reaches(transform: SparseProduct, n_columns: int) -> NDArray[np.bool_]:
    """Which rows of the transform are not zero on the first columns; no two paths through its factors cancel out."""
    sizes = (np.arange(transform.shape[1]) < n_columns).astype(np.float64)
    for S in reversed(transform.factors):
        sizes = abs(S) @ sizes
    return np.asarray(sizes > 0)


def _clusters(
    X: Any, product: SparseProduct, mean: NDArray[np.float64], n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many rows, about the mean, are nearest to each landmark, and their sums."""
    K, step = product.shape[0], rows_at_a_time(X.shape[1])
    counts, sums = np.zeros(K), np.zeros(product.shape)
    for begin in range(0, X.shape[0], step):
        rows = dense(X[begin : begin + step]) - mean.astype(product.dtype)
        labels = product.nearest_row(rows, n_threads=n_threads)
        members = sp.csr_array((np.ones(len(rows), rows.dtype), (labels, np.arange(len(rows)))), shape=(K, len(rows)))
        counts += np.bincount(labels, minlength=K)
        sums += members @ rows
    return counts, sums
