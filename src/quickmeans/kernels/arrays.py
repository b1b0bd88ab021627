"""Arrays as native code reads them: layout, type and byte order."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
_ArrayOrNone = TypeVar("_ArrayOrNone", Array, Array | None)

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT32, INT64, UINT8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)


def readable(rows: Array) -> Array:
    """The rows themselves, or a copy of foreign byte order, of long doubles, or of strides that are no whole items."""
    if rows.flags.c_contiguous and rows.dtype.isnative and rows.dtype.itemsize <= 8:
        return rows
    if not rows.dtype.isnative or rows.dtype.itemsize > 8:
        return rows.astype(rows.dtype.newbyteorder("=") if rows.dtype.itemsize <= 8 else np.float64)
    return rows.copy() if any(stride % rows.itemsize for stride in rows.strides) else rows


def packed(values: Array, dtype: np.dtype[Any]) -> Array:
    """The values in C order, aligned, of this type."""
    if values.dtype is dtype and values.flags.carray:  # the usual case, in a tenth of a microsecond
        return values
    array = np.ascontiguousarray(values, dtype)
    return array if array.flags.aligned else array.copy()


def floats(values: _ArrayOrNone) -> _ArrayOrNone:
    """The same in float64, or None."""
    return values if values is None else packed(values, FLOAT64)


def ints(values: _ArrayOrNone) -> _ArrayOrNone:
    """The same in int64, or None."""
    return values if values is None else packed(values, INT64)


def writable(array: Array, name: str, dtype: np.dtype[Any] = FLOAT64) -> Array:
    """The array itself, which native code is to change."""
    if array.dtype == dtype and array.flags.carray:
        return array
    raise ValueError(f"{name} must be a writeable, aligned array of {dtype} in C order.")
