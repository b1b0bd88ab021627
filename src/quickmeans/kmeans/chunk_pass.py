"""A pass over rows that come in chunks: each chunk is read once, assigned, and added to the sums."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.kmeans.bounds import Bounds
from quickmeans.kmeans.memory_pass import CORRECT_BELOW, cluster_sums, compute_sums, final_objective, weights_of
from quickmeans.kmeans.passes import LastPass, summed_pass
from quickmeans.kmeans.refill import Move, Pool, RunningPool, farthest, largest_pool, refill
from quickmeans.kmeans.rows import Index, Points, naming_rows

_BOUNDS_BYTES = 1 << 30  # that bounds may take beside rows that are not in memory: room for 134 million rows in float32


class ChunkPass:
    """A :class:`quickmeans.kmeans.passes.Pass` whose results do not depend on the size of the chunks.

    With `keep`, sums are kept from one pass to the next, and bounds if the assigner gives them and there is room; else
    nothing but the labels.
    """

    def __init__(self, points: Points, n_clusters: int, *, keep: bool = True) -> None:
        self.points, self.sums = points, cluster_sums(points, n_clusters)
        self.labels = np.full(len(points), -1, np.int32)
        fits = 2 * len(points) * points.geometry.dtype.itemsize <= _BOUNDS_BYTES
        self.keeps, self._bounds_fit = keep, fits
        self.bounds: Bounds | None = None
        self.changed, self.n_settled = len(points), 0
        self.centers: NDArray[Any] = np.empty(0)
        self.pool = RunningPool(0)
        self._sums_are_sound = False  # whether they are those of the labels
        self._pool_rows: dict[int, NDArray[np.float64]] = {}
        self._buffer = Assignment.empty(0, points.geometry.dtype)

    def assign(self, assigner: Assigner, center_shift: NDArray[np.float64] | None = None) -> int:
        skip = False
        if self.bounds is None and self.keeps and self._bounds_fit and assigner.gives_bounds:
            self.bounds = Bounds(len(self.points), self.points.geometry)
        if center_shift is not None and self.bounds is not None:
            self.bounds.move(self.labels, center_shift)
            skip = self.bounds.in_doubt() is not None
        self.centers, self.pool = assigner.centers, RunningPool(largest_pool(self.points.n_columns))
        correct = self._sums_are_sound and self.keeps and self.changed <= CORRECT_BELOW * len(self.points)
        first, before = not self._sums_are_sound, self.sums.weights.copy()
        self._sums_are_sound = False
        self.changed, self.n_settled = 0, 0
        if not correct:
            self.sums.clear()
        for place, block in self.points.rows.blocks():
            changed = self._pass_over(assigner, place, block, skip=skip, correct=correct)
            self.changed += len(block) if first else changed
        if correct and not self.sums.are_sound(before):
            compute_sums(self.sums, self.points, self.labels)
        self._sums_are_sound = True
        return self.changed

    def _pass_over(self, assigner: Assigner, place: slice, block: NDArray[Any], *, skip: bool, correct: bool) -> int:
        """Assign one chunk and add it to the sums; how many of its labels have changed."""
        assignment, old = self._part(place), self.labels[place].copy()
        index = self._assign(assigner, place, block, assignment, skip)
        changed = np.flatnonzero(old != assignment.labels)
        self.n_settled += assignment.n_settled
        if correct:
            weights = weights_of(self.points, place.start + changed)
            self.sums.exchange(block, changed, old[changed], assignment.labels[changed], *weights)
        else:
            self.sums.add(block, assignment.labels, *weights_of(self.points, place))
        self.pool.see(place.start, self._distances(place, assignment, index))
        return len(changed)

    def _part(self, place: slice) -> Assignment:
        """Memory for the assignment of one chunk; its labels are a view of all labels."""
        n = place.stop - place.start
        if n > len(self._buffer.best):
            self._buffer = Assignment.empty(n, self.points.geometry.dtype)
        buffer = self._buffer
        return Assignment(self.labels[place], buffer.best[:n], buffer.second[:n], buffer.norms[:n])

    def _assign(
        self, assigner: Assigner, place: slice, block: NDArray[Any], assignment: Assignment, skip: bool
    ) -> Index | None:
        """Assign one chunk: the rows in doubt, which are returned, or all (None)."""
        index = None
        if self.bounds is not None and skip:
            index = np.flatnonzero(self.bounds.upper[place] >= self.bounds.lower[place])
        with naming_rows(self.points.rows, place.start, block):
            assigner.assign(block, assignment, self.points.n_threads, index=index, exact_scores=False)
        assignment.fill_norms(block, self.points.geometry)
        if self.bounds is not None and assigner.gives_bounds:
            self.bounds.renew(assignment, index, place.start)
        return index

    def _distances(self, place: slice, assignment: Assignment, index: Index | None) -> NDArray[Any]:
        """Squared distances from the centroids, or bounds if rows were skipped; zero for rows without weight."""
        if index is None:
            distances = assignment.squared_distances(self.points.geometry)
        else:
            assert self.bounds is not None
            distances = self.bounds.upper[place] ** 2
        weights = self.points.weights
        return distances if weights is None else np.where(weights[place] > 0, distances, 0)

    def refill(self) -> list[Move]:
        self._sums_are_sound = False  # until all moves are done: Ctrl-C may come in between
        moves = refill(self.labels, self.sums.sizes.copy(), self._farthest)
        self._make(moves)
        self.changed += len(moves)
        return moves

    def _farthest(self, count: int) -> Pool:
        index = self.pool.index[farthest(self.pool.distances, count)]
        rows = self.points.rows.take(index).astype(np.float64)
        self._pool_rows = dict(zip(index.tolist(), rows, strict=True))
        own = self.centers[self.labels[index]].astype(np.float64)
        weights = None if self.points.weights is None else self.points.weights[index]
        return Pool.of(index, self.points.geometry.centered(rows), own, weights)

    def _make(self, moves: list[Move]) -> None:
        self._sums_are_sound = False
        for row, old, new in moves:
            self._move(row, old, new)
        self._sums_are_sound = True

    def _move(self, row: int, old: int, new: int) -> None:
        self.labels[row] = new
        weight, sum_weight = (
            1.0 if w is None else float(w[row]) for w in (self.points.weights, self.points.sum_weights)
        )
        self.sums.move(self._pool_rows[row], sum_weight, weight, old, new)
        if self.bounds is not None:
            self.bounds.lower[row] = 0

    def undo(self, moves: list[Move]) -> None:
        self._make([(row, new, old) for row, old, new in moves])

    def known(self, history: list[float]) -> LastPass | None:
        if not history:
            return None
        weights, K = self.points.weights, len(self.sums.sizes)
        counts = np.bincount(self.labels, weights, K).astype(np.float64)
        return LastPass(self.labels, history[-1], 0.0, counts, int(np.count_nonzero(counts)))

    def last(self, assigner: Assigner, centers: NDArray[np.float64]) -> LastPass:
        self.assign(assigner)
        objective = final_objective(self.sums, self.points, centers, self.labels)
        return summed_pass(self.labels, objective, self.n_settled / len(self.points), self.sums)
