"""The update step: sums and weights of the clusters, corrected as labels change."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.geometry import Geometry, squared_norms

# A cluster that keeps less than this share of its weight is summed again: eight of the sixteen digits are left.
_CANCELLED = 1e-9


class ClusterSums:
    """The weighted sum of the rows of each cluster, the sum of their weights, and how many rows with weight it has.

    Every sum is taken over the rows in their order, in float64, by one thread: results do not depend on the number of
    threads, and blocks in order give the same bits as all rows at once.

    Parameters
    ----------
    shape : tuple of int
        (n_clusters, n_features).
    geometry : Geometry
    scatter : float
        The weighted sum of squared norms of all centered rows.
    n_threads : int
    """

    def __init__(self, shape: tuple[int, int], geometry: Geometry, scatter: float, n_threads: int) -> None:
        self.geometry, self.scatter, self.n_threads = geometry, scatter, n_threads
        self.raw = np.zeros(shape)
        self.weights = np.zeros(shape[0])
        self.sizes = np.zeros(shape[0], np.int64)
        self._buffer = np.empty(shape)  # fresh memory costs as much as the arithmetic

    def clear(self) -> None:
        """Remove all rows."""
        self.raw[:], self.weights[:], self.sizes[:] = 0, 0, 0

    def add(
        self,
        rows: NDArray[Any],
        labels: NDArray[np.int32],
        weights: NDArray[np.float64] | None = None,
        sum_weights: NDArray[np.float64] | None = None,
    ) -> None:
        """Add rows with their labels and weights; `sum_weights` are what rows are multiplied with in a sum."""
        self._add_members(rows, np.arange(len(rows)), labels, weights if sum_weights is None else sum_weights)
        if weights is None:
            counts = np.bincount(labels, minlength=len(self.sizes))
            self.sizes += counts
            self.weights += counts
        else:
            self.sizes += np.bincount(labels[weights > 0], minlength=len(self.sizes))
            np.add.at(self.weights, labels, weights)

    def exchange(
        self,
        rows: NDArray[Any],
        members: NDArray[np.int64],
        old: NDArray[np.int32],
        new: NDArray[np.int32],
        weights: NDArray[np.float64] | None = None,
        sum_weights: NDArray[np.float64] | None = None,
    ) -> None:
        """Move some members of these rows, whose weights are given, from their old clusters to new ones."""
        signs = np.tile([-1.0, 1.0], len(members))
        labels = np.stack([old, new], axis=1).ravel()
        w = np.ones(len(members)) if weights is None else weights
        factors = signs * np.repeat(w if sum_weights is None else sum_weights, 2)
        self._add_members(rows, np.repeat(members, 2), labels, factors)
        np.add.at(self.sizes, labels, (signs * np.repeat(w > 0, 2)).astype(np.int64))
        np.add.at(self.weights, labels, signs * np.repeat(w, 2))

    def move(self, row: NDArray[np.float64], sum_weight: float, weight: float, old: int, new: int) -> None:
        """Move one row from one cluster to another."""
        for k, sign in ((old, -1), (new, 1)):
            self.raw[k] += sign * sum_weight * row
            self.weights[k] += sign * weight
            self.sizes[k] += sign

    def are_sound(self, weights_before: NDArray[np.float64]) -> bool:
        """After exchanges: whether no cluster has lost so much of its weight that only rounding may be left."""
        self.weights[self.sizes == 0] = 0
        self.raw[self.sizes == 0] = 0
        return bool((self.weights >= _CANCELLED * weights_before)[self.sizes > 0].all())

    def means(self, fallback: NDArray[np.float64]) -> NDArray[np.float64]:
        """The centered means (directions of the sums if spherical); the fallback for clusters without weight."""
        return self._means(self._centered(), fallback)[0]

    def objective(self, centers: NDArray[np.float64]) -> float:
        """sum_i w_i |x_i - m - c|^2 for the labels of the rows and these centered centroids."""
        return self._objective(float(np.vdot(centers, self._centered())), squared_norms(centers))

    def step(self, centers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
        """The means, how far each is from the given centroid, and the objective with these centroids and the means."""
        centered = self._centered()
        before = self._objective(float(np.vdot(centers, centered)), squared_norms(centers))
        means, divisors = self._means(centered, centers)
        squares = squared_norms(means)
        center_shift = np.sqrt(squared_norms(np.subtract(means, centers, out=self._buffer)))
        return means, center_shift, before, self._objective(float(divisors @ squares), squares)

    def _centered(self) -> NDArray[np.float64]:
        """Sums of x - m, in the buffer."""
        np.multiply(self.weights[:, None], self.geometry.mean, out=self._buffer)
        return np.subtract(self.raw, self._buffer, out=self._buffer)

    def _means(
        self, centered: NDArray[np.float64], fallback: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means, and what the sums were divided by (zero where the fallback stands)."""
        divisors = np.sqrt(squared_norms(centered)) if self.geometry.spherical else self.weights
        empty = (self.weights <= 0) | (divisors <= 0)
        means = centered / np.where(empty, 1.0, divisors)[:, None]
        means[empty] = fallback[empty]
        return means, np.where(empty, 0.0, divisors)

    def _objective(self, cross: float, squares: NDArray[np.float64]) -> float:
        """scatter - 2 sum_k <c_k, s_k> + sum_k n_k |c_k|^2."""
        return max(float(self.scatter - 2 * cross + self.weights @ squares), 0.0)

    def _add_members(
        self,
        rows: NDArray[Any],
        members: NDArray[np.int64],
        labels: NDArray[np.int32],
        factors: NDArray[np.float64] | None,
    ) -> None:
        order, starts = kernels.group_by_label(labels, len(self.weights))
        ordered = None if factors is None else factors[order]
        kernels.add_members(rows, members[order], starts, ordered, self.raw, self.n_threads)
