"""The k-means objective, computed in the same way for all methods."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2048  # rows


def objective(X: NDArray[Any], centers: NDArray[Any], labels: NDArray[Any] | None = None) -> float:
    """Return the sum of squared distances to the centroids of the labels, or to the nearest ones, in float64."""
    centers, total = centers.astype(np.float64), 0.0
    norms = np.einsum("kd,kd->k", centers, centers)
    for begin in range(0, len(X), _BLOCK):
        rows = X[begin : begin + _BLOCK].astype(np.float64)
        if labels is None:
            nearest = (norms - 2 * (rows @ centers.T)).min(axis=1)
            total += float(np.einsum("id,id->", rows, rows) + nearest.sum())
        else:
            total += float(((rows - centers[labels[begin : begin + _BLOCK]]) ** 2).sum())
    return total
