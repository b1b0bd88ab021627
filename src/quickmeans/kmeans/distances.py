"""All distances between rows and centroids."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.points import Frame, Rows, row_blocks, squared_norms

_ROWS = 1024
_CLOSE = 1e-8  # below this share of the squared norms, a squared distance is computed anew from the difference


def distances(X: Rows, centers: NDArray[np.float64], frame: Frame, dtype: Any) -> NDArray[Any]:
    """|x - m - c_k|, or |x / |x| - c_k|, in float64 until they are stored; small ones to full accuracy."""
    out = np.empty((X.shape[0], len(centers)), dtype)
    norms = np.einsum("kd,kd->k", centers, centers)
    for part, rows in row_blocks(X):
        for begin in range(0, len(rows), _ROWS):
            Y = frame.centred(rows[begin : begin + _ROWS].astype(np.float64))
            sizes = np.einsum("id,id->i", Y, Y)[:, None] + norms
            squares = sizes - 2 * (Y @ centers.T)
            for near in np.array_split(np.argwhere(squares <= _CLOSE * sizes), _ROWS):
                squares[near[:, 0], near[:, 1]] = squared_norms(Y[near[:, 0]] - centers[near[:, 1]])
            first = part.start + begin
            out[first : first + len(Y)] = np.sqrt(squares, out=squares)
    return out
