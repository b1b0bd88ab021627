"""Rows for clusters that have none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.geometry import squared_norms

_POOL_ENTRIES = 1 << 20  # of the rows of a pool: 8 MB in float64
# Two rows whose squared distance is a smaller share of their squared norms are taken as equal: rounding in float64.
_EQUAL = 1e-12

Move = tuple[int, int, int]  # a row, the cluster it leaves, the cluster it goes to


@dataclass(frozen=True)
class Pool:
    """Rows far from their centroids: their numbers in ascending order, the centered rows, squared distances."""

    index: NDArray[np.int64]
    rows: NDArray[np.float64]
    distances: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        index: NDArray[np.int64],
        rows: NDArray[np.float64],
        own_centers: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> "Pool":
        """The pool of these centered rows, by their distances from their own centroids in float64."""
        distances = squared_norms(rows - own_centers)
        distances[distances <= _EQUAL * (squared_norms(rows) + squared_norms(own_centers))] = 0
        if weights is not None:
            distances[weights <= 0] = 0
        return cls(index, rows, distances)


def largest_pool(n_columns: int) -> int:
    """The most rows that a pool has."""
    return max(256, _POOL_ENTRIES // n_columns)


def refill(labels: NDArray[np.int32], sizes: NDArray[np.int64], farthest: Callable[[int], Pool]) -> list[Move]:
    """Give every empty cluster a row that is far from all centroids and whose cluster has another row.

    Rows that lie on their centroid are not moved.

    Parameters
    ----------
    labels : array of int
        Of the rows that a pool numbers; changed in place.
    sizes : array of int
        How many rows with weight each cluster has; changed in place.
    farthest : callable
        Gives a pool of so many rows, or of as many as it has.
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
        distances = np.minimum(distances, np.where(apart > _EQUAL * size, apart, 0))
    return moves


def farthest(distances: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The positions of the largest, in ascending order; of equal ones, the first."""
    if count < len(distances):
        least = np.partition(distances, len(distances) - count)[len(distances) - count]
        larger = np.flatnonzero(distances > least)
        return np.sort(np.concatenate([larger, np.flatnonzero(distances == least)[: count - len(larger)]]))
    return np.arange(len(distances))


class RunningPool:
    """The numbers and squared distances of the farthest rows seen in a pass over blocks."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.index, self.distances = np.empty(0, np.int64), np.empty(0)

    def see(self, first: int, distances: NDArray[Any]) -> None:
        """Consider the rows from number `first` on, with these squared distances from their centroids."""
        full = len(self.index) == self.most
        farther = np.flatnonzero(distances > (self.distances.min() if full else 0))
        if not len(farther):
            return
        index = np.concatenate([self.index, first + farther])
        together = np.concatenate([self.distances, distances[farther].astype(np.float64)])
        kept = farthest(together, self.most)
        self.index, self.distances = index[kept], together[kept]
