"""Swaps of centroids where bounds on sizes bind: a cluster that its rows can leave cheaply, for a half of another one.

The clusters of a fit without bounds are the wrong ones to start from where one of them holds several times what it may:
its rows fill up the clusters around it. As in :mod:`quickmeans.kmeans.swaps`, cheap centroids go to where a split saves
most; what it costs to leave a cluster includes the prices of the others, which say how scarce their room is.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.rows import Points

_POWERS = 3  # steps of the power iteration for the direction of a split
_CHUNK_ENTRIES = 1 << 22  # of rows that are looked at together
_LEAST_GAIN = 1e-4  # of the objective: smaller swaps are not worth their iterations


class Lists(Protocol):
    """The candidates of rows and their squared distances, and the prices of clusters."""

    candidates: NDArray[np.int32]
    squares: NDArray[np.float32]
    prices: NDArray[np.float64]


def swapped(
    points: Points, lists: Lists, labels: NDArray[np.int32], centers: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], int]:
    """The centered centroids after at most so many swaps that promise to pay, and how many there were."""
    K, weights = len(centers), np.ones(len(labels)) if points.weights is None else points.weights
    losses = _losses(lists, labels, weights, K)
    halves = _Halves(points, labels, weights, K)
    order, cheap = np.argsort(-halves.gains, kind="stable"), np.argsort(losses, kind="stable")
    result, touched, count, at = centers.copy(), np.zeros(K, np.bool_), 0, 0
    for split in order:
        if count == most or touched[split]:
            continue
        while at < K and (touched[cheap[at]] or cheap[at] == split):
            at += 1
        if at == K or halves.gains[split] - losses[cheap[at]] <= _LEAST_GAIN * halves.scatter / K:
            break
        removed = cheap[at]
        touched[[split, removed]] = True
        result[split], result[removed] = halves.pair(int(split), centers[split])
        count += 1
    return result, count


def _losses(lists: Lists, labels: NDArray[np.int32], weights: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """What the rows of each cluster would lose without it, at the prices of the others."""
    costs = lists.squares + lists.prices[np.maximum(lists.candidates, 0)]
    own = lists.candidates == labels[:, None]
    others = np.where(own | (lists.candidates < 0), np.inf, costs).min(axis=1)
    mine = np.where(own, costs, np.inf).min(axis=1)
    lost = np.where(np.isfinite(mine) & np.isfinite(others), np.maximum(others - mine, 0), 0)
    return np.asarray(np.bincount(labels, weights * lost, K), np.float64)


class _Halves:
    """Every cluster cut in two across the direction of its largest spread."""

    def __init__(self, points: Points, labels: NDArray[np.int32], weights: NDArray[np.float64], K: int) -> None:
        self._points, self._labels, self._weights = points, labels, weights
        D = points.n_columns
        sizes = np.bincount(labels, weights, K)
        filled = np.where(sizes > 0, sizes, 1)[:, None]
        self._means = self._sums(np.zeros((K, D)), None, K)[0] / filled
        direction = np.random.default_rng(0).standard_normal((K, D))
        for _ in range(_POWERS):
            direction, _, self.scatter = self._sums(self._means, direction, K)
            lengths = np.linalg.norm(direction, axis=1, keepdims=True)
            direction /= np.where(lengths > 0, lengths, 1)
        ahead, n_ahead, _ = self._sums(self._means, direction, K, one_side=True)
        n_behind = sizes - n_ahead
        both = (n_ahead > 0) & (n_behind > 0)
        self._ahead = ahead / np.where(both, n_ahead, 1)[:, None]
        self._behind = -ahead / np.where(both, n_behind, 1)[:, None]
        apart = ((self._ahead - self._behind) ** 2).sum(axis=1)
        self.gains = np.where(both, n_ahead * n_behind / filled[:, 0] * apart, 0)

    def pair(self, k: int, center: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The means of both halves of a cluster with this centered mean."""
        return center + self.unit * self._behind[k], center + self.unit * self._ahead[k]

    def _sums(
        self, means: NDArray[np.float64], direction: NDArray[np.float64] | None, K: int, *, one_side: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Sums of rows minus means: of all, by their part in a direction, or of those ahead; weights; the scatter."""
        sums, totals, scatter = np.zeros(means.shape), np.zeros(K), 0.0
        step = max(_CHUNK_ENTRIES // means.shape[1], 1)
        for place, block, _, unit in self._points.float_blocks():
            self.unit = unit
            for begin in range(0, len(block), step):
                part = slice(place.start + begin, min(place.start + begin + step, place.stop))
                labels, factors = self._labels[part], self._weights[part]
                rows = block[begin : begin + step] - means[labels].astype(np.float32)
                scatter += float(factors @ np.einsum("nd,nd->n", rows, rows))
                if direction is not None:
                    along = np.einsum("nd,nd->n", rows, direction[labels].astype(np.float32))
                    factors = factors * (along > 0 if one_side else along)
                order, starts = kernels.group_by_label(labels, K)
                kernels.add_members(rows, order, starts, factors[order], sums, self._points.n_threads)
                totals += np.bincount(labels, factors, K)
        return sums, totals, scatter
