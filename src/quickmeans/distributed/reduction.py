"""What workers send back of a chunk, and how two such things become one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.moments import Moments
from quickmeans.kmeans.points import Points, refuse_bad_rows
from quickmeans.kmeans.refill import farthest
from quickmeans.kmeans.screen import Assignment, ProductRows, Screen, fill_norms
from quickmeans.kmeans.update import ClusterSums

_FAN_IN = 4
POOL = 1024  # rows of all chunks that are offered to empty clusters
T = TypeVar("T")


def tree(parts: list[T], merge: Callable[[list[T]], T]) -> T:
    """Merge neighbours, four at a time, until one is left: always in the same order."""
    while len(parts) > 1:
        parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


# ---- moments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extent:
    """Moments of the rows about a shift, the sum of their weights, the shortest row."""

    sums: NDArray[np.float64]
    total: float
    shortest: float


def extent(
    rows: NDArray[Any], weights: NDArray[np.float64] | None, shift: NDArray[np.float64], first: int, locate: Any
) -> Extent:
    """Of one chunk, whose first row has this number."""
    if weights is not None and not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    rows = np.asarray(rows)
    moments = Moments(shift, 1)
    moments.add(rows, weights)
    if not moments.are_finite():
        refuse_bad_rows(locate, first, rows)
        raise ValueError("Squares of the numbers in X overflow float64; scale X.")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    return Extent(
        moments.sums, float(len(rows) if weights is None else weights.sum()), float(lengths.min(initial=np.inf))
    )


def merge_extents(parts: list[Extent]) -> Extent:
    """Of several chunks."""
    sums = np.sum([part.sums for part in parts], axis=0)
    return Extent(sums, sum(part.total for part in parts), min(part.shortest for part in parts))


# ---- one pass of Lloyd ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The sums of those clusters that have rows, and the rows farthest from their centroids."""

    clusters: NDArray[np.int64]
    sums: NDArray[np.float64]
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]
    objective: float
    n_settled: int
    spare: dict[str, NDArray[Any]]  # rows, their labels, squared distances, weights


def assigned_part(
    rows: NDArray[Any],
    weights: NDArray[np.float64] | None,
    screen: Screen | ProductRows,
    n_threads: int,
    n_spare: int = POOL,
) -> Part:
    """One chunk: every row to its nearest centroid, the rows of every cluster summed; some may be spared."""
    rows = np.asarray(rows)
    found = Assignment.empty(len(rows), screen.dtype)
    screen.assign(rows, found, n_threads, settle_all=False)
    fill_norms(rows, screen.frame, found)
    points = Points.of_frame(rows, weights, n_threads, screen.frame)
    clusters, within = np.unique(found.labels, return_inverse=True)
    sums = ClusterSums(points, len(clusters))
    sums.add(slice(0, len(rows)), rows, within.astype(np.int32))
    distances = found.squared_distances(screen.frame).astype(np.float64)
    w = np.ones(len(rows)) if weights is None else weights
    far = farthest(np.where(w > 0, distances, 0), n_spare)
    spare: dict[str, NDArray[Any]] = {
        "rows": rows[far],
        "labels": found.labels[far],
        "distances": np.where(w > 0, distances, 0)[far],
        "weights": w[far],
    }
    return Part(
        clusters.astype(np.int64), sums.raw, sums.weights, sums.sizes, float(distances @ w), found.n_settled, spare
    )


def merge_parts(parts: list[Part]) -> Part:
    """The sums of several chunks, in their order."""
    clusters = np.unique(np.concatenate([part.clusters for part in parts]))
    shape = (len(clusters), parts[0].sums.shape[1])
    total = Part(clusters, np.zeros(shape), np.zeros(len(clusters)), np.zeros(len(clusters), np.int64),
                 sum(part.objective for part in parts), sum(part.n_settled for part in parts), {})  # fmt: skip
    for part in parts:
        at = np.searchsorted(clusters, part.clusters)
        total.sums[at] += part.sums
        total.weights[at] += part.weights
        total.sizes[at] += part.sizes
    spare = {name: np.concatenate([part.spare[name] for part in parts]) for name in parts[0].spare}
    kept = farthest(spare["distances"], POOL)
    return replace(total, spare={name: values[kept] for name, values in spare.items()})


# ---- k-means|| ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Rows drawn by weight times squared distance: those with the smallest keys."""

    rows: NDArray[Any]
    keys: NDArray[np.float64]


def drawn(
    rows: NDArray[Any], weights: NDArray[np.float64] | None, screen: Screen, n_threads: int, count: int, seed: Any
) -> Draw:
    """Of one chunk. A key is an exponential variable over the weight (Efraimidis and Spirakis, 2006)."""
    rows = np.asarray(rows)
    found = Assignment.empty(len(rows), screen.dtype)
    screen.assign(rows, found, n_threads)
    prices = found.squared_distances(screen.frame).astype(np.float64) * (1.0 if weights is None else weights)
    chances = np.random.default_rng(seed).exponential(size=len(rows))
    keys = np.divide(chances, prices, out=np.full(len(rows), np.inf), where=prices > 0)
    return _smallest(rows, keys, count)


def merge_draws(parts: list[Draw], count: int) -> Draw:
    """Of several chunks."""
    return _smallest(
        np.concatenate([part.rows for part in parts]), np.concatenate([part.keys for part in parts]), count
    )


def _smallest(rows: NDArray[Any], keys: NDArray[np.float64], count: int) -> Draw:
    chosen = np.argsort(keys, kind="stable")[:count]
    chosen = chosen[np.isfinite(keys[chosen])]
    return Draw(rows[chosen], keys[chosen])
