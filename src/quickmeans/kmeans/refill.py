"""Rows for clusters that have none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.points import squared_norms

_POOL_ENTRIES = 1 << 20  # of the rows that are considered


@dataclass(frozen=True)
class Pool:
    """Rows far from all centroids: their numbers in ascending order, themselves about the mean, squared distances."""

    index: NDArray[np.int64]
    rows: NDArray[np.float64]
    distances: NDArray[np.float64]


Move = tuple[int, int, int]  # a row, the cluster it leaves, the one it goes to


def largest_pool(n_columns: int) -> int:
    """The most rows that a pool has."""
    return max(256, _POOL_ENTRIES // n_columns)


def refill(labels: NDArray[np.int32], sizes: NDArray[np.int64], farthest: Callable[[int], Pool]) -> list[Move]:
    """Give every empty cluster a row that is far from all centroids and can be spared.

    Labels and sizes are changed. `farthest` gives a pool of so many rows, or as many as it has. Rows that lie on their
    centroid are no use.
    """
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return []
    pool = farthest(max(1024, 20 * len(empty)))
    distances, norms = pool.distances.copy(), squared_norms(pool.rows)
    moves: list[Move] = []
    while len(moves) < len(empty) and len(distances):
        distances[sizes[labels[pool.index]] < 2] = 0
        i = int(distances.argmax())
        if distances[i] <= 0:
            break
        row, old, new = int(pool.index[i]), int(labels[pool.index[i]]), int(empty[len(moves)])
        labels[row] = new
        sizes[old] -= 1
        sizes[new] = 1
        moves.append((row, old, new))
        size = norms + norms[i]
        apart = size - 2 * (pool.rows @ pool.rows[i])
        distances = np.minimum(distances, np.where(apart > 1e-12 * size, apart, 0))
    return moves


def farthest(distances: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The positions of the largest, in order; of equals, the first."""
    if count < len(distances):
        least = np.partition(distances, len(distances) - count)[len(distances) - count]
        larger = np.flatnonzero(distances > least)
        return np.sort(np.concatenate([larger, np.flatnonzero(distances == least)[: count - len(larger)]]))
    return np.arange(len(distances))


class RunningPool:
    """The numbers and squared distances of the farthest of all rows that have been shown, kept while they pass."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.index, self.distances = np.empty(0, np.int64), np.empty(0)

    def show(self, first: int, distances: NDArray[Any]) -> None:
        """Rows from number `first` on, by their squared distances from their centroids."""
        full = len(self.index) == self.most
        some = np.flatnonzero(distances > (self.distances.min() if full else 0))
        if not len(some):
            return
        index = np.concatenate([self.index, first + some])
        together = np.concatenate([self.distances, distances[some].astype(np.float64)])
        kept = farthest(together, self.most)
        self.index, self.distances = index[kept], together[kept]
