r"""Structured landmarks (Si, Hsieh and Dhillon, 2016): rows of :math:`T\, \mathrm{diag}(d)` for a fast transform T.

Each block of landmarks has its own vector :math:`d`; landmark k of the block is :math:`t_k \circ d`, which is the
vector with the signs and on the support of a row of T. If a block needs fewer landmarks than T has rows, these rows are
drawn at random. The vectors are centered rows of the data, or they are learned by Lloyd's iteration. For fixed labels,
with cluster means :math:`m_k` and sizes :math:`n_k`, the k-means objective is

.. math:: \sum_k n_k \|m_k - t_k \circ d\|^2 \quad\text{with minimum}\quad
          d_j = \frac{\sum_k n_k t_{kj} m_{kj}}{\sum_k n_k t_{kj}^2}.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.kmeans.blocks import block_rows, slices
from quickmeans.kmeans.rows import Rows
from quickmeans.transform import SparseProduct, haar, hadamard

TRANSFORMS = {"hadamard": hadamard, "haar": haar}
_ITERATIONS = 10  # ten more lower the objective by 0.3 to 1 % (MNIST; benchmarks/thresholds.py)


class Structured:
    """Landmarks from one transform: which of its rows they use, and which block each belongs to.

    Attributes
    ----------
    n_blocks : int
    block : array of shape (n_landmarks,)
        The block of every landmark.
    signs : array of shape (n_landmarks, n_columns)
        The row of T of every landmark, scaled so that its largest entry is one.
    """

    def __init__(self, name: str, n_landmarks: int, n_columns: int, rng: np.random.RandomState) -> None:
        order = 1 << (n_columns - 1).bit_length()
        self.transform = TRANSFORMS[name](order)
        self.n_columns = n_columns
        useful = np.flatnonzero(_not_zero(self.transform, n_columns))  # some rows have entries in padded columns only
        self.n_blocks = -(-n_landmarks // len(useful))
        sizes = [min(len(useful), n_landmarks - i * len(useful)) for i in range(self.n_blocks)]
        rows = np.concatenate([np.sort(rng.permutation(useful)[:size]) for size in sizes])
        self.block = np.repeat(np.arange(self.n_blocks), sizes)
        signs = self.transform.T.apply(sp.eye_array(order, format="csr")[rows].toarray())[:, :n_columns]
        scale = 1 / np.abs(signs).max(axis=1)
        self.signs = np.asarray(signs * scale[:, None], np.float64)
        self._select = sp.csr_array(
            (scale, (np.arange(len(rows)), self.block * order + rows)), shape=(len(rows), self.n_blocks * order)
        )

    def product(self, vectors: NDArray[np.float64], dtype: Any) -> SparseProduct:
        """The landmarks with these vectors, one for each block."""
        order = self.transform.shape[0]
        pad = sp.vstack([sp.dia_array((d[None], [0]), shape=(order, self.n_columns)) for d in vectors])
        factors = [sp.kron(sp.eye_array(self.n_blocks), S, format="csr") for S in self.transform.factors]
        factors[0] = self._select @ factors[0]
        factors[-1] = factors[-1] @ pad
        return SparseProduct([S.astype(dtype) for S in factors])

    def learned(
        self, rows: Rows, mean: NDArray[np.float64], vectors: NDArray[np.float64], dtype: Any, n_threads: int
    ) -> SparseProduct:
        """The landmarks with vectors that Lloyd's iteration finds, beginning with these."""
        product = self.product(vectors, dtype)
        for _ in range(_ITERATIONS):
            counts, sums = _cluster_sums(rows, product, mean, n_threads)
            new = vectors.copy()
            for i in range(self.n_blocks):
                members = self.block == i
                weights = counts[members] @ self.signs[members] ** 2
                numerators = np.einsum("kj,kj->j", self.signs[members], sums[members])
                np.divide(numerators, weights, out=new[i], where=weights > 0)
            if np.array_equal(new, vectors):
                break
            vectors, product = new, self.product(new, dtype)
        return product


def _not_zero(transform: SparseProduct, n_columns: int) -> NDArray[np.bool_]:
    """Which rows of the transform have an entry in the first columns; products of its factors never cancel to zero."""
    sizes = (np.arange(transform.shape[1]) < n_columns).astype(np.float64)
    for S in reversed(transform.factors):
        sizes = abs(S) @ sizes
    return np.asarray(sizes > 0)


def _cluster_sums(
    rows: Rows, product: SparseProduct, mean: NDArray[np.float64], n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For every landmark the number of centered rows that are nearest to it, and their sum."""
    K = product.shape[0]
    counts, sums = np.zeros(K), np.zeros(product.shape)
    for _, given in rows.blocks():
        for part in slices(len(given), block_rows(rows.shape[1])):
            block = given[part] - mean.astype(product.dtype)
            n, labels = len(block), product.nearest_row(block, n_threads=n_threads)
            members = sp.csr_array((np.ones(n, block.dtype), (labels, np.arange(n))), shape=(K, n))
            counts += np.bincount(labels, minlength=K)
            sums += members @ block
    return counts, sums
