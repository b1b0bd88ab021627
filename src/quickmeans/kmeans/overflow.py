"""Centroids so large that squared distances would overflow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.blocks import block_rows
from quickmeans.kmeans.geometry import Geometry
from quickmeans.transform import SparseProduct


@np.errstate(all="ignore")
def refuse_overflow(
    geometry: Geometry, centers: NDArray[np.floating[Any]] | None = None, product: SparseProduct | None = None
) -> None:
    """Refuse centroids, and rows of a product, whose squares overflow where they are compared with rows near the mean.

    Parameters
    ----------
    geometry : Geometry
        The mean and the dtype of the comparison.
    centers : array of shape (K, D), default=None
        Centroids, not centered.
    product : SparseProduct, default=None
        A product whose rows are centered centroids.
    """
    largest = 0.0 if product is None else float(product.row_norms().max())
    if centers is not None:
        step = block_rows(centers.shape[1])
        for begin in range(0, len(centers), step):
            centered = centers[begin : begin + step] - geometry.mean
            largest = np.maximum(largest, np.linalg.norm(centered, axis=1).max())  # also if it is NaN
    square = np.square(np.linalg.norm(geometry.mean) + largest)
    if not np.isfinite(square.astype(geometry.dtype)):
        raise ValueError(f"the squared norms of its mean and centroids must be finite in {geometry.dtype}.")
