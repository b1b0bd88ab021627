"""Distances between rows and centroids."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import NotComparableError
from quickmeans.kmeans.blocks import first_not_finite
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.rows import row_lengths


class CenterDistances:
    """The distances |x - u_k|, or |x / |x| - u_k|, of rows from all centroids.

    The arithmetic is float32 where rows and centroids are, and numbers are of ordinary size; else it is float64. Small
    distances have full accuracy: they come from differences; see native/kernels/distances.hpp for a bound.

    Parameters
    ----------
    centers : array of shape (n_clusters, n_features)
        The u_k, not centered.
    geometry : Geometry
        Its dtype is float32 only if numbers are of ordinary size.
    dtype : numpy.dtype
        That of the results. It is float32 only for rows of float32.
    """

    def __init__(self, centers: NDArray[Any], geometry: Geometry, dtype: Any) -> None:
        self.centers, self.geometry, self.dtype = centers, geometry, np.dtype(dtype)
        single = {self.dtype, centers.dtype, geometry.dtype} == {np.dtype(np.float32)}
        self._narrow = single and not geometry.spherical

    def __call__(self, n_threads: int, first: int, block: NDArray[Any]) -> NDArray[Any]:
        """The distances of a block whose first row has this number; a ValueError if rows are not finite or zero."""
        if self._narrow:
            result, bad = self._single.compute(block, self.dtype, n_threads)
            if bad < 0:
                return result
        result, bad = self._double.compute(block, self.dtype, n_threads)
        if bad < 0:
            return result
        if self.geometry.spherical and first_not_finite(block) is None:
            row_lengths(block, first)  # refuses zero rows by their number
        raise NotComparableError(block.dtype, bad)

    @cached_property
    def _single(self) -> kernels.Distances:
        return kernels.Distances(self.centers, self.geometry.mean, np.dtype(np.float32))

    @cached_property
    def _double(self) -> kernels.Distances:
        mean, spherical = self.geometry.mean, self.geometry.spherical
        return kernels.Distances(self.centers, mean, np.dtype(np.float64), spherical=spherical)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs; native objects are made anew there."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_single", "_double")}
