"""What workers send back of a chunk, and how several such results become one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.kmeans.moments import Moments
from quickmeans.kmeans.refill import farthest
from quickmeans.kmeans.rows import Weights, refuse_not_finite, row_lengths
from quickmeans.kmeans.update import ClusterSums

_FAN_IN = 4  # results that are merged at a time: a worker holds no more of them
POOL = 1024  # rows of all chunks that empty clusters may get
T = TypeVar("T")


def tree(parts: list[T], merge: Callable[[list[T]], T]) -> T:
    """Merge neighbours, four at a time, until one is left: always in the same order."""
    while len(parts) > 1:
        parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


class Locator:
    """Names rows of a Dask array in error messages, where the array itself is not."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    def locate(self, row: int) -> str:
        """A row by its number and that of its chunk."""
        return f"row {row}, in chunk {int(np.searchsorted(np.cumsum(self.sizes), row, 'right'))} of the Dask array"


# ---- moments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extent:
    """Moments of rows about a shift, the sum of their weights, the length of the shortest row."""

    sums: NDArray[np.float64]
    total: float
    shortest: float


def extent(chunk: Any, weights: Weights, shift: NDArray[np.float64], first: int, locator: Locator) -> Extent:
    """The extent of one chunk, whose first row has the number `first`."""
    rows, weights = _arrays(chunk, weights)
    if weights is not None and not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    moments = Moments(shift, 1)
    moments.add(rows, weights)
    if not moments.are_finite():
        refuse_not_finite(locator.locate, first, rows)
        raise ValueError("Squares of the numbers in X overflow float64; scale X.")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    total = float(len(rows) if weights is None else weights.sum())
    return Extent(moments.sums, total, float(lengths.min(initial=np.inf)))


def merge_extents(parts: list[Extent]) -> Extent:
    """The extent of several chunks."""
    sums = np.sum([part.sums for part in parts], axis=0)
    return Extent(sums, sum(part.total for part in parts), min(part.shortest for part in parts))


def _arrays(chunk: Any, weights: Any) -> tuple[NDArray[Any], Weights]:
    """A chunk and its weights as the kernels read them."""
    return np.asarray(chunk), None if weights is None else np.ascontiguousarray(weights, np.float64)


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
    pool: dict[str, NDArray[Any]]  # rows, labels, squared distances and weights


def assigned_part(chunk: Any, weights: Any, assigner: Assigner, n_threads: int, n_pool: int = POOL) -> Part:
    """Assign the rows of one chunk and sum them by cluster."""
    rows, weights = _arrays(chunk, weights)
    geometry = assigner.geometry
    assignment = Assignment.empty(len(rows), geometry.dtype)
    assigner.assign(rows, assignment, n_threads, exact_scores=False)
    assignment.fill_norms(rows, geometry)
    clusters, within = np.unique(assignment.labels, return_inverse=True)
    sums = ClusterSums((len(clusters), rows.shape[1]), geometry, 0.0, n_threads)
    sum_weights = (1.0 if weights is None else weights) / row_lengths(rows, 0) if geometry.spherical else weights
    sums.add(rows, within.astype(np.int32), weights, sum_weights)
    distances = assignment.squared_distances(geometry).astype(np.float64)
    w = np.ones(len(rows)) if weights is None else weights
    far = farthest(np.where(w > 0, distances, 0), n_pool)
    pool: dict[str, NDArray[Any]] = {
        "rows": rows[far],
        "labels": assignment.labels[far],
        "distances": np.where(w > 0, distances, 0)[far],
        "weights": w[far],
    }
    objective = float(distances @ w)
    return Part(clusters.astype(np.int64), sums.raw, sums.weights, sums.sizes, objective, assignment.n_settled, pool)


def merge_parts(parts: list[Part]) -> Part:
    """The sums of several chunks, in their order."""
    clusters = np.unique(np.concatenate([part.clusters for part in parts]))
    shape = (len(clusters), parts[0].sums.shape[1])
    objective, n_settled = sum(part.objective for part in parts), sum(part.n_settled for part in parts)
    sizes = np.zeros(len(clusters), np.int64)
    total = Part(clusters, np.zeros(shape), np.zeros(len(clusters)), sizes, objective, n_settled, {})
    for part in parts:
        at = np.searchsorted(clusters, part.clusters)
        total.sums[at] += part.sums
        total.weights[at] += part.weights
        total.sizes[at] += part.sizes
    pool = {name: np.concatenate([part.pool[name] for part in parts]) for name in parts[0].pool}
    kept = farthest(pool["distances"], POOL)
    return replace(total, pool={name: values[kept] for name, values in pool.items()})


# ---- rows drawn by weight -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Rows with weight drawn by chance: those with the smallest keys."""

    rows: NDArray[Any]
    weights: NDArray[np.float64]
    keys: NDArray[np.float64]

    def smallest(self, count: int) -> "Draw":
        """The rows with the smallest keys, so many at most."""
        chosen = np.argsort(self.keys, kind="stable")[:count]
        return Draw(self.rows[chosen], self.weights[chosen], self.keys[chosen])


def drawn(chunk: Any, weights: Any, count: int, seed: Any) -> Draw:
    """Rows of one chunk, each with the same chance if it has weight."""
    rows, weights = _arrays(chunk, weights)
    weights = np.ones(len(rows)) if weights is None else weights
    keys = np.random.default_rng(seed).random(len(rows))
    place = np.flatnonzero(weights > 0)
    return Draw(rows[place], weights[place], keys[place]).smallest(count)


def merge_draws(parts: list[Draw], count: int) -> Draw:
    """The draw of several chunks."""
    rows, weights, keys = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "weights", "keys")
    )
    return Draw(rows, weights, keys).smallest(count)
