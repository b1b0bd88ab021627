"""The slow way: plain NumPy in float64, the formulas as they stand."""

import functools

import numpy as np
import scipy.sparse as sp


def dense(factor):
    return np.asarray(factor.toarray() if sp.issparse(factor) else factor, dtype=np.float64)


def product(factors):
    """S_1 S_2 ... S_Q."""
    return functools.reduce(np.matmul, map(dense, factors))


def distances(X, V):
    """||x_n - v_k|| for all n and k."""
    differences = np.asarray(X, np.float64)[:, None, :] - np.asarray(V, np.float64)[None]
    return np.sqrt((differences**2).sum(axis=2))


def nearest_rows(X, V, m):
    """The m nearest rows of V, nearest first, ties to the lower index."""
    return np.argsort(distances(X, V), axis=1, kind="stable")[:, :m]


def nystroem_features(C, W):
    """C W^(-1/2), with the square root of the pseudo-inverse of |W|."""
    values, vectors = np.linalg.eigh(W)
    sizes = np.abs(values)
    kept = sizes > 1e-12 * sizes.max()
    return C @ (vectors[:, kept] / np.sqrt(sizes[kept])) @ vectors[:, kept].T
