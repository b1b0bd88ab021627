"""Sparse rows to cluster."""

import numpy as np
import scipy.sparse as sp

from quickmeans import kernels


def random_rows(rng, n=400, D=60, density=0.15, dtype=np.float64):
    """Random sparse rows; some of them are empty, some equal."""
    X = sp.random_array((n, D), density=density, rng=rng, dtype=np.float64, data_sampler=rng.standard_normal)
    X = sp.lil_array(X)
    X[5], X[n // 2], X[n - 1] = 0, 0, X[0]
    return sp.csr_array(X, dtype=dtype)


def topics(rng, n=3000, D=2000, n_topics=12, words=30):
    """Rows of length one whose words come from one of some Zipf distributions each."""
    chances = 1 / np.arange(1, D + 1)
    places = np.searchsorted(np.cumsum(chances) / chances.sum(), rng.random((n, words)))
    topic = rng.integers(0, n_topics, n)
    orders = np.stack([rng.permutation(D) for _ in range(n_topics)])
    columns = orders[topic[:, None], places]
    X = sp.csr_array((np.ones(columns.size), (np.repeat(np.arange(n), words), columns.ravel())), shape=(n, D))
    X.sum_duplicates()
    return sp.csr_array(sp.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X), topic


def rows_of(X, index=np.int32):
    """The same for native code."""
    X = sp.csr_array(X)
    return kernels.CsrRows(X.indptr.astype(index), X.indices.astype(index), X.data, X.shape[1])
