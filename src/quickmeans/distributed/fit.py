"""Clustering the rows of a Dask array where they are.

In every iteration the screen goes to the workers, and sums come back: those of each chunk, added in a tree. A chunk
that is lost with its worker is computed again; nothing else is kept on the workers.
"""

from functools import partial
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from quickmeans.distributed.reduction import (
    POOL,
    assigned_part,
    drawn,
    extent,
    merge_draws,
    merge_extents,
    merge_parts,
    tree,
)
from quickmeans.distributed.rows import DaskRows, Locator, compute, lazy_labels, send
from quickmeans.kmeans.calibration import Screener
from quickmeans.kmeans.lloyd import Clustering, lloyd
from quickmeans.kmeans.passes import CANCELLED, AnyScreen, Last, MemoryPass
from quickmeans.kmeans.points import Elsewhere, Frame, Points
from quickmeans.kmeans.refill import Move, Pool, farthest, refill
from quickmeans.kmeans.screen import Screen
from quickmeans.kmeans.start import kmeans_plusplus
from quickmeans.kmeans.update import ClusterSums

_SPARE = 16  # rows of every chunk, at least, that are offered to empty clusters
_ROUNDS = 2  # of k-means||, after the first rows
_ITERATIONS = 5  # on the rows drawn, by their weights


