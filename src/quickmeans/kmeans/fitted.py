"""Clusters that have been fitted: how new rows are assigned to them, and what a file holds of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.blocks import block_rows
from quickmeans.kmeans.distances import CenterDistances
from quickmeans.kmeans.functions import Distances, Labels, Squares
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.groups import Groups
from quickmeans.kmeans.inspection import LabelsAndDistances, NearestCentroids
from quickmeans.kmeans.memory_pass import difference_squares
from quickmeans.kmeans.overflow import refuse_overflow
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.screen import Screen
from quickmeans.state import UNSIGNED, Facts, State, narrow
from quickmeans.transform import SparseProduct

_MORE_SECONDS = 8  # candidates for a second centroid, beside those that the label needs


@dataclass(frozen=True)
class FittedClusters:
    """The result of a fit: what `predict` needs, and how the fit went.

    Attributes
    ----------
    assigner : Assigner
    cluster_centers : array of shape (n_clusters, n_features)
        The centroids, not centered, in the dtype in which they are returned.
    labels : array or None
        None if they were not stored.
    history, inertia, n_candidates, n_iter
        As in :class:`quickmeans.QKMeans`.
    """

    assigner: Assigner
    cluster_centers: NDArray[Any]
    labels: Any
    history: NDArray[np.float64]
    inertia: float
    n_candidates: float
    n_iter: int

    @property
    def centers(self) -> NDArray[np.float64]:
        """The centered centroids in float64."""
        return self.cluster_centers.astype(np.float64) - self.assigner.geometry.mean

    def labels_function(self, n_threads: int, *, exact: bool = False) -> Labels:
        """A function that labels rows."""
        return Labels(self.assigner.certain if exact else self.assigner, n_threads)

    def squares_function(self, n_threads: int) -> Squares:
        """A function that computes the squared distances of rows from their centroids, in float64."""
        return Squares(self.labels_function(n_threads), self.centers)

    def assign_function(
        self, n_threads: int, *, exact: bool = False, second: bool = False
    ) -> Callable[[int, NDArray[Any]], tuple[NDArray[Any], ...]]:
        """A function that returns a block with its labels and squared distances in float64.

        With `second` the nearest other centroids, and the squared distances from them, follow.
        """
        label, centers, geometry = self.labels_function(n_threads, exact=exact), self.centers, self.assigner.geometry
        if second and len(centers) < 2:
            raise ValueError("A second nearest centroid needs two clusters or more, but the model has one.")

        def assign(first: int, block: NDArray[Any]) -> tuple[NDArray[Any], ...]:
            labels = label(first, block)
            squares = difference_squares(block, labels, centers, geometry, n_threads)
            if not second:
                return block, labels, squares
            others = self._second(block, labels, n_threads)
            return block, labels, squares, others, difference_squares(block, others, centers, geometry, n_threads)

        return assign

    def _second(self, block: NDArray[Any], labels: NDArray[np.int32], n_threads: int) -> NDArray[np.int32]:
        """The nearest centroids but those of the labels."""
        n_listed = min(len(self.cluster_centers), 2 + _MORE_SECONDS + math.ceil(self.n_candidates))
        found, scores = self.assigner.nearest(block, 2, n_listed, n_threads)
        scores = np.where(found == labels[:, None], -np.inf, scores)
        return np.take_along_axis(found, scores.argmax(axis=1)[:, None], axis=1)[:, 0].astype(np.int32)

    def distances_function(self, dtype: Any, n_threads: int) -> Distances:
        """A function that computes the distances of rows from all centroids."""
        return Distances(CenterDistances(self.cluster_centers, self.assigner.geometry, dtype), n_threads)

    def nearest_function(self, m: int, n_threads: int) -> NearestCentroids:
        """A function that finds the m nearest centroids of rows by comparing all."""
        assigner = self.assigner
        if assigner.centers_are_means and assigner.product is not None:
            assigner = screen_of(self.cluster_centers, assigner.geometry, None, margin=0.0, shortlist=None)
        return NearestCentroids(assigner, self.centers, m, n_threads)

    def labels_and_distances_function(self, n_threads: int, *, exact: bool = False) -> LabelsAndDistances:
        """A function that labels rows, with their distances from their centroids."""
        return LabelsAndDistances(self.labels_function(n_threads, exact=exact), self.centers)

    def to_state(self, *, labels: bool) -> State:
        """What a file holds; `labels` says whether these are stored."""
        assigner, geometry = self.assigner, self.assigner.geometry
        listed = "auto" if assigner.centers_are_means and not assigner.shortlist else assigner.shortlist
        facts: Facts = {
            "shortlist": listed,
            "spherical": geometry.spherical,
            "working_dtype": geometry.dtype.name,
            "centers_dtype": self.cluster_centers.dtype.name,
            "inertia": float(self.inertia),
            "margin": float(assigner.margin),
            "n_candidates": float(self.n_candidates),
            "n_iter": int(self.n_iter),
            "n_features_in": len(geometry.mean),
        }
        state = State("QKMeans", facts, {"mean": geometry.mean, "objective_history": self.history})
        state.add_product(assigner.product)
        if (groups := assigner.groups) is not None:
            state.facts["group_reach"] = float(groups.reach)
            state.tensors["groups"] = narrow(groups.labels, groups.count - 1)
        if labels:
            state.tensors["labels"] = narrow(self.labels, len(self.cluster_centers) - 1)
        if assigner.centers_are_means or assigner.product is None or not state.affords(assigner.product):
            state.tensors["centers"] = self.cluster_centers
        return state

    @classmethod
    @np.errstate(all="ignore")  # numbers that overflow are refused
    def from_state(cls, state: State) -> "FittedClusters":
        """The clusters that a file holds; a ValueError says what is wrong with it."""
        mean = state.tensor("mean", 1, ("float64",))
        D = state.number("n_features_in", int, 1)
        if len(mean) != D:
            raise ValueError(f"n_features_in must be the length of the mean, {len(mean)}, got {D}.")
        geometry = Geometry(mean, state.dtype("working_dtype"), state.flag("spherical"))
        product, shortlist = state.product(D, geometry.dtype), _shortlist(state, geometry)
        rows = ProductRows(product, geometry) if product is not None and shortlist == 0 else None
        centers = _centers(state, rows, geometry)
        if product is not None and product.shape != centers.shape:
            raise ValueError(f"its product must have shape {centers.shape}, got {product.shape}.")
        refuse_overflow(geometry, centers, product if "centers" in state.tensors else None)
        margin = state.number("margin" if "margin" in state.facts else "reach", float, 0.0, 1.0)
        assigner: Assigner = rows or screen_of(
            centers, geometry, product, margin=margin, shortlist=shortlist, groups=_groups(state, product, shortlist)
        )
        history = state.tensor("objective_history", 1, ("float64",))
        inertia = state.number("inertia", float, 0.0)
        n_candidates = state.number("n_candidates", float, 0.0, float(len(centers)))
        result = cls(
            assigner, centers, _labels_in(state, len(centers)), history, inertia, n_candidates,
            state.number("n_iter", int, 0),
        )  # fmt: skip
        state.finish()
        return result


def screen_of(
    cluster_centers: NDArray[Any],
    geometry: Geometry,
    product: SparseProduct | None,
    *,
    margin: float,
    shortlist: int | None,
    groups: Groups | None = None,
) -> Screen:
    """The screen of centroids that are not centered; `shortlist` as in `Settings`."""
    centers = cluster_centers.astype(np.float64) - geometry.mean
    listed = min(shortlist or 0, len(centers))
    return Screen(centers, geometry, product, margin=margin, shortlist=listed, groups=groups)


def _shortlist(state: State, geometry: Geometry) -> int | None:
    if state.facts.get("shortlist") == "auto":
        return None
    return state.number("shortlist", int, 1 if geometry.spherical else 0)


def _groups(state: State, product: SparseProduct | None, shortlist: int | None) -> Groups | None:
    if "groups" not in state.tensors:
        return None
    if product is None or len(product.factors) != 2 or shortlist is not None:
        raise ValueError("groups must come with a product of two factors, and without a shortlist.")
    labels, n_clusters = state.tensor("groups", 1, UNSIGNED), product.shape[0]
    if labels.shape != (n_clusters,) or (labels >= n_clusters).any():
        raise ValueError(f"groups must be {n_clusters} numbers below {n_clusters}.")
    return Groups(labels.astype(np.int32), state.number("group_reach", float, 0.0))


def _labels_in(state: State, n_clusters: int) -> NDArray[np.int32] | None:
    if "labels" not in state.tensors:
        return None
    labels = state.tensor("labels", 1, UNSIGNED)
    if (labels >= n_clusters).any():
        raise ValueError(f"labels must be below {n_clusters}.")
    return labels.astype(np.int32)


def _centers(state: State, rows: ProductRows | None, geometry: Geometry) -> NDArray[Any]:
    """The centroids that are stored, or else the rows of the product plus the mean."""
    dtype = state.dtype("centers_dtype")
    if "centers" in state.tensors or rows is None:
        centers = state.tensor("centers", 2, (dtype.name,))
        if 0 in centers.shape or centers.shape[1] != len(geometry.mean):
            raise ValueError(f"centers must have at least one row, and one column per feature, got {centers.shape}.")
        return centers
    centers = np.empty(rows.product.shape, dtype)
    step = block_rows(centers.shape[1])
    for begin in range(0, len(centers), step):
        centers[begin : begin + step] = rows.centers[begin : begin + step] + geometry.mean
    return centers
