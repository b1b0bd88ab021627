"""A product of sparse factors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, INT32, Array, Ints, ints, packed, readable
from quickmeans.threads import instruction_set


class Product:
    """Factors packed for the native code.

    Parameters
    ----------
    factors : sequence of arrays and CSR arrays
        From left to right; CSR without duplicate entries.
    dtype : numpy.dtype
        float32 or float64: the type of all arithmetic and of all results.
    """

    __slots__ = ("dtype", "native", "shape")

    def __init__(self, factors: Sequence[Any], dtype: np.dtype[Any]) -> None:
        self.dtype, self.shape = dtype, (factors[0].shape[0], factors[-1].shape[1])
        make = _native.Product32 if dtype == FLOAT32 else _native.Product64
        self.native = make([_packed_factor(S, dtype) for S in factors], instruction_set())

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        return self.native.isa

    def apply(self, x: Array, n_threads: int, *, transposed: bool = False) -> Array:
        """``x @ V.T`` in C order, or its transpose in C order."""
        shape = (self.shape[0], len(x)) if transposed else (len(x), self.shape[0])
        out = np.empty(shape, self.dtype)
        self.native.apply(readable(x), out.T if transposed else out, n_threads)
        return out

    def apply_one(self, x: Array) -> Array:
        """``V @ x`` for one vector."""
        out = np.empty(self.shape[0], self.dtype)
        self.native.apply_one(readable(x), out)
        return out

    def nearest(
        self, x: Array, m: int, offset: Array, largest_offset: float, n_threads: int
    ) -> tuple[Ints, Array, int]:
        """The m largest scores ``x @ V.T + offset`` of every row: their columns, the scores, and -1 or a bad row.

        Largest first, ties to the lower column. A row is bad if it has a NaN, an infinity, or numbers so large that
        products may overflow; the number is that of the first row of the tile of up to 64 rows that has one.
        """
        labels, scores = np.empty((len(x), m), np.int64), np.empty((len(x), m), self.dtype)
        biased = packed(offset, self.dtype)
        return labels, scores, self.native.nearest(readable(x), biased, largest_offset, labels, scores, n_threads)

    def gaussian(
        self, x: Array, mean: Array, offset: Array, largest_offset: float, gamma: float, n_threads: int
    ) -> tuple[Array, int]:
        """``exp(-gamma |x - mean - v_k|^2)`` for offsets -|v_k|^2 / 2, and -1 or a bad row as in :meth:`nearest`."""
        out = np.empty((len(x), self.shape[0]), self.dtype)
        mean, offset = packed(mean, self.dtype), packed(offset, self.dtype)
        return out, self.native.gaussian(readable(x), mean, offset, largest_offset, gamma, out, n_threads)


def _packed_factor(S: Any, dtype: np.dtype[Any]) -> tuple[int, Array, Array, Array] | Array:
    if isinstance(S, np.ndarray):
        return packed(S, dtype)
    return S.shape[1], ints(S.indptr), packed(S.indices, INT32), packed(S.data, dtype)
