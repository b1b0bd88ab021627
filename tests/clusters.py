"""Lloyd's iteration by its formulas, slowly, and native searches to compare with it."""

import numpy as np


def search_of(kind, X, centers, weights=None, *, spherical=False, n_threads=1):
    """A search of this kind among the rows of X that begins with these centers."""
    rows = np.ascontiguousarray(X, np.float32)
    w = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
    search = kind(rows, w, spherical=spherical, n_threads=n_threads)
    search.place(np.asarray(centers, np.float64))
    return search


def squares(X, C):
    """The squared distance of every row from every center."""
    X, C = np.asarray(X, np.float64), np.asarray(C, np.float64)
    return np.maximum((X**2).sum(1)[:, None] - 2 * X @ C.T + (C**2).sum(1), 0)


def lloyd(X, C, w, n_iter, *, spherical=False):
    """Labels, means and the objective after so many iterations."""
    C = np.array(C, np.float64)
    for _ in range(n_iter):
        labels = squares(X, C).argmin(1)
        for k in range(len(C)):
            if w[labels == k].sum() > 0:
                mean = w[labels == k] @ X[labels == k].astype(np.float64) / w[labels == k].sum()
                C[k] = mean / np.linalg.norm(mean) if spherical else mean
    return labels, C, float(w @ squares(X, C)[np.arange(len(X)), labels])
