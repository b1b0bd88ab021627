"""Lloyd's iteration with exact means as centroids."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quickmeans.lloyd.assign import Assignment, ProductRows, Screen
from quickmeans.lloyd.points import Frame, Points, rows_at_a_time, squared_norms
from quickmeans.lloyd.screening import Screener
from quickmeans.lloyd.update import ClusterSums

Observer = Callable[[int, float], object]
_CANCELLED = 1e-8  # below this share of the scatter the objective is computed directly
_POOL_ENTRIES = 1 << 20  # of the rows that are considered for empty clusters


@dataclass
class Clustering:
    """Where an iteration has got to: centroids about the mean, labels, and the way there."""

    centers: NDArray[np.float64]
    screen: Screen | ProductRows
    found: Assignment
    history: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    objective: float = np.inf
    interrupted: bool = False

    def advance(
        self, centers: NDArray[np.float64], screen: Screen | ProductRows, after_assignment: float, after_update: float
    ) -> None:
        """One iteration is complete."""
        self.centers, self.screen = centers, screen
        self.history += [after_assignment, after_update]
        self.n_iter += 1


def lloyd(
    points: Points,
    centers: NDArray[np.float64],
    screener: Screener,
    *,
    max_iter: int,
    tol: float,
    observe: Observer | None = None,
) -> Clustering:
    """Assign rows to their nearest centroids and move centroids to their means, in turn.

    Stops when no label changes, or when the squared moves of the centroids add up to `tol` or less.
    """
    found = Assignment.empty(len(points), points.frame.dtype)
    screen = screener(centers)
    run = Clustering(centers, screen, found)
    sums = ClusterSums(points, len(centers))
    with stopping_at_interrupt(run):
        _iterate(points, sums, run, screen, screener, max_iter, tol, observe)
    assert isinstance(run.screen, Screen)
    run.centers = points.rounded(run.centers)
    last = screener.last(run.screen, run.centers)
    run.screen = last
    last.assign(points.X, found, points.n_threads, projected=last.projected, settle_all=False)
    last.projected = None  # the screen outlives the rows
    finish(run, sums)
    return run


def finish(run: Clustering, sums: ClusterSums) -> None:
    """The objective of the last labels; sums that were left half done are computed anew."""
    if run.interrupted:
        sums = ClusterSums(sums.points, len(run.centers))
    sums.follow(run.found.labels)
    run.objective = sums.objective(run.centers)
    if run.objective < _CANCELLED * sums.points.scatter:
        run.objective = direct_objective(sums.points, run.centers, run.found.labels)


def direct_objective(points: Points, centers: NDArray[np.float64], labels: NDArray[np.int32]) -> float:
    """The objective from the differences themselves, where little is left of the scatter."""
    total = 0.0
    step = rows_at_a_time(centers.shape[1])
    for begin in range(0, len(points), step):
        part = slice(begin, begin + step)
        squares = squared_norms(points.take(np.arange(len(points))[part]) - centers[labels[part]])
        total += float(squares.sum() if points.weights is None else squares @ points.weights[part])
    return total


def _iterate(
    points: Points,
    sums: ClusterSums,
    run: Clustering,
    screen: Screen,
    screener: Screener,
    max_iter: int,
    tol: float,
    observe: Observer | None,
) -> None:
    found = run.found
    bounds = Bounds(found, points.frame)
    index: NDArray[np.int64] | None = None
    for _ in range(max_iter):
        screen.assign(points.X, found, points.n_threads, index, projected=screen.projected, settle_all=False)
        bounds.renew(index)
        bounds.lower[refill(points, found, len(run.centers))] = 0
        changed = sums.follow(found.labels)
        means, moves, assigned, updated = sums.step(run.centers)
        screen = screener(means)
        run.advance(means, screen, assigned, updated)
        if observe is not None and observe(run.n_iter, run.history[-1]):
            return
        if changed == 0 or float((moves**2).sum()) <= tol:
            run.converged = True
            return
        bounds.loosen(moves)
        index = bounds.doubtful()


@contextmanager
def stopping_at_interrupt(run: Clustering) -> Iterator[None]:
    """Ctrl-C ends the iteration, with the last complete iterate."""
    try:
        yield
    except KeyboardInterrupt:
        run.interrupted = True


class Bounds:
    """For every row a bound from above on the distance to its centroid, and one from below on that to any other.

    They hold as far as the screen's do, and loosen with the moves of the centroids (Hamerly, 2010).
    """

    def __init__(self, found: Assignment, frame: Frame) -> None:
        self.found, self.frame = found, frame
        self.upper, self.lower = np.zeros_like(found.best), np.zeros_like(found.best)

    def renew(self, index: NDArray[np.int64] | None) -> None:
        """After an assignment of these rows, or of all."""
        rows = slice(None) if index is None else index
        norms = self.found.norms[rows]
        self.upper[rows] = np.sqrt(self.frame.squared_distances(norms, self.found.best[rows]))
        self.lower[rows] = np.sqrt(self.frame.squared_distances(norms, self.found.second[rows]))

    def loosen(self, moves: NDArray[np.float64]) -> None:
        """After the centroids have moved."""
        moves = moves.astype(self.upper.dtype)
        self.upper += moves[self.found.labels]
        self.lower -= moves.max()

    def doubtful(self) -> NDArray[np.int64] | None:
        """The rows whose labels are not proven, or None if that is most of them."""
        doubt = np.flatnonzero(self.upper >= self.lower)
        return None if len(doubt) > 0.9 * len(self.upper) else doubt


def refill(points: Points, found: Assignment, n_clusters: int) -> list[int]:
    """Give every empty cluster a row that is far from all centroids and can be spared; the rows that were moved.

    Rows without weight, and rows that lie on their centroid, are no use.
    """
    sizes = np.bincount(found.labels, minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return []
    distances = found.squared_distances(points.frame)
    if points.weights is not None:
        distances[points.weights <= 0] = 0
    most = max(256, _POOL_ENTRIES // points.X.shape[1])
    pool = _farthest(distances, min(most, max(1024, 20 * len(empty))))
    rows, distances = points.take(pool), distances[pool].astype(np.float64)
    norms = squared_norms(rows)
    moved: list[int] = []
    while len(moved) < len(empty):
        distances[sizes[found.labels[pool]] < 2] = 0
        i = int(distances.argmax())
        if distances[i] <= 0:
            break
        sizes[found.labels[pool[i]]] -= 1
        found.labels[pool[i]] = empty[len(moved)]
        sizes[empty[len(moved)]] = 1
        moved.append(int(pool[i]))
        size = norms + norms[i]
        apart = size - 2 * (rows @ rows[i])
        distances = np.minimum(distances, np.where(apart > 1e-12 * size, apart, 0))
    return moved


def _farthest(distances: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The positions of the largest, in order; of equals, the first."""
    if count < len(distances):
        least = np.partition(distances, len(distances) - count)[len(distances) - count]
        larger = np.flatnonzero(distances > least)
        return np.sort(np.concatenate([larger, np.flatnonzero(distances == least)[: count - len(larger)]]))
    return np.arange(len(distances))
