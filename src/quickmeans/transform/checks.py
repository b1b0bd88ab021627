"""What may come in: the factors of a product, and the rows it is applied to."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.kernels import readable as readable

Factor: TypeAlias = Any  # a scipy.sparse.csr_array (SciPy is untyped) or a NumPy array

LARGEST_SIDE = 2**31 - 1
# A factor with more than this share of non-zeros is stored as a dense array, and counted as one: with its
# indices, a CSR array of float32 takes twice the memory per entry. (For speed, native code decides again for every
# sixteen rows: kDenseSliceShare in native/product.cpp.)
DENSE_SHARE = 0.5


def check_factors(factors: Iterable[Any]) -> tuple[Factor, ...]:
    """Read-only copies of the factors, of one floating dtype, each sparse or dense as suits it."""
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
    matrix = factor if sp.issparse(factor) else _as_array(factor, f"Factor {q}")
    if matrix.ndim != 2:
        hint = "; for a single matrix S write SparseProduct([S])" if matrix.ndim == 1 else ""
        raise ValueError(f"Factor {q} must be a 2-D matrix, got {matrix.ndim}-D{hint}.")
    if min(matrix.shape) == 0:
        raise ValueError(f"Factor {q} has shape {matrix.shape}; every factor needs at least one row and one column.")
    if max(matrix.shape) > LARGEST_SIDE:
        raise ValueError(f"Factor {q} has shape {matrix.shape}; a side may be at most {LARGEST_SIDE} long.")
    check_real(matrix.dtype, f"Factor {q}")  # sparse ones have not been asked yet
    return matrix


def _as_array(value: Any, name: str) -> NDArray[Any]:
    """value as an array of real numbers, without copying it."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; say what the masked entries are worth with its filled() method.")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers.") from None
    if array.dtype == object and array.ndim == 0:
        raise TypeError(f"{name} must be an array of numbers, got {type(value).__name__}.")
    check_real(array.dtype, name)
    return array


def _canonical(matrix: Any, dtype: np.dtype[Any], q: int) -> Factor:
    """CSR with sorted indices and no explicit zeros, or a dense array; a copy that nobody can write to."""
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


def check_rows(X: Any, n_columns: int) -> NDArray[Any]:
    """X as a 2-D array of real numbers with the right number of columns; see :func:`readable`."""
    rows = check_dense(X, "X")
    if rows.ndim != 2:
        hint = "; for a single row pass X[None, :]" if rows.ndim == 1 and rows.size else ""
        raise ValueError(f"X must be a 2-D array of rows, got {rows.ndim}-D of shape {rows.shape}{hint}.")
    if rows.shape[1] != n_columns:
        raise ValueError(f"X has {rows.shape[1]} columns, but the product has {n_columns}.")
    return readable(rows)


def check_operand(x: Any, length: int, shape: tuple[int, int]) -> NDArray[Any]:
    """The right operand of V @ x, or the left one of x @ V transposed: a vector, or a matrix with `length` rows."""
    operand = check_dense(x, "The operand")
    if operand.ndim not in (1, 2):
        raise ValueError(f"The operand must be a vector or a matrix, got {operand.ndim}-D of shape {operand.shape}.")
    if operand.shape[0] != length:
        unit = "entries" if operand.ndim == 1 else "entries per vector"
        raise ValueError(
            f"The operand has {operand.shape[0]} {unit}, but the {shape[0]} x {shape[1]} product needs {length}."
        )
    return operand


def check_dense(X: Any, name: str) -> NDArray[Any]:
    """X as an array of real numbers, not copied."""
    if sp.issparse(X):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array, by blocks of rows if it is large.")
    return _as_array(X, name)


def first_bad_position(rows: NDArray[Any]) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity, if there is one."""
    bad = np.argwhere(~np.isfinite(rows))
    return (int(bad[0, 0]), int(bad[0, 1])) if len(bad) else None
