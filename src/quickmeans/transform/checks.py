"""What may come in: the factors of a product, and the rows it is applied to."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Factor: TypeAlias = Any  # a scipy.sparse.csr_array (SciPy is untyped) or a NumPy array

LARGEST_SIDE = 2**31 - 1
# A factor with more than this share of non-zeros is kept, and run, as a dense one.
DENSE_SHARE = 0.5


def check_factors(factors: Iterable[Any]) -> tuple[Factor, ...]:
    """Read-only copies of the factors, of one floating dtype, each sparse or dense as suits it."""
    if isinstance(factors, np.ndarray) or sp.issparse(factors):
        raise TypeError("SparseProduct takes a sequence of factors, got a single matrix; write SparseProduct([S]).")
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
    matrix = factor if sp.issparse(factor) else np.asarray(factor)
    if matrix.ndim != 2:
        raise ValueError(f"Factor {q} must be a 2-D matrix, got {matrix.ndim}-D.")
    if min(matrix.shape) == 0:
        raise ValueError(f"Factor {q} has shape {matrix.shape}; every factor needs at least one row and one column.")
    if max(matrix.shape) > LARGEST_SIDE:
        raise ValueError(f"Factor {q} has shape {matrix.shape}; a side may be at most {LARGEST_SIDE} long.")
    check_real(matrix.dtype, f"Factor {q}")
    return matrix


def _canonical(matrix: Any, dtype: np.dtype[Any], q: int) -> Factor:
    """CSR with sorted indices and no explicit zeros, or a dense array; a copy that nobody can write to."""
    if sp.issparse(matrix):
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


def check_real(dtype: np.dtype[Any], name: str) -> None:
    """Refuse what is not a real number."""
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {dtype}; it must hold real numbers (floating point, integer or boolean).")


def working_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """float32 or float64: NumPy's common type of the arguments, never narrower than float32."""
    common = np.result_type(*dtypes)
    if common.kind != "f":
        return np.dtype(np.float64)
    return np.dtype(np.float32 if common.itemsize <= 4 else np.float64)


def check_rows(X: Any, n_columns: int, name: str = "X") -> NDArray[Any]:
    """X as a 2-D array of real numbers with the right number of columns; copied only if its type is foreign."""
    if sp.issparse(X):
        raise TypeError(
            f"{name} is a sparse matrix; pass a dense array, for example {name}.toarray() a block of rows at a time."
        )
    rows = np.asarray(X)
    check_real(rows.dtype, name)
    if rows.ndim != 2:
        hint = f"; for a single row pass {name}[None, :]" if rows.ndim == 1 else ""
        raise ValueError(f"{name} must be a 2-D array of rows, got {rows.ndim}-D of shape {rows.shape}{hint}.")
    if rows.shape[1] != n_columns:
        raise ValueError(f"{name} has {rows.shape[1]} columns, but the product needs {n_columns}.")
    if rows.dtype.isnative and rows.dtype.itemsize <= 8:
        return rows
    return rows.astype(rows.dtype.newbyteorder("=") if rows.dtype.itemsize <= 8 else np.float64)


def first_bad_position(rows: NDArray[Any]) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity, if there is one."""
    bad = np.argwhere(~np.isfinite(rows))
    return (int(bad[0, 0]), int(bad[0, 1])) if len(bad) else None
