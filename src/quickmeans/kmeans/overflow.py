"""Centroids so large that squared distances would overflow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.points import Frame, rows_at_a_time
from quickmeans.transform import SparseProduct


@np.errstate(all="ignore")
def refuse_overflow(
    frame: Frame, centers: NDArray[np.floating[Any]] | None = None, product: SparseProduct | None = None
) -> None:
    """Refuse centroids, and rows of a product, whose squares overflow where they are compared with rows near the mean.

    Parameters
    ----------
    frame : Frame
        The mean and the type of the comparison.
    centers : array of shape (K, D), optional
        About zero, not about the mean.
    product : SparseProduct, optional
        Its rows are about the mean.
    """
    largest = 0.0 if product is None else float(product.row_norms().max())
    if centers is not None:
        step = rows_at_a_time(centers.shape[1])
        for begin in range(0, len(centers), step):
            about_mean = centers[begin : begin + step] - frame.mean
            largest = np.maximum(largest, np.linalg.norm(about_mean, axis=1).max())  # also if it is NaN
    square = np.square(np.linalg.norm(frame.mean) + largest)
    if not np.isfinite(square.astype(frame.dtype)):
        raise ValueError(f"the squared norms of its mean and centroids must be finite in {frame.dtype}.")
