"""The factors of a product as they are stored: canonical CSR arrays or dense arrays that nobody can change."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.transform.checks import as_array, check_real, working_dtype

Factor: TypeAlias = Any  # a scipy.sparse.csr_array (SciPy is untyped) or a NumPy array

LARGEST_SIDE = 2**31 - 1  # the native code has 32-bit column indices
MOST_FACTORS = 64  # that a solver learns; log2 of the largest side, beyond which more factors save nothing, is 31
# A factor with more than this share of non-zeros is kept, and its cost counted, as a dense matrix: in float32 the
# values and 32-bit column indices of half the entries take as much memory as the dense matrix.
DENSE_SHARE = 0.5


def check_factors(factors: Iterable[Any]) -> tuple[Factor, ...]:
    """Return read-only copies of the factors in one floating dtype, each sparse or dense by its share of non-zeros."""
    if sp.issparse(factors) or getattr(factors, "ndim", None) == 2:
        raise TypeError("SparseProduct takes a sequence of factors, got a single matrix; write SparseProduct([S]).")
    if isinstance(factors, str) or not isinstance(factors, Iterable):
        raise TypeError(f"SparseProduct takes a sequence of factors, got {factors!r}.")
    matrices = [_as_matrix(factor, q) for q, factor in enumerate(factors, 1)]
    if not matrices:
        raise ValueError("SparseProduct needs at least one factor, got an empty sequence.")
    for q, (left, right) in enumerate(pairwise(matrices), 1):
        if left.shape[1] != right.shape[0]:
            raise ValueError(
                f"Factors {q} and {q + 1} do not chain: their shapes are {left.shape} and {right.shape}, "
                f"but factor {q + 1} must have {left.shape[1]} rows."
            )
    dtype = working_dtype(*(matrix.dtype for matrix in matrices))
    return tuple(_canonical(matrix, dtype, q) for q, matrix in enumerate(matrices, 1))


def _as_matrix(factor: Any, q: int) -> Any:
    matrix: Any = factor if sp.issparse(factor) else as_array(factor, f"Factor {q}")
    if matrix.ndim != 2:
        hint = "; for a single matrix S write SparseProduct([S])" if matrix.ndim == 1 else ""
        raise ValueError(f"Factor {q} must be a 2-D matrix, got {matrix.ndim}-D{hint}.")
    if min(matrix.shape) == 0:
        raise ValueError(f"Factor {q} has shape {matrix.shape}; every factor needs at least one row and one column.")
    if max(matrix.shape) > LARGEST_SIDE:
        raise ValueError(f"Factor {q} has shape {matrix.shape}; a side may be at most {LARGEST_SIDE} long.")
    check_real(matrix.dtype, f"Factor {q}")  # as_array has checked dense ones only
    if sp.issparse(matrix) and not _has_valid_indices(matrix):
        raise ValueError(f"Factor {q} is not a valid sparse matrix: its indices are out of range.")
    return matrix


def _has_valid_indices(matrix: Any) -> bool:
    """Return whether all indices of a compressed matrix are in range; SciPy converts it without a check."""
    if matrix.format not in ("csr", "csc", "bsr"):
        return True
    starts, indices = matrix.indptr, matrix.indices
    blocks = getattr(matrix, "blocksize", (1, 1))
    n_rows, n_columns = (size // block for size, block in zip(matrix.shape, blocks, strict=True))
    n_major, n_minor = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    if len(starts) != n_major + 1 or starts[0] != 0 or not starts[-1] <= min(len(indices), len(matrix.data)):
        return False
    indices = indices[: starts[-1]]
    in_order = bool((starts[:-1] <= starts[1:]).all())
    return in_order and (indices.size == 0 or (indices.min() >= 0 and indices.max() < n_minor))


def _canonical(matrix: Any, dtype: np.dtype[Any], q: int) -> Factor:
    """Return a read-only copy: CSR with sorted indices and no explicit zeros, or a dense array."""
    if sp.issparse(matrix):
        with np.errstate(over="ignore"):
            factor = sp.csr_array(matrix, dtype=dtype, copy=True)
        factor.sum_duplicates()
        factor.eliminate_zeros()
        if factor.nnz > DENSE_SHARE * matrix.shape[0] * matrix.shape[1]:
            return _canonical(factor.toarray(), dtype, q)
        _check_finite(
            factor.data, lambda e: (int(np.searchsorted(factor.indptr, e, "right")) - 1, int(factor.indices[e])), q
        )
        arrays = [factor.data, factor.indices, factor.indptr]
    else:
        with np.errstate(over="ignore"):
            factor = np.array(matrix, dtype=dtype, order="C")
        _check_finite(factor.ravel(), lambda e: divmod(e, factor.shape[1]), q)
        if np.count_nonzero(factor) <= DENSE_SHARE * factor.size:
            return _canonical(sp.csr_array(factor), dtype, q)
        arrays = [factor]
    for array in arrays:
        array.flags.writeable = False
    return factor


def _check_finite(values: NDArray[Any], position: Any, q: int) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row, column = position(int(bad[0]))
        raise ValueError(
            f"Factor {q} holds {values[bad[0]]} at row {row}, column {column}; "
            f"every coefficient must be a finite number in {values.dtype}."
        )


def read_only_view(factor: Factor) -> Factor:
    """Return another array over the same read-only numbers; changes of its attributes leave the factor as it is."""
    if not sp.issparse(factor):
        return factor.view()
    return sp.csr_array((factor.data.view(), factor.indices.view(), factor.indptr.view()), shape=factor.shape)


def equal_factors(S: Factor, T: Factor) -> bool:
    """Return whether two factors are stored in the same way with the same numbers."""
    if sp.issparse(S) != sp.issparse(T) or S.shape != T.shape:
        return False
    if not sp.issparse(S):
        return np.array_equal(S, T)
    return all(np.array_equal(getattr(S, part), getattr(T, part)) for part in ("indptr", "indices", "data"))


def dense(factor: Factor) -> NDArray[np.float64]:
    """Return a new dense float64 array with the values of the factor."""
    return np.array(factor.toarray() if sp.issparse(factor) else factor, np.float64, order="C")
