"""What fitted clusters look like: their nearest rows, sizes, spreads, neighbours and borders, block by block."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.functions import Labels
from quickmeans.kmeans.memory_pass import difference_squares
from quickmeans.kmeans.rows import Weights

BORDER = 0.1  # a row is near the border if its second nearest centroid is at most this share farther than its own
_BLOCK_ENTRIES = 1 << 22  # of a block of distances between centroids


@dataclass(frozen=True)
class NearestCentroids:
    """The m nearest centroids of rows: m distances in ascending order, then m labels; a RowFunction.

    Both are columns of one float64 array, because a RowFunction has one result; float64 holds every label.

    Attributes
    ----------
    assigner : Assigner
        One that compares all centroids.
    centers : array of shape (n_clusters, n_features)
        Centered.
    m : int
    n_threads : int
    """

    assigner: Assigner
    centers: NDArray[np.float64]
    m: int
    n_threads: int

    def __call__(self, first: int, block: NDArray[Any]) -> NDArray[np.float64]:
        labels = self._labels(first, block)
        distances = _distances(block, labels, self.centers, self.assigner, self.n_threads)
        order = np.lexsort((labels, distances))
        return np.hstack([np.take_along_axis(distances, order, 1), np.take_along_axis(labels, order, 1)])

    def _labels(self, first: int, block: NDArray[Any]) -> NDArray[Any]:
        if self.m == 1 or self.assigner.geometry.spherical:
            own = Labels(self.assigner, self.n_threads)(first, block)  # refuses zero rows if only directions count
            if self.m == 1:
                return own[:, None]
        return self.assigner.nearest(block, self.m, self.m, self.n_threads)[0]

    def of_csr(self, rows: kernels.CsrRows) -> None:
        """None: rows must come as blocks."""


@dataclass(frozen=True)
class LabelsAndDistances:
    """The label of every row and its distance from that centroid, as two columns of float64; a RowFunction."""

    labels: Labels
    centers: NDArray[np.float64]

    def __call__(self, first: int, block: NDArray[Any]) -> NDArray[np.float64]:
        labels = self.labels(first, block)[:, None]
        distances = _distances(block, labels, self.centers, self.labels.assigner, self.labels.n_threads)
        return np.hstack([labels, distances])

    def of_csr(self, rows: kernels.CsrRows) -> None:
        """None: rows must come as blocks."""


def _distances(
    block: NDArray[Any], labels: NDArray[Any], centers: NDArray[np.float64], assigner: Assigner, n_threads: int
) -> NDArray[np.float64]:
    """The distances of every row from the centroids of its labels, from differences in float64."""
    columns = [difference_squares(block, column, centers, assigner.geometry, n_threads) for column in labels.T]
    return np.sqrt(np.column_stack(columns))


class Examples(NamedTuple):
    """The rows nearest to each centroid, the nearest first.

    Attributes
    ----------
    indices : array of int64, shape (n_clusters, per_cluster)
        The numbers of the rows; -1 where a cluster has fewer.
    distances : array of float64, shape (n_clusters, per_cluster)
        Their distances from the centroid; infinity where a cluster has fewer.
    """

    indices: NDArray[np.int64]
    distances: NDArray[np.float64]


def nearest_rows(results: Iterable[NDArray[np.float64]], n_clusters: int, per_cluster: int) -> Examples:
    """The examples of blocks of :class:`LabelsAndDistances`; of equal distances, the first row."""
    labels, distances, indices = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
    first = 0
    for block in results:
        labels = np.concatenate([labels, block[:, 0].astype(np.int64)])
        distances = np.concatenate([distances, block[:, 1]])
        indices = np.concatenate([indices, np.arange(first, first + len(block))])
        first += len(block)
        order = np.lexsort((indices, distances, labels))
        kept = order[_ranks(labels[order]) < per_cluster]
        labels, distances, indices = labels[kept], distances[kept], indices[kept]
    found = Examples(
        np.full((n_clusters, per_cluster), -1, np.int64), np.full((n_clusters, per_cluster), np.inf, np.float64)
    )
    place = labels, _ranks(labels)
    found.indices[place], found.distances[place] = indices, distances
    return found


def _ranks(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many equal labels stand before each; the labels are sorted."""
    return np.arange(len(labels)) - np.searchsorted(labels, labels)


@dataclass(frozen=True)
class Summary:
    """What every cluster is like; each attribute has one number per cluster. `str` makes a table of it.

    Attributes
    ----------
    size : array of float64
        The weight of its rows.
    spread : array of float64
        The root of the mean squared distance of its rows from their centroid; NaN if it has none.
    nearest : array of int64
        The cluster whose centroid is nearest; -1 if there is only one cluster.
    nearest_distance : array of float64
        How far away that centroid is; infinity if there is only one cluster.
    border : array of float64
        The share of its rows whose second nearest centroid is at most 10 % farther than their own; NaN without rows.
    """

    size: NDArray[np.float64]
    spread: NDArray[np.float64]
    nearest: NDArray[np.int64]
    nearest_distance: NDArray[np.float64]
    border: NDArray[np.float64]

    def __str__(self) -> str:
        lines = ["cluster        size      spread  nearest    distance  border"]
        columns = zip(self.size, self.spread, self.nearest, self.nearest_distance, self.border, strict=True)
        lines += [
            f"{k:7d}  {size:10.6g}  {spread:10.5g}  {near:7d}  {far:10.5g}  {border:6.1%}"
            for k, (size, spread, near, far, border) in enumerate(columns)
        ]
        return "\n".join(lines)


@dataclass
class BorderSums:
    """Sums over rows, by cluster, of blocks of :class:`NearestCentroids` with the nearest two (or one)."""

    n_clusters: int
    sizes: NDArray[np.float64] = field(init=False)
    squares: NDArray[np.float64] = field(init=False)
    near: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes, self.squares, self.near = (np.zeros(self.n_clusters) for _ in range(3))

    def add(self, block: NDArray[np.float64], weights: Weights) -> None:
        """Add the rows of a block."""
        m = block.shape[1] // 2
        labels, own = block[:, m].astype(np.int64), block[:, 0]
        w = np.ones(len(block)) if weights is None else weights
        is_near = block[:, 1] <= (1 + BORDER) * own if m > 1 else np.zeros(len(block), np.bool_)
        for total, values in ((self.sizes, w), (self.squares, w * own**2), (self.near, w * is_near)):
            total += np.bincount(labels, values, self.n_clusters)

    def summary(self, centers: NDArray[np.float64]) -> Summary:
        """The summary of the clusters with these centroids."""
        nearest, distance = nearest_centers(centers)
        filled = np.where(self.sizes > 0, self.sizes, np.nan)
        return Summary(self.sizes, np.sqrt(self.squares / filled), nearest, distance, self.near / filled)


def nearest_centers(centers: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest other centroid of every centroid and its distance; -1 and infinity if there is none."""
    K, squares = len(centers), np.einsum("kd,kd->k", centers, centers)
    nearest, distance = np.full(K, -1, np.int64), np.full(K, np.inf)
    step = max(_BLOCK_ENTRIES // K, 1)
    for begin in range(0, K if K > 1 else 0, step):
        part = centers[begin : begin + step]
        apart = squares[begin : begin + step, None] + squares - 2 * (part @ centers.T)
        apart[np.arange(len(part)), np.arange(begin, begin + len(part))] = np.inf
        nearest[begin : begin + step] = found = apart.argmin(axis=1)
        distance[begin : begin + step] = np.linalg.norm(part - centers[found], axis=1)
    return nearest, distance
