"""A pass over the rows of a Dask array, where they are.

In every iteration the assigner goes to the workers, and sums come back: those of each chunk, added in a tree. A chunk
that is lost with its worker is computed again; nothing else is kept on the workers.
"""

from typing import Any, Protocol

import dask
import numpy as np
from numpy.typing import NDArray

from quickmeans.distributed.reduction import POOL, Part, assigned_part, merge_parts, tree
from quickmeans.distributed.tasks import compute, send
from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.functions import Labels
from quickmeans.kmeans.memory_pass import cluster_sums
from quickmeans.kmeans.passes import CANCELLED, LastPass, summed_pass
from quickmeans.kmeans.refill import Move, Pool, farthest, refill
from quickmeans.kmeans.rows import Points, RowFunction

_POOL_PER_CHUNK = 16  # rows of every chunk, at least, that empty clusters may get


class ChunkedRows(Protocol):
    """What a pass needs of the rows on a cluster."""

    @property
    def weighted_parts(self) -> list[tuple[Any, Any]]:
        """The chunks and their weights, as tasks."""

    def map(self, function: RowFunction, dtype: Any, width: int | None = None) -> Any:
        """The lazy results of a function for all chunks."""


class DaskPass:
    """A :class:`quickmeans.kmeans.passes.Pass` that keeps only the sums."""

    def __init__(self, rows: ChunkedRows, points: Points, n_clusters: int) -> None:
        self.rows, self.points, self.sums = rows, points, cluster_sums(points, n_clusters)
        self.part: Part | None = None
        self.centers: NDArray[Any] = np.empty(0)

    def assign(self, assigner: Assigner, center_shift: NDArray[np.float64] | None = None) -> None:
        """One pass; labels stay on the workers, so how many have changed is not known."""
        self.centers = assigner.centers
        self.part = part = reduced(self.rows, assigner, self.points.n_threads)
        self.sums.clear()
        self.sums.raw[part.clusters] = part.sums
        self.sums.weights[part.clusters] = part.weights
        self.sums.sizes[part.clusters] = part.sizes

    def refill(self) -> list[Move]:
        assert self.part is not None
        labels = self.part.pool["labels"].copy()
        moves = refill(labels, self.sums.sizes.copy(), self._farthest)
        self._exchange(moves)
        return moves

    def _farthest(self, count: int) -> Pool:
        assert self.part is not None
        pool = self.part.pool
        kept = farthest(pool["distances"], count)
        rows = self.points.geometry.centered(pool["rows"][kept].astype(np.float64))
        own = self.centers[pool["labels"][kept]].astype(np.float64)
        return Pool.of(kept, rows, own, pool["weights"][kept])

    def _exchange(self, moves: list[Move]) -> None:
        assert self.part is not None
        pool = self.part.pool
        for i, old, new in moves:
            x, weight = pool["rows"][i].astype(np.float64), float(pool["weights"][i])
            sum_weight = weight / float(np.linalg.norm(x)) if self.points.geometry.spherical else weight
            self.sums.move(x, sum_weight, weight, old, new)

    def undo(self, moves: list[Move]) -> None:
        self._exchange([(i, new, old) for i, old, new in moves])

    def known(self, history: list[float]) -> LastPass | None:
        return None

    def last(self, assigner: Assigner, centers: NDArray[np.float64]) -> LastPass:
        self.assign(assigner)
        assert self.part is not None
        objective = self.sums.objective(centers)
        if objective < CANCELLED * self.points.scatter:
            objective = self.part.objective
        labels = self.rows.map(Labels(assigner, self.points.n_threads), np.int32)
        return summed_pass(labels, objective, self.part.n_settled / len(self.points), self.sums)


def reduced(rows: ChunkedRows, assigner: Assigner, n_threads: int) -> Part:
    """The sums of all chunks by their nearest centroids."""
    message, parts = send(assigner), rows.weighted_parts
    n_pool = max(_POOL_PER_CHUNK, -(-POOL // len(parts)))
    tasks = [dask.delayed(assigned_part)(part, weights, message, n_threads, n_pool) for part, weights in parts]
    result: Part = compute(tree(tasks, dask.delayed(merge_parts)))
    return result
