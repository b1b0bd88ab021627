"""Centroids of an earlier fit as a start: more of them, fewer, or the same number; and how far they have drifted.

New centroids split the clusters whose two halves save most; centroids go whose rows lose least by going to their second
nearest. Clusters that stay keep their numbers; of those beyond the last number, each takes that of one that has gone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.context import Context
from quickmeans.kmeans.dense import DenseRows, DenseSearch
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import check_centers, is_flat, searched_rows

_FAR = 1e3  # spreads: no row chooses a centroid that is so far from all of them
_TRACE = 1e-6  # of the weight of a mean row: what every old centroid has as a row, so that none is empty
_SHARE = 4  # at most one centroid in so many is added, or removed, before gains and prices are found again


@dataclass(frozen=True)
class Drift:
    """How the clusters of a fit differ from those of the model that it began with.

    Attributes
    ----------
    origin : array of int64, shape (n_clusters,)
        The number that each cluster had in that model; -1 if it is new.
    distance : array of float64, shape (n_clusters,)
        How far its centroid has moved since; NaN if it is new.
    removed : array of int64
        The numbers of the clusters of that model that are gone.
    """

    origin: NDArray[np.int64]
    distance: NDArray[np.float64]
    removed: NDArray[np.int64]

    @cached_property
    def is_new(self) -> NDArray[np.bool_]:
        """Whether each cluster is new."""
        return self.origin < 0

    @classmethod
    def between(cls, old: NDArray[Any], origin: NDArray[np.int64], new: NDArray[Any]) -> "Drift":
        """The drift of centroids that began as those of these numbers."""
        moved = np.linalg.norm(new.astype(np.float64) - old.astype(np.float64)[origin], axis=1)
        gone = np.setdiff1d(np.arange(len(old)), origin)
        return cls(origin, np.where(origin < 0, np.nan, moved), gone)

    def __str__(self) -> str:
        known = self.distance[~self.is_new]
        parts = [f"{len(known)} clusters moved by {np.median(known):.5g} (median), at most {known.max():.5g}"]
        parts += [f"{self.is_new.sum()} are new"] if self.is_new.any() else []
        parts += [f"{len(self.removed)} are gone"] if len(self.removed) else []
        return "; ".join(parts)


def resized(
    points: Points, settings: Settings, centers: NDArray[Any], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """As many centroids as the settings ask for, from those of an earlier fit, and the number that each had there.

    A new centroid had -1. `centers` and the result are not centered.
    """
    n, D = centers.shape
    if points.n_columns != D:
        raise ValueError(f"The model to begin with has {D} features, and X has {points.n_columns}; they must agree.")
    K, geometry = settings.n_clusters, points.geometry
    old = geometry.centered(check_centers(centers, (n, D), geometry))
    if n == K:
        return np.asarray(centers, np.float64), np.arange(K)
    context = Context(settings, seed, lambda text: None, lambda move, objective: False)
    rows = searched_rows(points, context)[0]
    if n < K:
        new, origin = _grown(points, rows, old, K), np.concatenate([np.arange(n), np.full(K - n, -1)])
    else:
        origin = _renumbered(_kept(points, rows, old, K), K)
        new = old[origin]
    return new if geometry.spherical else new + geometry.mean, origin


def _search(points: Points, rows: DenseRows, centers: NDArray[np.float64]) -> DenseSearch[Any]:
    """A search among these rows from these centered centroids, after one iteration."""
    kind: Any = kernels.Search if is_flat(rows.n_columns, len(centers)) else kernels.LocalSearch
    search = DenseSearch.of(rows, centers, points.geometry, kind)
    search.native.iterate(1)
    return search


def _grown(points: Points, rows: DenseRows, centers: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """More centered centroids; the first are those that were, or the halves of their clusters."""
    n, geometry = len(centers), points.geometry
    inner = (centers - (rows.origin - geometry.mean)) / rows.unit
    traced = DenseRows(
        np.concatenate([rows.rows, inner.astype(np.float32)]),
        np.concatenate([rows.weights, np.full(n, _TRACE)]),
        rows.origin, rows.unit, rows.weight_unit, rows.spherical, rows.n_threads,
    )  # fmt: skip
    far = centers[0].copy()
    far[0] = np.abs(centers).max() + _FAR * max(float((points.scatter / points.total) ** 0.5), 1e-30)
    search = _search(points, traced, np.concatenate([centers, np.broadcast_to(far, (K - n, len(far)))]))
    native, slots = search.native, np.arange(K)  # where the centroid of each number is
    while empty := native.n_empty:
        before, labels, was_empty = search.centers(), native.labels(), native.cluster_weights() == 0
        if not native.swap(min(empty, max((K - empty) // _SHARE, 1))):
            break
        native.iterate(1)
        filled = np.flatnonzero(was_empty & (native.cluster_weights() > 0))
        before[slots[:n]] = centers  # what is old stays near where it was at first
        _follow(slots, filled, before, search.centers(), labels, native.labels())
    found, unfilled = search.centers()[slots], (native.cluster_weights() == 0)[slots]
    found[unfilled] = found[np.arange(K)[unfilled] % n]  # there are too few different rows
    return found


def _follow(
    slots: NDArray[np.int64],
    filled: NDArray[np.int64],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    old_labels: NDArray[np.int32],
    labels: NDArray[np.int32],
) -> None:
    """Let the number of a cluster that was split follow the half that is nearer to the centroid it had before.

    `filled` are the slots of the other halves, most of whose rows were in the cluster.
    """
    order, starts = kernels.group_by_label(labels, len(slots))
    number = np.argsort(slots)
    for new in filled:
        old = int(np.bincount(old_labels[order[starts[new] : starts[new + 1]]]).argmax())
        if np.linalg.norm(before[old] - after[new]) < np.linalg.norm(before[old] - after[old]):
            slots[number[old]], slots[number[new]] = new, old
            number[old], number[new] = number[new], number[old]


def _kept(points: Points, rows: DenseRows, centers: NDArray[np.float64], K: int) -> NDArray[np.int64]:
    """The numbers of K centered centroids; those have gone whose rows lose least by it."""
    numbers = np.arange(len(centers))
    while len(numbers) > K:
        most = min(len(numbers) - K, max(len(numbers) // _SHARE, 1))
        removed = _least_useful(points, rows, centers[numbers], most)
        numbers = np.delete(numbers, removed)
    return numbers


def _least_useful(points: Points, rows: DenseRows, centers: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """At most so many centroids whose rows lose least, none of which would get most rows of another; at least one."""
    search, n = _search(points, rows, centers), len(centers)
    moved = (centers - (rows.origin - points.geometry.mean)) / rows.unit
    lists = kernels.CandidateLists(moved.astype(np.float32), rows.n_threads)
    nearest, squares = lists.list(rows.rows, search.native.labels(), 2)
    prices = np.bincount(nearest[:, 0], rows.weights * (squares[:, 1] - squares[:, 0]), n)
    order, starts = kernels.group_by_label(nearest[:, 0], n)
    frozen, removed = np.zeros(n, np.bool_), list[int]()
    for k in np.argsort(prices, kind="stable"):
        if frozen[k] or len(removed) == most:
            continue
        seconds = nearest[order[starts[k] : starts[k + 1]], 1]
        if len(seconds):
            frozen[np.bincount(seconds, minlength=n).argmax()] = True
        removed.append(int(k))
    return np.array(removed)


def _renumbered(kept: NDArray[np.int64], K: int) -> NDArray[np.int64]:
    """The kept numbers as origins of 0 to K - 1: those below K stay where they are."""
    origin = np.full(K, -1)
    origin[kept[kept < K]] = kept[kept < K]
    origin[origin < 0] = kept[kept >= K]
    return origin
