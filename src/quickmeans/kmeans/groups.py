r"""Groups of centroids, through which a row finds its nearest one without looking at all.

The coordinates of the centroids along a few leading directions, the columns of A, are put in groups by a few
iterations of k-means. With the middles g and the radii r of the groups, a row with y = x - m looks into the groups with

.. math:: \|A'y - g\|^2 \le \min_h \|A'y - h\|^2 + w d \sqrt s,

where s is the mean squared distance of the centroids' coordinates from their middles, and w the reach, which is
calibrated. First d is the distance of the best centroid in one group near the row. After the groups within a quarter
of that reach, d is the distance of the best centroid found, and says how far the row looks in the end. (On word
vectors and images, with the first d alone 0.9 to 1.5 times as many centroids are compared.) If the result must be
certain, a row looks into the groups with

.. math:: \|A'y - g\| \le d + r,

where d is the distance from the best centroid found before: the triangle inequality excludes all others.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.geometry import squared_norms

LEAST_CENTERS = 1024  # fewer centroids are compared faster than groups are chosen
_PER_ROOT = 4.0  # groups per square root of the number of centroids (word vectors, images: 8 cost as much or more)
_LEAST_SIZE = 32  # centroids of a group on the average: two panels
NARROW = 48  # coordinates that groups are made of, at most: more choose no better (word vectors)
_ITERATIONS = 6  # of k-means over the points; more change little
_SAMPLE = 64  # points per group in all iterations but the last
_SEED = 0


@dataclass(frozen=True)
class Groups:
    """The group of every centroid, and the reach with which rows choose groups.

    Attributes
    ----------
    labels : array of shape (n_clusters,)
        Group numbers from 0 on, none of them empty.
    reach : float
        The w above.
    """

    labels: NDArray[np.int32]
    reach: float

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.labels.max()) + 1

    def some(self, centers: NDArray[np.bool_]) -> "Groups":
        """The groups of some of the centroids."""
        return replace(self, labels=np.unique(self.labels[centers], return_inverse=True)[1].astype(np.int32))


def usual_count(n_clusters: int) -> int:
    """How many groups make the search for the nearest of so many centroids cheap."""
    return max(1, min(round(_PER_ROOT * math.sqrt(n_clusters)), n_clusters // _LEAST_SIZE))


def grouped(points: NDArray[Any], n_groups: int, n_threads: int) -> NDArray[np.int32]:
    """So many groups of these points by their first coordinates, or fewer; the same for the same points."""
    K, points = len(points), np.ascontiguousarray(points[:, :NARROW])
    rng = np.random.default_rng(_SEED)
    some = points[np.sort(rng.choice(K, min(K, _SAMPLE * n_groups), replace=False))]
    middles = some[rng.choice(len(some), n_groups, replace=False)].astype(np.float64)
    for _ in range(_ITERATIONS):
        middles = _means(some, _nearest(some, middles, n_threads), middles, n_threads)
    labels = _nearest(points, middles, n_threads)
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def _nearest(points: NDArray[Any], middles: NDArray[np.float64], n_threads: int) -> NDArray[np.int32]:
    zero, offset = np.zeros(points.shape[1]), -squared_norms(middles) / 2
    return kernels.Screen(None, middles.astype(points.dtype), zero, None, offset, None).label(points, n_threads)[0]


def _means(
    points: NDArray[Any], labels: NDArray[np.int32], middles: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]:
    """The means of the groups; an empty group keeps its middle."""
    order, starts = kernels.group_by_label(labels, len(middles))
    sums, sizes = np.zeros_like(middles), np.diff(starts)[:, None]
    kernels.add_members(points, order, starts, None, sums, n_threads)
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), middles)


def first_directions(centers: NDArray[Any], rank: int) -> NDArray[Any]:
    """At most `rank` orthonormal columns near the leading right singular vectors, the same for the same centroids."""
    width = min(*centers.shape, rank + 8)
    start = np.random.default_rng(_SEED).standard_normal((centers.shape[1], width)).astype(centers.dtype)
    return leading_directions(centers, leading_directions(centers, start))[:, :rank]


def leading_directions(centers: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    """One step of subspace iteration towards the leading right singular vectors, in descending order."""
    Q, _ = np.linalg.qr(centers.T @ (centers @ start))
    B = centers @ Q
    _, rotation = np.linalg.eigh(B.T @ B)
    return np.asarray(Q @ rotation[:, ::-1])
