"""Passes over the rows: every row gets its label, every cluster the sum of its rows."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.bounds import Bounds
from quickmeans.kmeans.points import Points, row_blocks, rows_at_a_time, squared_norms, take_rows
from quickmeans.kmeans.refill import Move, Pool, RunningPool, farthest, largest_pool, refill
from quickmeans.kmeans.rows import Stream
from quickmeans.kmeans.screen import Assignment, ProductRows, Screen, fill_norms
from quickmeans.kmeans.update import FEW, ClusterSums

CANCELLED = 1e-8  # below this share of the scatter the objective is computed directly
_ROOM = 1 << 30  # bytes that bounds may take beside rows that are not in memory
AnyScreen = Screen | ProductRows
Last = tuple[Any, float, float]  # labels, objective, exact distances per row


class Pass(Protocol):
    """A way to go over all rows: `assign`, then `refill` if that is wanted, then `follow` brings `sums` up to date."""

    points: Any
    sums: ClusterSums

    def assign(self, screen: AnyScreen) -> None:
        """Every row to its nearest centroid."""

    def refill(self) -> list[Move]:
        """Give every empty cluster a row."""

    def undo(self, moves: list[Move]) -> None:
        """Give the rows back."""

    def follow(self) -> int:
        """Bring the sums to the labels; how many labels have changed."""

    def loosen(self, moves: NDArray[np.float64]) -> None:
        """The centroids have moved so far since."""

    def last(self, screen: AnyScreen, centers: NDArray[np.float64]) -> Last:
        """Assign once more, and sum up."""


class MemoryPass:
    """Over rows that are in memory: those whose labels are proven are passed over, sums follow the labels' changes."""

    def __init__(self, points: Points, n_clusters: int) -> None:
        self.points, self.sums = points, ClusterSums(points, n_clusters)
        self.found = Assignment.empty(len(points), points.frame.dtype)
        self.bounds = Bounds(len(points), points.frame)
        self.index: NDArray[np.int64] | None = None
        self._sums_are_sound = True

    def assign(self, screen: AnyScreen) -> None:
        X, n_threads = self.points.X, self.points.n_threads
        if isinstance(screen, ProductRows):
            screen.assign(X, self.found, n_threads)
            return
        screen.assign(X, self.found, n_threads, self.index, projected=screen.projected, settle_all=False)
        self.bounds.renew(self.found, self.index)

    def refill(self) -> list[Move]:
        sizes = np.bincount(self.found.labels, minlength=len(self.sums.sizes))
        moves = refill(self.found.labels, sizes, self._farthest)
        self.bounds.lower[[row for row, _, _ in moves]] = 0
        return moves

    def _farthest(self, count: int) -> Pool:
        distances = self.found.squared_distances(self.points.frame)
        if self.points.weights is not None:
            distances[self.points.weights <= 0] = 0
        index = farthest(distances, min(largest_pool(self.points.X.shape[1]), count))
        return Pool(index, self.points.take(index), distances[index].astype(np.float64))

    def undo(self, moves: list[Move]) -> None:
        for row, old, _ in moves:
            self.found.labels[row] = old

    def follow(self) -> int:
        self._sums_are_sound = False
        changed = self.sums.follow(self.found.labels)
        self._sums_are_sound = True
        return changed

    def loosen(self, moves: NDArray[np.float64]) -> None:
        self.bounds.loosen(self.found.labels, moves)
        self.index = self.bounds.doubtful()

    def last(self, screen: AnyScreen, centers: NDArray[np.float64]) -> Last:
        self.index = None
        self.assign(screen)
        if not self._sums_are_sound:  # an interrupt left them half done
            self.sums = ClusterSums(self.points, len(centers))
        self.follow()
        objective = final_objective(self.sums, centers, self.found.labels)
        return self.found.labels, objective, self.found.n_settled / len(self.points)


