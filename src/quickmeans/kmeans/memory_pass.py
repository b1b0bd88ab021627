"""A pass over rows in memory: rows whose label is proven are skipped, sums are corrected where labels change."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.kmeans.bounds import Bounds
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.passes import CANCELLED, LastPass
from quickmeans.kmeans.refill import Move, Pool, farthest, largest_pool, refill
from quickmeans.kmeans.rows import Index, Points, Weights, naming_rows
from quickmeans.kmeans.update import ClusterSums

# With fewer changes than this share of the rows, sums are corrected and not computed anew: a change costs two additions
# of a row and the gathering of it.
CORRECT_BELOW = 0.3


class MemoryPass:
    """A :class:`quickmeans.kmeans.passes.Pass` that keeps labels, norms and bounds of all rows.

    `correct` says whether single rows can be read cheaply, so that sums can be corrected.
    """

    def __init__(self, points: Points, n_clusters: int, *, correct: bool = True) -> None:
        self.points, self.correct = points, correct
        self.sums = cluster_sums(points, n_clusters)
        self.assignment = Assignment.empty(len(points), points.geometry.dtype)
        self.bounds = Bounds(len(points), points.geometry)
        self.centers: NDArray[Any] = np.empty(0)
        self._summed_labels: NDArray[np.int32] | None = None  # those that the sums are of; None while they are unsound

    def assign(self, assigner: Assigner, center_shift: NDArray[np.float64] | None = None) -> int:
        index = None
        if center_shift is not None:
            self.bounds.move(self.assignment.labels, center_shift)
            index = self.bounds.in_doubt()
        self.centers = assigner.centers
        self._assign(assigner, index)
        if assigner.gives_bounds:
            self.bounds.renew(self.assignment, index)
        return self._update()

    def _assign(self, assigner: Assigner, index: Index | None) -> None:
        total = self.assignment
        total.n_listed = total.n_settled = 0
        for place, block in self.points.rows.blocks():
            part = total.part(place)
            inside = None if index is None else index_within(index, place)
            with naming_rows(self.points.rows, place.start, block):
                assigner.assign(
                    block, part, self.points.n_threads, index=inside, projected=assigner.projected, exact_scores=False
                )
            total.n_listed += part.n_listed
            total.n_settled += part.n_settled
        total.norms_known = assigner.gives_bounds or total.norms_known

    def _update(self) -> int:
        """Bring the sums to the labels; how many labels have changed."""
        labels, old = self.assignment.labels, self._summed_labels
        changed = np.arange(len(labels)) if old is None else np.flatnonzero(old != labels)
        self._summed_labels = None
        if not len(changed) and old is not None:
            self._summed_labels = old
            return 0
        few = old is not None and len(changed) <= CORRECT_BELOW * len(labels) and self.correct
        if not (few and old is not None and self._exchange(changed, old)):
            compute_sums(self.sums, self.points, labels)
        self._summed_labels = labels.copy()
        return len(changed)

    def _exchange(self, changed: Index, old: NDArray[np.int32]) -> bool:
        """Correct the sums; False if that has left a cluster with nothing but rounding."""
        before, labels, points = self.sums.weights.copy(), self.assignment.labels, self.points
        for place, block in points.rows.blocks():
            inside = index_within(changed, place)
            rows = inside + place.start
            self.sums.exchange(block, inside, old[rows], labels[rows], *weights_of(points, rows))
        return self.sums.are_sound(before)

    def refill(self) -> list[Move]:
        moves = refill(self.assignment.labels, self.sums.sizes.copy(), self._farthest)
        self.bounds.lower[[row for row, _, _ in moves]] = 0
        if moves:
            self._update()
        return moves

    def _farthest(self, count: int) -> Pool:
        self._know_norms()
        distances, weights = self.assignment.squared_distances(self.points.geometry), self.points.weights
        if weights is not None:
            distances[weights <= 0] = 0
        index = farthest(distances, min(largest_pool(self.points.n_columns), count))
        own = self.centers[self.assignment.labels[index]].astype(np.float64)
        return Pool.of(index, self.points.take(index), own, None if weights is None else weights[index])

    def _know_norms(self) -> None:
        for place, block in () if self.assignment.norms_known else self.points.rows.blocks():
            self.assignment.part(place).fill_norms(block, self.points.geometry)
        self.assignment.norms_known = True

    def undo(self, moves: list[Move]) -> None:
        for row, old, _ in moves:
            self.assignment.labels[row] = old
        self._update()

    def known(self, history: list[float]) -> LastPass | None:
        return None

    def last(self, assigner: Assigner, centers: NDArray[np.float64]) -> LastPass:
        return last_pass(self.points, assigner, centers)


def last_pass(points: Points, assigner: Assigner, centers: NDArray[np.float64]) -> LastPass:
    """Label the rows in memory, and sum up the squared differences; `centers` are centered, in float64."""
    labels, n_settled = np.empty(len(points), np.int32), 0
    for place, block in points.rows.blocks():
        with naming_rows(points.rows, place.start, block):
            labels[place], count = assigner.label(block, points.n_threads, place.start)
        n_settled += count
    return labelled(points, labels, centers, n_settled / len(points))


def labelled(points: Points, labels: NDArray[np.int32], centers: NDArray[np.float64], n_candidates: float) -> LastPass:
    """The results of a pass that gave these labels."""
    objective, weights = _summed_squares(points, centers, labels), points.weights
    sizes = np.bincount(labels if weights is None else labels[weights > 0], minlength=len(centers))
    totals = sizes if weights is None else np.bincount(labels, weights, len(centers))
    filled = int(np.count_nonzero(sizes))
    return LastPass(labels, objective, n_candidates, totals.astype(np.float64), filled)


def cluster_sums(points: Points, n_clusters: int) -> ClusterSums:
    """Sums of no rows yet."""
    return ClusterSums((n_clusters, points.n_columns), points.geometry, points.scatter, points.n_threads)


def compute_sums(sums: ClusterSums, points: Points, labels: NDArray[np.int32]) -> None:
    """The sums of all rows by these labels."""
    sums.clear()
    for place, block in points.rows.blocks():
        sums.add(block, labels[place], *weights_of(points, place))


def weights_of(points: Points, place: slice | Index) -> tuple[Weights, Weights]:
    """The weights and sum weights of some rows."""
    weights, sum_weights = (None if w is None else w[place] for w in (points.weights, points.sum_weights))
    return weights, sum_weights


def index_within(index: Index, place: slice) -> Index:
    """The part of an ascending index that lies in a block, counted from its first row."""
    begin, end = np.searchsorted(index, (place.start, place.stop))
    return np.asarray(index[begin:end] - place.start, np.int64)


def final_objective(
    sums: ClusterSums, points: Points, centers: NDArray[np.float64], labels: NDArray[np.int32]
) -> float:
    """The objective from the sums; where it is a tiny share of the scatter, from the differences themselves."""
    objective = sums.objective(centers)
    return objective if objective >= CANCELLED * points.scatter else _summed_squares(points, centers, labels)


def _summed_squares(points: Points, centers: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """The weighted squared distances of all rows from their centroids, from the differences themselves."""
    total = 0.0
    for place, block in points.rows.blocks():
        squares = difference_squares(block, labels[place], centers, points.geometry, points.n_threads)
        total += float(squares.sum() if points.weights is None else squares @ points.weights[place])
    return total


def difference_squares(
    block: NDArray[Any], labels: NDArray[np.int32], centers: NDArray[np.float64], geometry: Geometry, n_threads: int
) -> NDArray[np.float64]:
    """|x - m - c|^2 of every row and its centroid, from the differences in float64."""
    shift = None if geometry.spherical else geometry.mean
    return kernels.squared_differences(block, labels, centers, n_threads, shift=shift, spherical=geometry.spherical)
