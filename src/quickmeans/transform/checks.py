"""Checks of the arrays that a product is applied to."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.checks import check_number
from quickmeans.kernels import readable

_LARGEST_TILE = 64  # rows that the native code handles together; it reports the first row of the tile that it refuses


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return the value as an array of real numbers, without copying an array."""
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


def check_real(dtype: np.dtype[Any], name: str) -> None:
    """Raise an error unless the dtype is one of real numbers."""
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {dtype}; it must hold real numbers (floating point, integer or boolean).")


def check_dense(X: Any, name: str) -> NDArray[Any]:
    """Return X as an array of real numbers, without copying an array; raise an error if it is a sparse matrix."""
    if sp.issparse(X):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array, by blocks of rows if it is large.")
    return as_array(X, name)


def check_rows(X: Any, n_columns: int) -> NDArray[Any]:
    """Return X as a :func:`readable` 2-D array of real numbers with the given number of columns."""
    rows = check_dense(X, "X")
    if rows.ndim != 2:
        hint = "; for a single row pass X[None, :]" if rows.ndim == 1 and rows.size else ""
        raise ValueError(f"X must be a 2-D array of rows, got {rows.ndim}-D of shape {rows.shape}{hint}.")
    if rows.shape[1] != n_columns:
        raise ValueError(f"X has {rows.shape[1]} columns, but the product has {n_columns}.")
    return readable(rows)


def check_operand(x: Any, length: int, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the right operand of ``V @ x``, a vector or a matrix with `length` rows, as an array."""
    operand = check_dense(x, "The operand")
    if operand.ndim not in (1, 2):
        raise ValueError(f"The operand must be a vector or a matrix, got {operand.ndim}-D of shape {operand.shape}.")
    if operand.shape[0] != length:
        unit = "entries" if operand.ndim == 1 else "entries per vector"
        raise ValueError(
            f"The operand has {operand.shape[0]} {unit}, but the {shape[0]} x {shape[1]} product needs {length}."
        )
    return operand


def check_vector(values: Any, name: str, length: int, unit: str) -> NDArray[np.float64]:
    """Return one float64 number per `unit`, which is "row" or "column"."""
    vector = check_dense(values, name).astype(np.float64)
    if vector.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), one value per {unit}, got {vector.shape}.")
    return vector


def check_gamma(gamma: Any, dtype: np.dtype[Any]) -> float:
    """Return the coefficient of a Gaussian kernel whose values are computed in the given type."""
    value = check_number("gamma", gamma, 0, above=True)
    if 2 * value > float(np.finfo(dtype).max):
        wider = " or use float64" if dtype == np.float32 else ""
        raise ValueError(f"gamma={gamma!r} is too large for {dtype}; scale X{wider}.")
    return value


def check_mean(mean: Any, n_columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a vector to subtract from rows, in the given type; its square must not overflow."""
    shift = finite_in(check_vector(mean, "mean", n_columns, "column"), dtype, "mean must be finite")
    if np.abs(shift).max() > np.sqrt(np.finfo(dtype).max / (16.0 * len(shift))):
        raise ValueError(f"mean is too large for {dtype}: its square must be finite; scale X and mean.")
    return shift


def working_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 or float64: NumPy's common type of the arguments, but never narrower than float32."""
    common = np.result_type(*dtypes)
    if common.kind != "f":
        return np.dtype(np.float64)
    return np.dtype(np.float32 if common.itemsize <= 4 else np.float64)


def finite_in(values: NDArray[np.float64], dtype: np.dtype[Any], problem: str) -> NDArray[Any]:
    """Return the values in the given type, or raise an error that says where the first non-finite one is."""
    with np.errstate(over="ignore"):
        converted = values.astype(dtype)
    bad = np.argwhere(~np.isfinite(converted))
    if len(bad):
        where = ", ".join(map(str, bad[0]))
        remedy = " or use float64" if dtype == np.float32 and np.isfinite(values).all() else ""
        raise ValueError(f"{problem}{remedy} (the first one that is not finite in {dtype} has index {where}).")
    return converted


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return ||x||^2 of every row, summed in float64, a block of rows at a time."""
    norms = np.empty(len(rows))
    for begin in range(0, len(rows), 1024):
        block = rows[begin : begin + 1024].astype(np.float64, order="C")  # the same order of summation for every layout
        np.einsum("ij,ij->i", block, block, out=norms[begin : begin + 1024])
    return norms


def first_bad_position(rows: NDArray[Any]) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None if all numbers are finite."""
    bad = np.argwhere(~np.isfinite(rows))
    return (int(bad[0, 0]), int(bad[0, 1])) if len(bad) else None


class ComparisonError(ValueError):
    """Rows cannot be compared with those of a product; `row` is the number of the first one, or of its tile."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row

    def __str__(self) -> str:
        return str(self.args[0])


def check_comparable(rows: NDArray[Any], first: int, dtype: np.dtype[Any]) -> None:
    """Raise an error if the native code refused a tile of rows; `first` is its first row, or -1 if it refused none."""
    if first < 0:
        return
    position = first_bad_position(rows[first : first + _LARGEST_TILE])
    if position is None:
        remedy = "scale X or use float64" if dtype == np.float32 else "scale X"
        raise ComparisonError(f"The products with rows of X from {first} on may overflow {dtype}; {remedy}.", first)
    i, j = first + position[0], position[1]
    what = "NaN" if np.isnan(rows[i, j]) else "infinity"
    raise ComparisonError(f"X contains {what} (row {i}, column {j}); only finite numbers can be compared.", i)
