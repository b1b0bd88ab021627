"""Rows of different weights in clusters of bounded sizes: the cheapest moves that fit, one after the other.

To share out weights exactly is hard in general (bin packing). Rows begin at their nearest centroids. They leave
clusters that are too heavy in the order of what a unit of their weight costs; where no row fits, two rows are
exchanged; and what has got cheaper goes back where there is room again.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from quickmeans.kernels import Balanced
from quickmeans.kmeans.sizes import Sizes

_ROUNDING = 1e-9  # of the largest size: sums of weights in another order differ by less
_TRIED = 256  # rows of either cluster that an exchange looks at

Move = tuple[int, int, int]  # row, cluster it goes to, and the place of that in its list


class Packing:
    """Labels among the candidates of rows with weights; moves of single rows bring the sizes of clusters within bounds.

    Parameters
    ----------
    candidates, squares : arrays of shape (n_rows, m)
        -1 stands for no candidate.
    weights : array of shape (n_rows,)
    sizes : Sizes
    n_clusters : int
    """

    def __init__(
        self,
        candidates: NDArray[np.int32],
        squares: NDArray[np.float32],
        weights: NDArray[np.float64],
        sizes: Sizes,
        n_clusters: int,
    ) -> None:
        self.candidates, self.squares, self.weights = candidates, squares.astype(np.float64), weights
        slack = _ROUNDING * sizes.most
        self.least, self.most = sizes.least - slack, sizes.most + slack
        self.place = self.squares.argmin(axis=1)
        every = np.arange(len(weights))
        self.labels = candidates[every, self.place].copy()
        self.own = self.squares[every, self.place]
        self.size = np.bincount(self.labels, weights, n_clusters).astype(np.float64)

    def solve(self) -> tuple[NDArray[np.int32], Balanced, NDArray[np.bool_]]:
        """The labels, whether all sizes are within their bounds, and, if not, which clusters have no room or are short.

        Rows of those without room need candidates outside; those that are short need rows from outside.
        """
        for k in np.argsort(-self.size, kind="stable"):
            self._lighten(int(k))
        for k in np.argsort(self.size, kind="stable"):
            self._fill(int(k))
        if (self.size > self.most).any():
            lightest = self.weights[self.weights > 0].min()
            return self.labels, Balanced.NEEDS_MORE_OUTSIDE, self.size + lightest > self.most
        if (self.size < self.least).any():
            return self.labels, Balanced.NEEDS_MORE_INSIDE, self.size < self.least
        self._return()
        return self.labels, Balanced.ALL, np.zeros(len(self.size), np.bool_)

    def _lighten(self, k: int) -> None:
        """Move rows away from a cluster that is too heavy."""
        for row, to, place in self._cheapest(np.flatnonzero((self.labels == k) & (self.weights > 0)), leave=True):
            if self.size[k] <= self.most:
                return
            if self.labels[row] == k and self.size[to] + self.weights[row] <= self.most:
                self._move(row, to, place)
        while self.size[k] > self.most and self._exchange(k):
            pass

    def _fill(self, k: int) -> None:
        """Move rows to a cluster that is too light."""
        if self.size[k] >= self.least:
            return
        rows = np.flatnonzero((self.candidates == k).any(axis=1) & (self.labels != k) & (self.weights > 0))
        for row, to, place in self._cheapest(rows, leave=False, to=k):
            if self.size[k] >= self.least:
                return
            fits = self.size[to] + self.weights[row] <= self.most
            if fits and self.size[self.labels[row]] - self.weights[row] >= self.least:
                self._move(row, to, place)

    def _cheapest(self, rows: NDArray[np.int64], *, leave: bool, to: int | None = None) -> Iterator[Move]:
        """Moves of these rows in the order of what a unit of weight costs."""
        lists = self.candidates[rows]
        wanted = (lists >= 0) & (lists != self.labels[rows][:, None]) if leave else lists == to
        at, place = np.nonzero(wanted)
        costs = self.squares[rows[at], place] - self.own[rows[at]]
        for i in np.argsort(costs, kind="stable"):
            row, j = int(rows[at[i]]), int(place[i])
            yield row, int(self.candidates[row, j]), j

    def _move(self, row: int, to: int, place: int) -> None:
        self.size[self.labels[row]] -= self.weights[row]
        self.size[to] += self.weights[row]
        self.labels[row], self.place[row], self.own[row] = to, place, self.squares[row, place]

    def _exchange(self, k: int) -> bool:
        """Exchange a row of a cluster that is too heavy for a lighter one of another cluster, the cheapest pair."""
        rows, best = np.flatnonzero((self.labels == k) & (self.weights > 0)), None
        for other in np.unique(self.candidates[rows]):
            if other < 0 or other == k:
                continue
            mine, mine_at = self._with_candidate(rows, int(other))
            theirs, theirs_at = self._with_candidate(np.flatnonzero(self.labels == other), k)
            if not (len(mine) and len(theirs)):
                continue
            lighter = self.weights[mine][:, None] - self.weights[theirs]
            costs = self.weights[mine] * (self.squares[mine, mine_at] - self.own[mine])
            back = self.weights[theirs] * (self.squares[theirs, theirs_at] - self.own[theirs])
            fits = (lighter > 0) & (self.size[other] + lighter <= self.most)
            price = np.where(fits, (costs[:, None] + back) / np.where(fits, lighter, 1), np.inf)
            i, j = np.unravel_index(int(price.argmin()), price.shape)
            if np.isfinite(price[i, j]) and (best is None or price[i, j] < best[0]):
                best = price[i, j], (int(mine[i]), int(other), int(mine_at[i])), (int(theirs[j]), k, int(theirs_at[j]))
        if best is None:
            return False
        self._move(*best[1])
        self._move(*best[2])
        return True

    def _with_candidate(self, rows: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Those of the rows that may go to a cluster, the cheapest, and where it is in their lists."""
        at, place = np.nonzero(self.candidates[rows] == k)
        order = np.argsort(self.squares[rows[at], place] - self.own[rows[at]], kind="stable")[:_TRIED]
        return rows[at[order]], place[order]

    def _return(self) -> None:
        """Moves that lower the objective, as long as all sizes stay within their bounds."""
        away = np.flatnonzero(self.own > self.squares.min(axis=1))
        for row, to, place in self._cheapest(away, leave=True):
            if self.squares[row, place] >= self.own[row]:
                continue
            weight = self.weights[row]
            if self.size[to] + weight <= self.most and self.size[self.labels[row]] - weight >= self.least:
                self._move(row, to, place)
