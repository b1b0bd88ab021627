"""Distances of rows from centers."""

from typing import Any

import numpy as np

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, FLOAT64, INT32, INT64, Array, Floats, floats, packed, readable
from quickmeans.threads import instruction_set


class Distances:
    """Centers packed for the distances of rows from all of them.

    Parameters
    ----------
    centers : array of shape (n_centers, n_features)
    mean : array of shape (n_features,)
        What rows and centers are taken about, so that few digits are lost to cancellation; not used if `spherical`.
    dtype : numpy.dtype
        float32 or float64: the type of all arithmetic, which must hold the centers exactly.
    spherical : bool
        Whether rows are divided by their lengths.
    """

    __slots__ = ("dtype", "n_centers", "native")

    def __init__(self, centers: Array, mean: Floats, dtype: np.dtype[Any], *, spherical: bool = False) -> None:
        self.dtype, self.n_centers = dtype, len(centers)
        make = _native.Distances32 if dtype == FLOAT32 else _native.Distances64
        self.native = make(packed(centers, dtype), floats(mean), spherical, instruction_set())

    def compute(self, x: Array, dtype: np.dtype[Any], n_threads: int) -> tuple[Array, int]:
        """The distances in `dtype`, float32 or that of the arithmetic, and -1 or a bad row.

        A row is bad if it has a NaN, an infinity, numbers whose squares overflow, or, if spherical, only zeros. The
        number is that of the first row of a range of rows that has one.
        """
        out = np.empty((len(x), self.n_centers), dtype)
        return out, self.native.compute(readable(x), out, n_threads)


def squared_differences(
    x: Array,
    labels: Array,
    centers: Floats,
    n_threads: int,
    *,
    shift: Floats | None = None,
    spherical: bool = False,
) -> Floats:
    """``|x_i - shift - centers[labels[i]]|^2`` of every row, in float64 from the differences.

    None stands for a shift of zero. With `spherical`, rows are divided by their lengths, which must not be zero. A
    label that names no center is a ValueError.
    """
    out = np.empty(len(x), FLOAT64)
    named = packed(labels, INT32 if labels.dtype == INT32 else INT64)
    _native.squared_differences(
        readable(x), named, floats(centers), floats(shift), spherical, out, n_threads, instruction_set()
    )
    return out
