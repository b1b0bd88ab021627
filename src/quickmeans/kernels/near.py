"""The nearest of many centers for rows that come in chunks."""

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, INT32, Array, packed, writable
from quickmeans.threads import instruction_set


class NearCenters:
    """Centers and their neighbours, bound once for many chunks; native/near_centers.hpp says how rows are compared.

    Parameters
    ----------
    centers : array of float32, shape (K, D)
        They must not be changed afterwards.
    n_threads : int
    """

    __slots__ = ("_native",)

    def __init__(self, centers: Array, n_threads: int) -> None:
        self._native = _native.NearCenters(packed(centers, FLOAT32), n_threads, instruction_set())

    def assign(
        self,
        rows: Array,
        labels: NDArray[np.int32],
        best: Array,
        norms: Array,
        *,
        far: float,
        turn: int,
        n_threads: int,
    ) -> None:
        """Find the nearest centers of rows in float32, about the origin of the centers.

        Parameters
        ----------
        rows : array of float32, shape (n_rows, D)
        labels : array of int32, shape (n_rows,)
            Those of the pass before, or -1; changed in place.
        best, norms : arrays of float32, shape (n_rows,)
            Get <x, c> - |c|^2 / 2 for the nearest center c, and |x|^2.
        far : float
            Rows at a larger squared distance from their center are looked at more widely, a quarter of them per turn.
        turn : int
        n_threads : int
        """
        own, scores, squares = (
            writable(labels, "labels", INT32),
            writable(best, "best", FLOAT32),
            writable(norms, "norms", FLOAT32),
        )
        self._native.assign(packed(rows, FLOAT32), own, scores, squares, far, turn % 4, n_threads)