class DaskPoints(Elsewhere):
    """Points whose rows and weights stay on the cluster."""

    X: DaskRows

    def __init__(self, X: DaskRows, weights: Any, n_threads: int, *, spherical: bool = False) -> None:
        self.X, self.n_threads, self.weights, self.pulls = X, n_threads, None, None
        self.weight_parts = _weight_parts(X, weights)
        shift = np.asarray(X.take(np.zeros(1, np.int64))[0], np.float64)
        begins = np.cumsum([0, *X.sizes[:-1]]).tolist()
        tasks = [dask.delayed(extent)(part, w, shift, begin, Locator(X.array.chunks[0]))
                 for (part, w), begin in zip(self.parts(), begins, strict=True)]  # fmt: skip
        whole = compute(tree(tasks, dask.delayed(merge_extents)))
        if whole.total <= 0:
            raise ValueError("sample_weight must not be all zero.")
        self.total = whole.total
        offset = whole.sums[0] / whole.total
        mean, self.variances = shift + offset, np.maximum(whole.sums[1] / whole.total - offset**2, 0)
        dtype = self._working_dtype(mean)
        if spherical:
            if whole.shortest <= 0:
                raise ValueError("A row of X is zero and has no direction; spherical k-means cannot place it.")
            dtype = np.dtype(np.float64) if whole.shortest < 1e-15 else dtype
            mean = np.zeros_like(mean)
        self.frame = Frame(mean, dtype, spherical)

    def parts(self) -> list[tuple[Any, Any]]:
        """Chunks and their weights, as tasks."""
        return list(zip(self.X.parts, self.weight_parts, strict=True))

    def passes(self, n_clusters: int) -> "DaskPass":
        """How to go over them."""
        return DaskPass(self, n_clusters)

    def start(self, n_clusters: int, seed: int, screener: Screener) -> NDArray[np.float64]:
        """k-means||: rows drawn at random, then some by squared distance, twice; these, by weight, are clustered."""
        rng = np.random.default_rng(seed)
        index = np.sort(rng.choice(len(self), min(n_clusters, len(self)), replace=False))
        rows = np.asarray(self.X.take(index), np.float64)
        for turn in range(_ROUNDS):
            more = self._draw(rows, n_clusters, (seed, turn), screener)
            rows = np.concatenate([rows, more.astype(np.float64)])
        counts = self._counts(rows, screener)
        local = Points(rows, counts, self.n_threads, spherical=self.frame.spherical)
        centers = kmeans_plusplus(local, n_clusters, rng)
        choose = Screener(local, rng)
        run = Clustering(centers, choose(centers))
        lloyd(MemoryPass(local, n_clusters), run, choose, max_iter=_ITERATIONS, tol=0.0)
        return np.asarray(run.centers + local.frame.mean - self.frame.mean, np.float64)

    def _screen(self, rows: NDArray[np.float64], screener: Screener) -> Screen:
        return screener.fresh(self.frame.centred(rows))

    def _draw(self, rows: NDArray[np.float64], count: int, seed: tuple[int, int], screener: Screener) -> NDArray[Any]:
        screen = send(self._screen(rows, screener))
        draws = [dask.delayed(drawn)(part, w, screen, self.n_threads, count, (*seed, i))
                 for i, (part, w) in enumerate(self.parts())]  # fmt: skip
        found: NDArray[Any] = compute(tree(draws, dask.delayed(partial(merge_draws, count=count)))).rows
        return found

    def _counts(self, rows: NDArray[np.float64], screener: Screener) -> NDArray[np.float64]:
        """How much weight is nearest to each of the rows."""
        part = self.reduced(self._screen(rows, screener))
        counts = np.zeros(len(rows))
        counts[part.clusters] = part.weights
        return counts

    def reduced(self, screen: AnyScreen) -> Any:
        """One pass: the sums of all chunks."""
        message = send(screen)
        n_spare = max(_SPARE, -(-POOL // len(self.X.parts)))
        tasks = [dask.delayed(assigned_part)(part, w, message, self.n_threads, n_spare) for part, w in self.parts()]
        return compute(tree(tasks, dask.delayed(merge_parts)))


class DaskPass:
    """A pass over all chunks; nothing is kept from one to the next but the sums."""

    def __init__(self, points: DaskPoints, n_clusters: int) -> None:
        self.points, self.sums = points, ClusterSums(points, n_clusters)
        self.part: Any = None

    def assign(self, screen: AnyScreen) -> None:
        self.part = self.points.reduced(screen)
        self.sums.clear()
        self.sums.raw[self.part.clusters] = self.part.sums
        self.sums.weights[self.part.clusters] = self.part.weights
        self.sums.sizes[self.part.clusters] = self.part.sizes

    def refill(self) -> list[Move]:
        labels = self.part.spare["labels"].copy()
        moves = refill(labels, self.sums.sizes.copy(), self._farthest)
        self._exchange(moves)
        return moves

    def _farthest(self, count: int) -> Pool:
        spare = self.part.spare
        kept = farthest(spare["distances"], count)
        rows = self.points.frame.centred(spare["rows"][kept].astype(np.float64))
        return Pool(kept, rows, spare["distances"][kept])

    def _exchange(self, moves: list[Move]) -> None:
        spare = self.part.spare
        for i, old, new in moves:
            x, weight = spare["rows"][i].astype(np.float64), float(spare["weights"][i])
            pull = weight / float(np.linalg.norm(x)) if self.points.frame.spherical else weight
            self.sums.move(x, pull, weight, old, new)

    def undo(self, moves: list[Move]) -> None:
        self._exchange([(i, new, old) for i, old, new in moves])

    def follow(self) -> int:
        return len(self.points)  # labels stay on the workers, and nobody knows; the moves of the centroids tell

    def loosen(self, moves: NDArray[np.float64]) -> None:
        pass

    def last(self, screen: AnyScreen, centers: NDArray[np.float64]) -> Last:
        self.assign(screen)
        objective = self.sums.objective(centers)
        if objective < CANCELLED * self.points.scatter:
            objective = self.part.objective
        labels = lazy_labels(self.points.X.array, screen, self.points.n_threads)
        return labels, objective, self.part.n_settled / len(self.points)


def _weight_parts(X: DaskRows, weights: Any) -> list[Any]:
    if weights is None:
        return [None] * len(X.parts)
    import dask.array as da

    array = weights if hasattr(weights, "__dask_graph__") else da.from_array(np.asarray(weights, np.float64))
    if array.shape != (X.shape[0],):
        raise ValueError(f"sample_weight must have shape ({X.shape[0]},), one weight per row, got {array.shape}.")
    parts = array.astype(np.float64).rechunk((X.array.chunks[0],)).to_delayed().ravel()
    return [part for part, n in zip(parts, X.array.chunks[0], strict=True) if n]
