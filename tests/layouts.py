"""The same rows in other memory layouts, types and containers: results must be equal, or an error says what is wrong.

`WHOLE` has whole numbers from 0 to 127, which all types but bool hold exactly, and `BITS` has zeros and ones. Both lie
in separate groups of rows, so that rounding does not decide which centroid is nearest.
"""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g"]


def _groups(rng, prototypes, noise):
    return np.unique(np.abs(prototypes[rng.integers(len(prototypes), size=100)] - noise), axis=0).astype(np.float64)


_rng = np.random.default_rng(0)
WHOLE = _groups(_rng, _rng.integers(5, 123, (6, 8)), _rng.integers(-4, 5, (100, 8)))
BITS = _groups(_rng, _rng.integers(0, 2, (6, 32)), _rng.random((100, 32)) < 0.07)


def layouts(X):
    """Pairs (name, variant) of the C-contiguous array X: every dense layout and container, and the types that hold it.

    A type is left out if it does not hold all entries of X exactly.
    """
    n, D = X.shape
    yield "Fortran order", np.asfortranarray(X)
    yield "every second row", np.repeat(X, 2, axis=0)[::2]
    yield "every second column", np.repeat(X, 2, axis=1)[:, ::2]
    yield "reversed rows", X[::-1].copy()[::-1]
    yield "reversed columns", np.asfortranarray(X[:, ::-1])[:, ::-1]
    read_only = X.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    packed = np.zeros(n, np.dtype([("pad", "u1"), ("row", X.dtype, (D,))]))
    packed["row"] = X
    yield "unaligned", packed["row"]
    yield "repeated by stride zero", np.broadcast_to(X, (1, n, D))[0]
    for name in TYPES:
        for order in "<>":
            dtype = np.dtype(name).newbyteorder(order)
            with warnings.catch_warnings(action="ignore"):  # of casts that lose something
                variant = X.astype(dtype)
            if np.array_equal(variant, X) and (order == "<" or dtype.itemsize > 1):
                yield f"{dtype.name}, {'big' if order == '>' else 'little'}-endian", variant
    yield "nested lists", X.tolist()
    yield "objects", X.astype(object)
    yield "pandas frame", pd.DataFrame(X)
    yield "pandas frame, one array per column", pd.DataFrame({j: X[:, j].copy() for j in range(D)})
    yield "pandas frame of nullable numbers", pd.DataFrame(X).convert_dtypes()
    yield "polars frame", pl.DataFrame(X, schema=[f"x{j}" for j in range(D)])


def sparse_layouts(X):
    """Pairs (name, variant) of X as a sparse matrix."""
    for form in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array):
        yield form.__name__, form(X)
    indices = sp.csr_array(X)
    indices.indices, indices.indptr = indices.indices.astype(np.int64), indices.indptr.astype(np.int64)
    yield "64-bit indices", indices
    reverse = sp.csr_array(X[:, ::-1])
    unsorted = sp.csr_array((reverse.data, X.shape[1] - 1 - reverse.indices, reverse.indptr), shape=X.shape)
    unsorted.has_sorted_indices = False
    yield "unsorted indices", unsorted
    halves = sp.csr_array(X)
    yield (
        "duplicate entries",
        sp.csr_array((np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), shape=X.shape),
    )
    yield (
        "explicit zeros",
        sp.csr_array(
            (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), np.arange(0, X.size + 1, X.shape[1])), shape=X.shape
        ),
    )
    for name in sorted(set(TYPES) - {"f2"}):  # which SciPy does not have
        variant = sp.csr_array(X).astype(name)
        if np.array_equal(variant.toarray(), X):
            yield f"csr_array of {np.dtype(name).name}", variant


def unusable(X):
    """Triples (name, variant, words of the error) of what is no matrix of numbers."""
    yield "complex", X.astype(complex), "[Cc]omplex"
    yield "text", np.full(X.shape, "one"), "numeric|convert|numbers"
    yield "one row", X[0], "1D|2D|1-D"
    yield "three dimensions", X[None], "dim 3|3-D|3D"
    yield "no rows", X[:0], "0 sample"
    yield "no columns", X[:, :0], "0 feature"
