r"""The coarse step: which lists are nearest to a query.

Centers and queries are compared by their coordinates along r leading directions B of the centers, and centers by one
coordinate more, the length of what is outside:

.. math:: \|B'(x - c)\|^2 + \|(c - m) - BB'(c - m)\|^2,

which is the squared distance but for a constant and for the product of both parts outside. Many centers are in groups,
and a query looks into those with the nearest middles. How many directions and how many groups are needed is measured on
a sample of the rows: it must find nearly all of the nearest lists.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.groups import first_directions, grouped
from quickmeans.threads import resolve_threads

# With their last coordinate, points of so many directions are whole vectors of AVX-512.
_RANKS = (31, 63, 127)
_FOUND = 0.97  # the share of the _NEAREST nearest lists that the sample must find
_NEAREST = 32
_LEAST_GROUPED = 1024  # fewer centers are compared as fast as groups of them (word vectors)
_GROUPS_PER_ROOT = 2  # per square root of the number of centers (word vectors: 1 and 4 cost more at equal recall)
_GROUPS = (8, 16, 32, 64, 128)
_SHARE = 4  # groups to look into per group that the wanted lists would fill, in addition


@dataclass(frozen=True)
class CoarseSettings:
    """How the lists of a query are found.

    Attributes
    ----------
    rank : int
        The number of directions; 0: all columns.
    n_looked : int
        Into how many groups a query looks at least; 0: there are no groups.
    """

    rank: int = 0
    n_looked: int = 0


class NearestLists:
    """Finds the lists with the nearest centers, or with those that have the largest products with a query.

    Parameters
    ----------
    centers : array of shape (n_lists, n_features)
    similarity : bool
        Whether products are compared.
    settings : CoarseSettings
    n_threads : int
    """

    def __init__(
        self, centers: NDArray[np.float32], settings: CoarseSettings, n_threads: int, *, similarity: bool
    ) -> None:
        self.settings, self.n_lists = settings, len(centers)
        self._centers, self._similarity = centers, similarity
        directions, points = _points(centers, settings.rank)
        numbers = np.arange(len(points))
        if settings.n_looked:
            labels = grouped(points, round(_GROUPS_PER_ROOT * self.n_lists**0.5), n_threads)
        else:
            labels = np.zeros(len(points), np.int32)
        order, starts = kernels.group_by_label(labels, int(labels.max()) + 1)
        self.n_groups = len(starts) - 1
        levels = [_row_lists(points[order], numbers[order], starts, similarity)]
        if settings.n_looked:
            middles = np.add.reduceat(points[order].astype(np.float64), starts[:-1], axis=0) / np.diff(starts)[:, None]
            whole = np.array([0, self.n_groups])
            levels.insert(0, _row_lists(middles, np.arange(self.n_groups), whole, similarity))
        self._kept = [memory for _, memory in levels]
        self.native = kernels.Coarse([level for level, _ in levels], directions, centers.shape[1])

    def __reduce__(self) -> Any:
        return _made, (self._centers, self.settings, self._similarity)

    def counts(self, m: int) -> list[int]:
        """How many groups and lists are kept in a search for m lists."""
        if not self.settings.n_looked:
            return [m]
        n_groups = self.settings.n_looked + _SHARE * m * self.n_groups // self.n_lists
        return [min(n_groups, self.n_groups) if m < self.n_lists else self.n_groups, m]

    def find(self, queries: NDArray[np.float32], m: int, n_threads: int) -> NDArray[np.int64]:
        """The m nearest lists of every query, nearest first; -1 where its groups have fewer."""
        return self.native.find(queries, self.counts(m), n_threads)


def _made(centers: NDArray[np.float32], settings: CoarseSettings, similarity: bool) -> NearestLists:
    return NearestLists(centers, settings, resolve_threads(None), similarity=similarity)


def chosen(
    centers: NDArray[np.float32], sample: NDArray[np.float32], n_threads: int, *, similarity: bool
) -> NearestLists:
    """The cheapest search that finds nearly all of the nearest lists of the sample."""
    K, D = centers.shape
    exact = NearestLists(centers, CoarseSettings(), n_threads, similarity=similarity)
    m = min(_NEAREST, K // 4)
    if m < 2 or not len(sample):
        return exact
    true = exact.find(sample, m, n_threads)
    for rank in (*(rank for rank in _RANKS if 3 * rank < D and rank < K), 0):
        finder = NearestLists(centers, CoarseSettings(rank), n_threads, similarity=similarity) if rank else exact
        if _share(finder.find(sample, m, n_threads), true) < _FOUND:
            continue
        return finder if K < _LEAST_GROUPED else _grouped(centers, sample, finder, true, n_threads, similarity)
    return exact


def _grouped(
    centers: NDArray[np.float32],
    sample: NDArray[np.float32],
    plain: NearestLists,
    true: NDArray[np.int64],
    n_threads: int,
    similarity: bool,
) -> NearestLists:
    """The same with groups, if so few of them are enough that they pay."""
    found = NearestLists(centers, CoarseSettings(plain.settings.rank, _GROUPS[0]), n_threads, similarity=similarity)
    for n_looked in _GROUPS:
        if n_looked > found.n_groups // 2:
            break
        found.settings = CoarseSettings(plain.settings.rank, n_looked)
        if _share(found.find(sample, true.shape[1], n_threads), true) >= _FOUND:
            return found
    return plain


def _share(found: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    """The share of the true lists that were found."""
    return float((found[:, :, None] == true[:, None, :]).any(axis=1).mean())


def _points(centers: NDArray[np.float32], rank: int) -> tuple[NDArray[np.float32] | None, NDArray[np.float32]]:
    """The directions, and the points of the centers; without directions these are the centers."""
    if not rank:
        return None, np.ascontiguousarray(centers)
    moved = centers - centers.mean(axis=0)
    basis = first_directions(moved, rank)
    inside = moved @ basis
    outside = np.einsum("kd,kd->k", moved, moved) - np.einsum("kd,kd->k", inside, inside)
    points = np.column_stack([centers @ basis, np.sqrt(np.maximum(outside, 0))])
    return np.ascontiguousarray(basis.T, np.float32), np.ascontiguousarray(points, np.float32)


def _row_lists(
    rows: NDArray[np.float64] | NDArray[np.float32],
    ids: NDArray[np.int64],
    starts: NDArray[np.int64],
    similarity: bool,
) -> tuple[kernels.RowLists, object]:
    """Rows in order of their lists, and the memory that must be kept."""
    rows, ids = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(ids, np.int64)
    lists = kernels.RowLists(len(starts) - 1, rows.shape[1], similarity=similarity)
    at_rows, at_ids = (memory.ctypes.data + memory.strides[0] * starts[:-1] for memory in (rows, ids))
    lists.set(np.arange(len(starts) - 1), at_rows, at_ids, np.diff(starts))
    return lists, (rows, ids)
