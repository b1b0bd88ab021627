"""What the programs read from fitted models beyond their documented attributes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.cluster import QKMeans
from quickmeans.kernel_approximation import QKNystroem
from quickmeans.kmeans.screen import fill_norms
from quickmeans.neighbors import QKNeighbors


def centers_are_product_rows(model: QKMeans) -> bool:
    """Return whether the model was fitted with ``shortlist=0``."""
    return bool(model._fitted_shortlist == 0)


def is_spherical(model: QKMeans) -> bool:
    """Return whether the model was fitted with ``spherical=True``."""
    return model._frame.spherical


def working_dtype(model: QKMeans) -> np.dtype[Any]:
    """Return the type of the model's arithmetic."""
    return model._frame.dtype


def margin(model: QKMeans) -> float:
    """Return the calibrated share of the error bound that candidates are chosen by."""
    return float(model.reach_)


def assign(
    model: QKMeans, X: Any, *, exact: bool = False
) -> Iterator[tuple[Any, NDArray[np.int32], NDArray[np.floating]]]:
    """Return the rows block by block, with their labels and their squared distances to the centroids."""
    for rows, assignment in model._assigned(model._rows_to_place(X), exact=exact, settle_all=True):
        fill_norms(rows, model._frame, assignment)
        yield rows, assignment.labels, assignment.squared_distances(model._frame)


def kernel(model: QKNystroem) -> str:
    """Return the name of the kernel that the model was fitted with."""
    return str(model._fitted_kernel[0])


def metric(index: QKNeighbors) -> str:
    """Return the metric that the index was fitted with."""
    return str(index._fitted_metric)
