"""Clusters whose sizes stay within bounds: rows go to near clusters with room, and centroids to their means, in turn.

For given centroids the labels of least cost within the bounds are a flow of least cost (``native/balance.hpp``) among
the nearest centroids of every row. Rows of different weights cannot be shared out evenly in general: for them the
cheapest moves that fit are made one after the other (:class:`quickmeans.kmeans.packing.Packing`).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kernels import Balanced
from quickmeans.kmeans.balanced_swaps import swapped
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.lloyd import Clustering, Iterate, Observer, screen_to_keep, stopping_at_interrupt
from quickmeans.kmeans.memory_pass import cluster_sums, compute_sums, labelled
from quickmeans.kmeans.packing import Packing
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.sizes import Sizes

_CANDIDATES = 16  # nearest centroids that a row may go to; more where they do not suffice
_MORE, _MOST_MORE = 8, 128  # more of them for the rows of clusters that are stuck, twice as many every time
_WORTH = 1e-4  # iterations end when one lowers the objective by a smaller share
_MOST_ITERATIONS = 20
_NEAR = 5e-3  # of the objective without bounds: so near to it there is nothing to search for
_ROUNDS, _SETTLE = 6, 4  # rounds of swaps, and iterations after each
_SWAPPED = 8  # at most one centroid in so many is swapped in a round
_ATTEMPTS = 12  # to share out different weights, each with more candidates
_ROUNDING = 1e-9

Lists = tuple[NDArray[np.int32], NDArray[np.float32]]


def balanced(
    points: Points,
    found: Clustering,
    sizes: Sizes,
    choose: ScreenChooser,
    settings: Settings,
    observe: Observer | None,
) -> Clustering:
    """The clustering with labels and centroids changed so that all sizes are within their bounds."""
    iterate = found.iterate
    balance = Balance(points, sizes, len(iterate.centers))
    state = balance.started(iterate.centers, np.asarray(found.labels))
    with stopping_at_interrupt(iterate):
        if not iterate.interrupted:
            state = balance.iterated(state, min(settings.max_iter, _MOST_ITERATIONS), found.objective)
            if settings.effort.passes:
                state = balance.searched(state, found.objective)
    iterate.centers = state.centers
    iterate.history += balance.history
    iterate.n_iter += len(balance.history) // 2
    if observe is not None:
        observe(iterate.n_iter, state.objective)
    return _finished(points, iterate, state.labels, choose, found.n_candidates)


class State(NamedTuple):
    """Labels within the bounds, the centered means of their clusters, and the objective."""

    labels: NDArray[np.int32]
    centers: NDArray[np.float64]
    objective: float


def _finished(
    points: Points, iterate: Iterate, labels: NDArray[np.int32], choose: ScreenChooser, n_candidates: float
) -> Clustering:
    iterate.centers = points.rounded(iterate.centers)
    last = labelled(points, labels, iterate.centers, n_candidates)
    iterate = iterate.assigned_by(screen_to_keep(choose, iterate, last.weights))
    return Clustering(iterate, labels, last.objective, n_candidates, last.weights, last.n_filled)


class Balance:
    """What is known of rows whose clusters have bounded sizes, from one assignment to the next."""

    def __init__(self, points: Points, sizes: Sizes, n_clusters: int) -> None:
        self.points, self.sizes, self.n_clusters = points, sizes, n_clusters
        self.prices = np.zeros(n_clusters)
        self.sums = cluster_sums(points, n_clusters)
        self.unit = _equal_weight(points.weights)
        self.history = list[float]()
        self.candidates, self.squares = np.empty((0, 0), np.int32), np.empty((0, 0), np.float32)

    def started(self, centers: NDArray[np.float64], labels: NDArray[np.int32]) -> State:
        """Labels within the bounds for these centered centroids, and the means of their clusters."""
        labels = self.labels(centers, labels)
        compute_sums(self.sums, self.points, labels)
        means, _, before, objective = self.sums.step(centers)
        self.history += [before, objective]
        return State(labels, means, objective)

    def iterated(self, state: State, most: int, enough: float = 0.0) -> State:
        """At most so many iterations, until the objective is low enough, or one lowers it by next to nothing."""
        for _ in range(most - 1):
            if state.objective <= enough:
                break
            new = self.started(state.centers, state.labels)
            worth, fell = new.objective < (1 - _WORTH) * state.objective, new.objective < state.objective
            state = new if fell else state
            if not worth:
                break
        return state

    def searched(self, state: State, unbounded: float) -> State:
        """Rounds of swaps until the objective is near the one without bounds; a quarter as many after one in vain."""
        most = max(self.n_clusters // _SWAPPED, 1)
        for _ in range(_ROUNDS):
            if state.objective <= (1 + _NEAR) * unbounded or not most:
                break
            self.candidates, self.squares = self._lists(state.centers, state.labels)
            centers, count = swapped(self.points, self, state.labels, state.centers, most)
            if not count:
                break
            new = self.iterated(self.started(centers, state.labels), _SETTLE)
            if new.objective < state.objective:
                state = new
            else:
                most = count // 4
        return self.iterated(state, _MOST_ITERATIONS, unbounded)

    def labels(self, centers: NDArray[np.float64], labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Labels within the bounds for these centered centroids, near the given ones."""
        candidates, squares = self.candidates, self.squares = self._lists(centers, labels)
        for attempt in range(_ATTEMPTS if self.unit is None else 2 * self.n_clusters):
            found, how, reached = self._solve(candidates, squares)
            if how == Balanced.ALL:
                return found
            inside = how == Balanced.NEEDS_MORE_INSIDE
            stuck, open_ = np.flatnonzero(reached[found] != inside), np.flatnonzero(reached == inside)
            if not len(open_):
                break
            more = self._nearest_of(centers, open_, stuck, min(_MORE << attempt, _MOST_MORE, len(open_)))
            candidates, squares = _extended(candidates, squares, stuck, *more)

        raise ValueError(
            "No way was found to share out the rows by their weights within min_cluster_size and max_cluster_size; "
            "wider bounds, or rows of smaller weight, would do."
        )

    def _solve(
        self, candidates: NDArray[np.int32], squares: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], Balanced, NDArray[np.bool_]]:
        """Labels among these candidates; a flow for rows of equal weight, moves of single rows for others."""
        if self.unit is None:
            assert self.points.weights is not None
            return Packing(candidates, squares, self.points.weights, self.sizes, self.n_clusters).solve()
        least = int(np.ceil(self.sizes.least / self.unit - _ROUNDING))
        most = int(np.floor(self.sizes.most / self.unit + _ROUNDING))
        return kernels.balance(candidates, squares, least, most, self.prices)

    def _lists(self, centers: NDArray[np.float64], labels: NDArray[np.int32]) -> Lists:
        """The nearest centroids of every row, and the squared distances."""
        parts = [lists.list(rows, labels[place], self._m) for place, rows, lists in self._blocks(centers)]
        candidates, squares = zip(*parts, strict=True)
        return (parts[0]) if len(parts) == 1 else (np.concatenate(candidates), np.concatenate(squares))

    @property
    def _m(self) -> int:
        return min(_CANDIDATES, self.n_clusters)

    def _blocks(
        self, centers: NDArray[np.float64]
    ) -> Iterator[tuple[slice, NDArray[np.float32], kernels.CandidateLists]]:
        """Blocks of rows in float32, and the lists of these centered centroids in their terms."""
        lists = None
        for place, block, origin, unit in self.points.float_blocks():
            if lists is None:
                moved = (centers - (origin - self.points.geometry.mean)) / unit
                lists = kernels.CandidateLists(moved.astype(np.float32), self.points.n_threads)
            yield place, block, lists

    def _nearest_of(
        self, centers: NDArray[np.float64], clusters: NDArray[np.int64], rows: NDArray[np.int64], m: int
    ) -> Lists:
        """The m of these clusters that are nearest to each of these rows, and the squared distances."""
        found = []
        for place, block, origin, unit in self.points.float_blocks():
            inside = rows[(rows >= place.start) & (rows < place.stop)] - place.start
            moved = ((centers[clusters] - (origin - self.points.geometry.mean)) / unit).astype(np.float32)
            step = max((1 << 24) // len(clusters), 1)
            for begin in range(0, len(inside), step):
                found.append(_nearest(block[inside[begin : begin + step]], moved, m))
        nearest = np.concatenate([part[0] for part in found])
        return clusters[nearest].astype(np.int32), np.concatenate([part[1] for part in found])


def _equal_weight(weights: NDArray[np.float64] | None) -> float | None:
    """The weight of every row, if it is the same for all."""
    if weights is None:
        return 1.0
    return float(weights[0]) if (weights == weights[0]).all() else None


def _nearest(rows: NDArray[np.float32], centers: NDArray[np.float32], m: int) -> tuple[NDArray[Any], NDArray[Any]]:
    squares = (rows**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2 * (rows @ centers.T)
    return np.argpartition(squares, m - 1, axis=1)[:, :m], np.maximum(np.partition(squares, m - 1, axis=1)[:, :m], 0)


def _extended(
    candidates: NDArray[np.int32],
    squares: NDArray[np.float32],
    rows: NDArray[np.int64],
    more: NDArray[np.int32],
    more_squares: NDArray[np.float32],
) -> Lists:
    """The lists with more candidates for these rows, none of them twice."""
    n, width = len(candidates), more.shape[1]
    repeated = (candidates[rows][:, :, None] == more[:, None, :]).any(axis=1)
    added, added_squares = np.full((n, width), -1, np.int32), np.full((n, width), np.inf, np.float32)
    added[rows], added_squares[rows] = np.where(repeated, -1, more), np.where(repeated, np.inf, more_squares)
    return np.hstack([candidates, added]), np.hstack([squares, added_squares])
