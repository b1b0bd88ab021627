"""Rows of a mixture in a subspace, and chunks of them."""

import numpy as np

from quickmeans.data import source


def mixture(n=4000, D=60, n_centers=80, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((n_centers, 6)) @ rng.standard_normal((6, D))
    return (centers[rng.integers(n_centers, size=n)] + 0.5 * rng.standard_normal((n, D)) + 3).astype(dtype)


X = mixture()


def chunked(monkeypatch, n_rows, rows=X):
    monkeypatch.setattr(source, "CHUNK_BYTES", n_rows * rows.shape[1] * rows.itemsize)