class ChunkPass:
    """Over rows that come in chunks, each of which is read once: assigned, and added to the sums.

    Sums are taken over the rows in order, so no bit depends on the size of the chunks. Without bounds nothing is kept
    from one pass to the next.
    """

    def __init__(self, points: Points, n_clusters: int, *, with_bounds: bool = True) -> None:
        self.points, self.sums = points, ClusterSums(points, n_clusters)
        self.labels = np.zeros(len(points), np.int32)
        fits = 2 * len(points) * points.frame.dtype.itemsize <= _ROOM
        self.bounds = Bounds(len(points), points.frame) if with_bounds and fits else None
        self.skips = False  # whether proven labels are passed over
        self.changed, self.n_settled = len(points), 0
        self._sums_are_sound = False  # those of the labels
        self._spared: dict[int, NDArray[np.float64]] = {}  # rows that empty clusters may get
        self._room = Assignment.empty(0, points.frame.dtype)

    def assign(self, screen: AnyScreen) -> None:
        self.pool = RunningPool(largest_pool(self.points.X.shape[1]))
        corrects = self._sums_are_sound and self.bounds is not None and self.changed <= FEW * len(self.points)
        first, before = not self._sums_are_sound, self.sums.weights.copy()
        self._sums_are_sound = False
        self.changed, self.n_settled = 0, 0
        if not corrects:
            self.sums.clear()
        for part, rows in row_blocks(self.points.X):
            found, old = self._scratch(part), self.labels[part].copy()
            index = self._assign(screen, part, rows, found)
            changed = np.flatnonzero(old != found.labels)
            self.n_settled += found.n_settled
            self.changed += len(rows) if first else len(changed)
            if corrects:
                self.sums.exchange(rows, changed, part.start + changed, old[changed], found.labels[changed])
            else:
                self.sums.add(part, rows, found.labels)
            self.pool.show(part.start, self._distances(part, found, index))
        if corrects and not self.sums.are_sound(before):
            self._sum_anew()
        self._sums_are_sound = True

    def _sum_anew(self) -> None:
        self.sums.clear()
        for part, rows in row_blocks(self.points.X):
            self.sums.add(part, rows, self.labels[part])

    def _scratch(self, part: slice) -> Assignment:
        """Where to put what is found of one chunk; its labels are those of all rows."""
        n = part.stop - part.start
        if n > len(self._room.best):
            self._room = Assignment.empty(n, self.points.frame.dtype)
        room = self._room
        return Assignment(self.labels[part], room.best[:n], room.second[:n], room.norms[:n])

    def _assign(
        self, screen: AnyScreen, part: slice, rows: NDArray[Any], found: Assignment
    ) -> NDArray[np.int64] | None:
        """Assign one chunk: the rows in doubt, which are returned, or all (None)."""
        if isinstance(screen, ProductRows):
            screen.assign(rows, found, self.points.n_threads)
            fill_norms(rows, self.points.frame, found)
            return None
        index = None
        if self.bounds is not None and self.skips:
            index = np.flatnonzero(self.bounds.upper[part] >= self.bounds.lower[part])
        screen.assign(rows, found, self.points.n_threads, index, settle_all=False)
        if self.bounds is not None:
            self.bounds.renew(found, index, part.start)
        return index

    def _distances(self, part: slice, found: Assignment, index: NDArray[np.int64] | None) -> NDArray[Any]:
        """Squared, from the centroids; of rows that were passed over, the bounds; of rows without weight, nothing."""
        if index is None:
            distances = found.squared_distances(self.points.frame)
        else:
            assert self.bounds is not None
            distances = self.bounds.upper[part] ** 2
        return distances if self.points.weights is None else np.where(self.points.weights[part] > 0, distances, 0)

    def refill(self) -> list[Move]:
        moves = refill(self.labels, self.sums.sizes.copy(), self._farthest)
        for row, old, new in moves:
            self._move(row, old, new)
        self.changed += len(moves)
        return moves

    def _farthest(self, count: int) -> Pool:
        kept = farthest(self.pool.distances, count)
        index = self.pool.index[kept]
        self._spared = dict(zip(index.tolist(), take_rows(self.points.X, index), strict=True))
        rows = self.points.frame.centred(np.reshape(list(self._spared.values()), (-1, self.points.X.shape[1])))
        return Pool(index, rows, self.pool.distances[kept])

    def _move(self, row: int, old: int, new: int) -> None:
        self.labels[row] = new
        pull, weight = (1.0 if w is None else float(w[row]) for w in (self.points.pulls, self.points.weights))
        self.sums.move(self._spared[row], pull, weight, old, new)
        if self.bounds is not None:
            self.bounds.lower[row] = 0

    def undo(self, moves: list[Move]) -> None:
        for row, old, new in moves:
            self._move(row, new, old)

    def follow(self) -> int:
        return self.changed

    def loosen(self, moves: NDArray[np.float64]) -> None:
        if self.bounds is not None:
            self.bounds.loosen(self.labels, moves)
            self.skips = self.bounds.doubtful() is not None

    def last(self, screen: AnyScreen, centers: NDArray[np.float64]) -> Last:
        self.skips = False
        self.assign(screen)
        objective = final_objective(self.sums, centers, self.labels)
        return self.labels, objective, self.n_settled / len(self.points)


def passes_over(points: Points, n_clusters: int) -> Pass:
    """The way to go over these rows."""
    if isinstance(points.X, Stream):
        return ChunkPass(points, n_clusters)
    return MemoryPass(points, n_clusters)


def final_objective(sums: ClusterSums, centers: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """From the sums; where little is left of the scatter, from the differences themselves."""
    points, objective = sums.points, sums.objective(centers)
    if objective >= CANCELLED * points.scatter:
        return objective
    total = 0.0
    for part, rows in row_blocks(points.X):
        step = rows_at_a_time(centers.shape[1])
        for begin in range(0, len(rows), step):
            some = slice(part.start + begin, part.start + min(begin + step, len(rows)))
            Y = points.frame.centred(rows[begin : begin + step].astype(np.float64))
            squares = squared_norms(Y - centers[labels[some]])
            total += float(squares.sum() if points.weights is None else squares @ points.weights[some])
    return total
