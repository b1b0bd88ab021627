"""Clusters that have been fitted: how new rows are assigned to them."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.kmeans.geometry import NO_DIRECTION, Geometry
from quickmeans.kmeans.memory_pass import difference_squares
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.rows import BlockFunction
from quickmeans.kmeans.screen import Screen
from quickmeans.transform import SparseProduct


def fitted_assigner(
    cluster_centers: NDArray[Any],
    geometry: Geometry,
    product: SparseProduct | None,
    *,
    margin: float,
    shortlist: int | None,
) -> Assigner:
    """The assigner that follows from the fitted attributes of a model; `shortlist` as in `Settings`."""
    if product is not None and shortlist == 0:
        return ProductRows(product, geometry)
    centers = cluster_centers.astype(np.float64) - geometry.mean
    return Screen(centers, geometry, product, margin=margin, shortlist=min(shortlist or 0, len(centers)))


def labels_function(assigner: Assigner, n_threads: int) -> BlockFunction:
    """A function that labels the rows of a block."""
    return partial(_labels, assigner, n_threads)


def _labels(assigner: Assigner, n_threads: int, first: int, rows: NDArray[Any]) -> NDArray[np.int32]:
    assignment = Assignment.empty(len(rows), assigner.geometry.dtype)
    assigner.assign(rows, assignment, n_threads, exact_scores=False)
    if assigner.geometry.spherical and (assignment.norms <= 0).any():
        raise ValueError(NO_DIRECTION.format(first + int(np.argmax(assignment.norms <= 0))))
    return assignment.labels


def squared_distances(
    assigner: Assigner, rows: NDArray[Any], labels: NDArray[np.int32], cluster_centers: NDArray[Any]
) -> NDArray[np.float64]:
    """Squared distances of the rows of a block from their centroids, in float64."""
    centers = cluster_centers.astype(np.float64) - assigner.geometry.mean
    return difference_squares(rows, labels, centers, assigner.geometry)
