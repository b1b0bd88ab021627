"""Distances between rows and centroids."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.geometry import Geometry, squared_norms

_ROWS = 1024  # of a block: its products with some hundred centroids stay in the cache
_CLOSE = 1e-8  # below this share of the squared norms, a squared distance is computed anew from the difference


def distances(rows: NDArray[Any], centers: NDArray[np.float64], geometry: Geometry, dtype: Any) -> NDArray[Any]:
    """|x - m - c_k|, or |x / |x| - c_k|, in float64 until they are stored; small ones to full accuracy."""
    out = np.empty((len(rows), len(centers)), dtype)
    norms = squared_norms(centers)
    for begin in range(0, len(rows), _ROWS):
        Y = geometry.centered(rows[begin : begin + _ROWS].astype(np.float64))
        sizes = squared_norms(Y)[:, None] + norms
        squares = sizes - 2 * (Y @ centers.T)
        for near in np.array_split(np.argwhere(squares <= _CLOSE * sizes), _ROWS):
            squares[near[:, 0], near[:, 1]] = squared_norms(Y[near[:, 0]] - centers[near[:, 1]])
        out[begin : begin + len(Y)] = np.sqrt(squares, out=squares)
    return out
