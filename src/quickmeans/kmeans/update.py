"""The update step: sums and weights of the clusters, kept up to date as labels change."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.points import Points, row_blocks, squared_norms

_CANCELLED = 1e-9  # a cluster that keeps less than this share of its weight is summed anew
FEW = 0.3  # with fewer changes than this share of the rows, the sums are corrected and not computed anew


class ClusterSums:
    """The weighted sum of the centred rows of each cluster, and the sum of their weights.

    Every sum is taken over the rows in their order, in float64, by one thread.
    """

    def __init__(self, points: Points, n_clusters: int) -> None:
        self.points = points
        self.raw = np.zeros((n_clusters, points.X.shape[1]))
        self.weights = np.zeros(n_clusters)
        self.sizes = np.zeros(n_clusters, np.int64)
        self._labels: NDArray[np.int32] | None = None
        self._room = np.empty_like(self.raw)  # fresh memory costs as much as the arithmetic

    def follow(self, labels: NDArray[np.int32]) -> int:
        """Bring the sums to these labels; returns how many have changed."""
        changed = np.arange(len(labels)) if self._labels is None else np.flatnonzero(self._labels != labels)
        anew = self._labels is None or len(changed) > FEW * len(labels) or sp.issparse(self.points.X)
        if not anew and len(changed):
            assert self._labels is not None
            anew = not self._correct(changed, self._labels[changed], labels[changed])
        if anew:
            self._compute(labels)
        self._labels = labels.copy()
        return len(changed)

    @property
    def centred(self) -> NDArray[np.float64]:
        """Sums of x - mean; the array is used again by the next call."""
        np.multiply(self.weights[:, None], self.points.frame.mean, out=self._room)
        return np.subtract(self.raw, self._room, out=self._room)

    def means(self, fallback: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centred means, or the directions of the sums; of a cluster without weight, the fallback."""
        return self._means(self.centred, fallback)[0]

    def objective(self, centers: NDArray[np.float64]) -> float:
        """sum_i w_i |x_i - m - c|^2 for these labels and centres m + c."""
        return self._objective(float(np.vdot(centers, self.centred)), squared_norms(centers))

    def step(self, centers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
        """The means, how far they are from the given centres, and the objective with these and with the means."""
        centred = self.centred
        before = self._objective(float(np.vdot(centers, centred)), squared_norms(centers))
        means, divisors = self._means(centred, centers)
        squares = squared_norms(means)
        moves = np.sqrt(squared_norms(np.subtract(means, centers, out=self._room)))
        return means, moves, before, self._objective(float(divisors @ squares), squares)

    def _means(
        self, centred: NDArray[np.float64], fallback: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means, and what the sums were divided by (zero where the fallback stands)."""
        divisors = np.sqrt(squared_norms(centred)) if self.points.frame.spherical else self.weights
        empty = (self.weights <= 0) | (divisors <= 0)
        means = centred / np.where(empty, 1.0, divisors)[:, None]
        means[empty] = fallback[empty]
        return means, np.where(empty, 0.0, divisors)

    def _objective(self, cross: float, squares: NDArray[np.float64]) -> float:
        """scatter - 2 sum_k <c_k, s_k> + sum_k n_k |c_k|^2."""
        return max(float(self.points.scatter - 2 * cross + self.weights @ squares), 0.0)

    def _compute(self, labels: NDArray[np.int32]) -> None:
        self.clear()
        for part, rows in row_blocks(self.points.X):
            self.add(part, rows, labels[part])

    def clear(self) -> None:
        """Back to no rows at all."""
        self.raw[:], self.weights[:], self.sizes[:] = 0, 0, 0

    def add(self, part: slice, rows: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Count the rows of one part of X. Parts in order give the same bits as all rows at once."""
        pulls = None if self.points.pulls is None else self.points.pulls[part]
        self._add(rows, np.arange(len(rows)), labels, pulls)
        counts = np.bincount(labels, minlength=len(self.sizes))
        self.sizes += counts
        if self.points.weights is None:
            self.weights += counts
        else:
            np.add.at(self.weights, labels, self.points.weights[part])

    def move(self, x: NDArray[np.float64], pull: float, weight: float, old: int, new: int) -> None:
        """Take a row, that has been counted, from one cluster to another."""
        for k, sign in ((old, -1), (new, 1)):
            self.raw[k] += sign * pull * x
            self.weights[k] += sign * weight
            self.sizes[k] += sign

    def _correct(self, changed: NDArray[np.int64], old: NDArray[np.int32], new: NDArray[np.int32]) -> bool:
        """Take rows away from their old clusters and add them to the new ones; False if only rounding may be left."""
        before = self.weights.copy()
        self.exchange(self.points.X, changed, changed, old, new)
        return self.are_sound(before)

    def exchange(
        self,
        rows: NDArray[Any],
        members: NDArray[np.int64],
        numbers: NDArray[np.int64],
        old: NDArray[np.int32],
        new: NDArray[np.int32],
    ) -> None:
        """Some members of these rows, with their numbers in X, go from their old clusters to new ones.

        Row after row leaves one and joins the other, so parts in order give the same bits as all rows at once.
        """
        signs = np.tile([-1.0, 1.0], len(members))
        labels = np.stack([old, new], axis=1).ravel()
        pulls, weights = (signs * np.repeat(_some(w, numbers), 2) for w in (self.points.pulls, self.points.weights))
        self._add(rows, np.repeat(members, 2), labels, pulls)
        np.add.at(self.sizes, labels, signs.astype(np.int64))
        np.add.at(self.weights, labels, weights)

    def are_sound(self, before: NDArray[np.float64]) -> bool:
        """After exchanges: whether no cluster has lost so much of its weight that only rounding may be left."""
        self.weights[self.sizes == 0] = 0
        self.raw[self.sizes == 0] = 0
        return bool((self.weights >= _CANCELLED * before)[self.sizes > 0].all())

    def _add(
        self,
        rows: NDArray[np.float64],
        members: NDArray[np.int64],
        labels: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
    ) -> None:
        order, starts = by_label(labels, len(self.weights))
        ordered = None if weights is None else weights[order]
        kernels.add_members(rows, members[order], starts, ordered, self.raw, self.points.n_threads)


def _some(weights: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.ones(len(rows)) if weights is None else weights[rows]


def by_label(labels: NDArray[np.int32], n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions in order of their labels, and where each label's begin."""
    return kernels.group_by_label(labels, n_labels)
