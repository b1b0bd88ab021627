r"""Numbers that tell how well rows fall into clusters, from the distances to their nearest two centroids.

- simplified silhouette: the mean of :math:`1 - d_1 / d_2`, with the distances of a row to its nearest two centroids;
- Calinski-Harabasz: :math:`\frac{B / (K - 1)}{W / (N - K)}`, with B and W the scatter between and within clusters;
- Davies-Bouldin: the mean over clusters of :math:`\max_j (s_k + s_j) / \|u_k - u_j\|`, with :math:`s_k` the mean
  distance of the rows of a cluster from their centroid.
"""

import numpy as np
from numpy.typing import NDArray

_BLOCK_ENTRIES = 1 << 22  # of a block of distances between centroids


def simplified_silhouette(distances: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Of rows with these distances to their nearest two centroids; a row that has both at zero counts as zero."""
    own, other = distances[:, 0], distances[:, 1]
    return float(np.average(np.where(other > 0, 1 - own / np.where(other > 0, other, 1), 0), weights=weights))


def calinski_harabasz(
    centers: NDArray[np.float64], sizes: NDArray[np.float64], mean: NDArray[np.float64], inertia: float
) -> float:
    """Of clusters with these centroids and weights, the mean of all rows, and the objective."""
    K, total = int((sizes > 0).sum()), float(sizes.sum())
    between = float(sizes @ ((centers - mean) ** 2).sum(axis=1))
    if K < 2 or total <= K:
        return float("nan")
    return float("inf") if inertia <= 0 else between / (K - 1) / (inertia / (total - K))


def davies_bouldin(
    centers: NDArray[np.float64],
    labels: NDArray[np.int32],
    distances: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> float:
    """Of clusters of rows with these labels and distances from their centroids; clusters without rows are left out."""
    sizes = np.bincount(labels, weights, len(centers))
    filled = np.flatnonzero(sizes > 0)
    if len(filled) < 2:
        return float("nan")
    spread = np.bincount(labels, weights * distances, len(centers))[filled] / sizes[filled]
    centers = centers[filled]
    squares = (centers**2).sum(axis=1)
    worst, step = np.empty(len(filled)), max(_BLOCK_ENTRIES // len(filled), 1)
    for begin in range(0, len(filled), step):
        part = slice(begin, begin + step)
        apart = np.sqrt(np.maximum(squares[part, None] + squares - 2 * (centers[part] @ centers.T), 0))
        own = np.arange(len(apart)), np.arange(begin, begin + len(apart))
        apart[own] = np.inf
        with np.errstate(divide="ignore"):
            worst[part] = ((spread[part, None] + spread) / apart).max(axis=1)
    return float(worst.mean())
