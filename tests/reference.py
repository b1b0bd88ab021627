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


def quick_means(X, V, learn, w, n_iter):
    """Algorithm 1 of the paper for rows of weight w, with its names; a dictionary for line 1 and each iteration."""
    steps, product = [], None
    for _ in range(n_iter + 1):
        t = distances(X, V).argmin(axis=1)  # line 3
        assigned = float((w * ((X - V[t]) ** 2).sum(axis=1)).sum())
        n = np.array([w[t == k].sum() for k in range(len(V))])  # line 4
        U = np.stack([(w[t == k, None] * X[t == k]).sum(axis=0) / n[k] if n[k] else V[k] for k in range(len(V))])
        product = learn(U, n, product)  # lines 5 to 7
        V = product.toarray()  # line 8
        updated = float((w * ((X - V[t]) ** 2).sum(axis=1)).sum())
        steps.append({"t": t, "n": n, "U": U, "V": V, "assigned": assigned, "updated": updated})
    return steps
