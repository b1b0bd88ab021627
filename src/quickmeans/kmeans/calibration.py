r"""The choice of a screen: which product, and with which margin.

A screen costs its multiply-adds and the exact scores of the candidates that it leaves. Both are counted on a sample of
the rows, with the least margin that keeps the objective of the sample within `TARGET` of that of an exact assignment,
and the cheapest screen is taken. The screens that are tried are projections on the leading singular vectors of the
centroids: they cost next to nothing to find and to follow as the centroids move. The screen that is kept for new rows
is calibrated on more rows, and has groups of centroids where that is cheaper.
"""

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.kmeans.cost import cost_per_row
from quickmeans.kmeans.groups import (
    LEAST_CENTERS,
    NARROW,
    Groups,
    first_directions,
    grouped,
    leading_directions,
    usual_count,
)
from quickmeans.kmeans.reach import MARGINS, with_least_margin, with_reach
from quickmeans.kmeans.rows import Index, Points, Rows
from quickmeans.kmeans.screen import CERTAIN, Screen
from quickmeans.threads import with_one_blas_thread
from quickmeans.transform import sparse_als

# How much the objective of the sample may exceed that of an exact assignment: 1e-4 less than the 5e-4 that is promised.
TARGET = 4e-4
LAST_TARGET = 1e-4  # the same for the screen that is kept, whose errors no later pass mends
RANKS = (8, 16, 32, 48, 64, 96, 128, 192)
_SAMPLE = 8192  # rows, at most
_SAMPLE_ENTRIES = 1 << 21  # 16 MB in float64
_SAMPLE_MACS = 1 << 30  # of an exact assignment of the sample, at most: a tenth of a second on a core
_LAST_MACS = 1 << 34  # of the same for the screen that is kept: a quarter of a second on two cores
_TRIAL_ROWS = 512  # on which groups of centroids along more or fewer directions are compared
_LEAST_MEMBERS = 4.0  # of a cluster whose rows are moved away from their mean
_LEAST_LEFT = 0.5  # rows of a cluster without those that are taken to be new: its centroid is one of others
_PROJECTED_BYTES = 64 << 20  # that projected rows may take
_GROWTH = 2.0  # a screen that lists so many times more candidates than at first is chosen anew
_LEAST_ROWS = 16384  # a trial takes as long as to compare some ten thousand rows with all centroids
_LEAST_MACS = 4096  # of an exact assignment of a row: no screen lists and settles candidates in less time
_TRIALS = 2  # the first centroids are mostly rows of X, and a screen for them is no screen for means


class ScreenChooser:
    """Makes screens for centroids that move: the first two times by trying, then of the same kind again.

    Parameters
    ----------
    points : Points
    seed : int or sequence of int
        Of the random numbers that the choice takes.
    shortlist : int
        Of the screens.
    compression : float, optional
        If given, the last screen is a sparse product that is so many times smaller than the centroids.
    project : bool
        Whether all rows are compared with the screens in every iteration, so that their projections are worth keeping.
    """

    groups: Groups | None = None  # of all screens, where there are so many centroids that no other screen is cheaper
    rows_between = 1.0  # rows per centroid between two screens in mini-batches: until then few centroids have moved

    def __init__(
        self,
        points: Points,
        seed: int | Sequence[int],
        *,
        shortlist: int = 0,
        compression: float | None = None,
        project: bool = True,
    ) -> None:
        self.geometry, self.n_threads, self.n_rows = points.geometry, points.n_threads, len(points)
        self.seed, self.shortlist, self.compression = seed, shortlist, compression
        self.basis: NDArray[Any] | None = None
        self.basis_of: NDArray[np.float64] | None = None
        self.rank, self.margin, self.trials = 0, CERTAIN, _TRIALS
        self.rows: Rows | None = points.rows if project else None  # to be projected
        self.projected: NDArray[Any] | None = None
        if not project or points.rows.samples_first:  # mini-batches outlive the rows
            self.sample = self._sample_of(points.rows)

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random numbers."""
        return np.random.default_rng(self.seed)

    @cached_property
    def sample(self) -> NDArray[Any]:
        """Rows to calibrate on."""
        assert self.rows is not None
        return self._sample_of(self.rows)

    def _sample_of(self, rows: Rows) -> NDArray[Any]:
        return rows.take(sample_index(*rows.shape, self.rng)).astype(self.geometry.dtype)

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> Screen:
        """A screen for these centered centroids, whatever their weights."""
        if self.trials:
            screen = self._choose(centers)
            self.trials -= 1
            if not self.trials:
                self._project()
        elif self.rank == 0:
            return self.dense(centers)
        else:
            screen = self._low_rank(centers, self.rank).with_margin(self.margin)
        return screen.with_projected(self.projected)

    def once(self, centers: NDArray[np.float64]) -> Screen:
        """A screen for these centroids alone, which have nothing to do with those that come after."""
        other = copy(self)
        other.basis, other.basis_of, other.rank = None, None, 0
        return other._choose(centers)

    def final(self, centers: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Screen:
        """The same, calibrated to be kept; `weights` are those of the clusters, if they are known."""
        screen = self.dense(centers) if self._surely_has_groups(centers) else self.once(centers)
        kept_as_it_is = screen.product is None and self.compression is None and not self._may_have_groups(centers)
        return screen if kept_as_it_is else self.last(screen, centers, weights)

    def _surely_has_groups(self, centers: NDArray[np.float64]) -> bool:
        """Whether there are so many centroids that no projection alone is cheaper."""
        return self._may_have_groups(centers) and len(centers) >= 4 * LEAST_CENTERS

    def _may_have_groups(self, centers: NDArray[np.float64]) -> bool:
        """Whether groups of these centroids could be cheaper."""
        return not self.shortlist and len(centers) >= LEAST_CENTERS and self.n_rows >= _LEAST_ROWS

    def sharpened(self, centers: NDArray[np.float64]) -> Screen | None:
        """A screen with a tenth of the error, if that needs a larger margin, which is used from now on; else None."""
        if self.shortlist or self.trials or not self.rank:
            return None
        screen, rows = self._low_rank(centers, self.rank), self._sample_for(centers, 0.1)
        sharp, cost = self._calibrated(screen, rows, self._assigned(self.dense(centers), rows), target=TARGET / 10)
        margin = sharp.margin if cost < np.inf else CERTAIN
        if margin <= self.margin:
            return None
        self.margin = margin
        return screen.with_margin(margin).with_projected(self.projected)

    def at_once(self, centers: NDArray[np.float64]) -> Screen | None:
        """A screen to keep after Ctrl-C, where to calibrate one takes long; None where it does not."""
        return None

    def kind(self) -> tuple[int, float, NDArray[Any] | None]:
        """The kind of screen that was chosen, for `take_kind`: rank, margin and basis."""
        return self.rank, self.margin, self.basis if self.rank else None

    def take_kind(self, rank: int, margin: float, basis: NDArray[Any] | None) -> None:
        """Make screens of this kind from now on."""
        self.rank, self.margin, self.basis, self.trials = rank, margin, basis, 0

    def choose_once(self) -> None:
        """Keep the first choice: the first centroids were means already."""
        self.trials = 0

    def for_rows(self, points: Points) -> "ScreenChooser":
        """A copy that calibrates on these rows."""
        other = copy(self)
        other.rng, other.n_rows = deepcopy(self.rng), len(points)
        other.sample = other._sample_of(points.rows)
        return other

    def is_outdated(self, listed: float, listed_at_first: float) -> bool:
        """Whether the centroids have moved so far that a screen lists many more candidates per row than at first.

        If so, the next screen is chosen anew.
        """
        if listed <= _GROWTH * listed_at_first + 1:
            return False
        self.trials, self.rank, self.basis, self.basis_of = max(self.trials, 1), 0, None, None
        self.rng = np.random.default_rng(self.n_rows)  # the same in a run that was killed and resumed
        return True

    def last(
        self, assigner: Assigner, centers: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> Screen:
        """The screen to keep: with the product of the assigner, or a sparse one if that was asked for, calibrated.

        Where groups are cheaper, it has groups and a product of its own.
        """
        product, compression = assigner.product, self.compression
        sparse = compression is not None and _is_possible(compression, centers)
        if compression is not None and sparse:
            product = sparse_als(centers.astype(self.geometry.dtype), compression).product
        screen = Screen(centers, self.geometry, product, shortlist=self.shortlist)
        screen = screen.with_projected(None if sparse else assigner.projected)
        groups = not sparse and self._may_have_groups(centers)
        if screen.product is None and not groups:
            return screen
        dense = self.dense(centers)
        sample = self._sample_for(centers, 0.5, _LAST_MACS)
        labels = self._assigned(dense, sample).labels
        result, cost = screen, float(screen.macs)
        if screen.product is not None:
            rows = self._like_new(sample, dense, labels)
            exact = self._assigned(dense, rows)
            result, cost = self._calibrated(screen, rows, exact, target=LAST_TARGET)
            result = (result if cost < np.inf else screen.certain).with_projected(screen.projected)
        if not groups:
            return result
        others, left = self._of_others(centers, sample, labels, weights)
        return self._in_groups(centers, sample, others, left, cost) or result

    def _like_new(self, rows: NDArray[Any], dense: Screen, labels: NDArray[np.int32]) -> NDArray[Any]:
        """Rows of the fit as far away from their centroids as new rows are.

        A row x of a cluster of n rows has moved their mean c: the others have theirs at x - (x - c) n / (n - 1).
        """
        n = max(self.n_rows / len(dense.centers), _LEAST_MEMBERS)
        own = dense.centers[labels]
        if self.geometry.spherical:
            own = own * np.linalg.norm(rows, axis=1, keepdims=True)
        else:
            own = own + self.geometry.mean.astype(rows.dtype)
        return np.asarray(rows + (rows - own) / (n - 1), rows.dtype)

    @with_one_blas_thread
    def _in_groups(
        self,
        centers: NDArray[np.float64],
        rows: NDArray[Any],
        others: NDArray[np.float64],
        left: NDArray[np.bool_],
        limit: float,
    ) -> Screen | None:
        """The cheapest screen with groups, calibrated to be kept, or None if none costs less than the limit.

        It is calibrated with the centroids of the other rows, to which these rows are new, in the same groups. Ranks
        are tried on a few of the rows, in ascending order until the cost rises; groups and reach are those of all.
        """
        D = centers.shape[1]
        ranks = [rank for rank in RANKS if NARROW <= rank < D] + [D] * (RANKS[-1] >= D)
        basis = first_directions(centers.astype(self.geometry.dtype), ranks[-1])
        points = (centers @ basis[:, :NARROW]).astype(self.geometry.dtype)
        groups = Groups(grouped(points, usual_count(len(centers)), self.n_threads), 0.0)

        def of_others(rank: int, groups: Groups) -> Screen:
            return Screen.low_rank(others, self.geometry, basis[:, :rank]).with_groups(groups)

        exact = self._assigned(self.dense(others), rows)
        wide = with_reach(of_others(ranks[0], groups.some(left)), rows, exact, self._assigned)
        assert wide.groups is not None
        few, exact_of_few = rows[:_TRIAL_ROWS], exact.part(slice(_TRIAL_ROWS))
        best, lowest = wide, np.inf
        for rank in ranks:
            screen = wide if rank == ranks[0] else of_others(rank, wide.groups).with_margin(wide.margin)
            cost = with_least_margin(screen, few, exact_of_few, self._assigned)[1]
            if cost > lowest:
                break
            best, lowest = screen, cost
        found, cost = with_least_margin(best, rows, exact, self._assigned)
        if cost >= limit:
            return None
        screen = Screen.low_rank(centers, self.geometry, basis[:, : len(best.directions)])
        return screen.with_groups(replace(groups, reach=wide.groups.reach)).with_margin(found.margin)

    def _of_others(
        self,
        centers: NDArray[np.float64],
        rows: NDArray[Any],
        labels: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The centroids of all other rows, (n c - sum of x) / (n - m) for m of the n rows of a cluster, and which have.

        If the weights of the clusters are not known, they are taken to be equal. A cluster without other rows has none.
        """
        n = np.full(len(centers), 1.0) if weights is None else weights
        n = n * (self.n_rows / n.sum())
        left = n - np.bincount(labels, minlength=len(centers))
        fine = (left > _LEAST_LEFT)[labels]
        y = rows[fine].astype(np.float64)
        if self.geometry.spherical:
            y /= np.maximum(np.linalg.norm(y, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        else:
            y -= self.geometry.mean
        others, of = centers.copy(), labels[fine]
        np.add.at(others, of, (centers[of] - y) / left[of, None])
        if self.geometry.spherical:
            lengths = np.linalg.norm(others, axis=1, keepdims=True)
            others *= np.linalg.norm(centers, axis=1, keepdims=True) / np.maximum(lengths, np.finfo(np.float64).tiny)
        return np.asarray(others[left > _LEAST_LEFT]), left > _LEAST_LEFT

    def _project(self) -> None:
        """Project the rows, if there is memory: later passes then read X only where candidates need exact scores."""
        if self.rows is not None and self.rank:
            assert self.basis is not None
            basis = self.basis[:, : self.rank].astype(self.geometry.dtype)
            self.projected = self.rows.project(basis, self.n_threads, _PROJECTED_BYTES)

    def _sample_for(self, centers: NDArray[np.float64], share: float, most: int = _SAMPLE_MACS) -> NDArray[Any]:
        """Rows of the sample: a share of all rows, as far as an exact assignment takes no more multiply-adds."""
        affordable = min(most // centers.size, int(share * self.n_rows))
        return self.sample[: max(512, affordable)]

    def dense(self, centers: NDArray[np.float64]) -> Screen:
        """A screen without a product: exact."""
        return Screen(centers, self.geometry, shortlist=self.shortlist)

    def _low_rank(self, centers: NDArray[np.float64], rank: int) -> Screen:
        assert self.basis is not None
        return Screen.low_rank(centers, self.geometry, self.basis[:, :rank], shortlist=self.shortlist)

    def _choose(self, centers: NDArray[np.float64]) -> Screen:
        """Try ranks in ascending order until the cost rises; rank 0 stands for the dense centroids."""
        K, D = centers.shape
        best = self.dense(centers)
        lowest = float(best.macs)
        few = self.n_rows < _LEAST_ROWS or lowest < _LEAST_MACS
        ranks = [] if few else [r for r in RANKS if self.rank / 2 <= r < lowest / 2 / (K + D)]
        self.rank, self.margin = 0, 0.0
        return self._cheapest(centers, best, ranks) if ranks else best

    @with_one_blas_thread
    def _cheapest(self, centers: NDArray[np.float64], best: Screen, ranks: list[int]) -> Screen:
        """The cheapest of the dense screen and of those of these ranks."""
        lowest, rows = float(best.macs), self._sample_for(centers, 0.02)
        exact, basis = self._assigned(best, rows), self.basis
        for rank in ranks:
            self._prepare_basis(centers, rank)
            screen, cost = self._calibrated(self._low_rank(centers, rank), rows, exact, lowest)
            if cost > lowest and self.rank:
                break
            if cost < lowest:
                best, lowest, basis = screen, cost, self.basis
                self.rank, self.margin = rank, screen.margin
        self.basis = basis  # that of the best; a wider one may have been tried after it
        return best

    def _prepare_basis(self, centers: NDArray[np.float64], rank: int) -> None:
        """At least `rank` leading directions of these centroids: 64, or as many as the largest rank needs."""
        if self.basis is None or self.basis.shape[1] < rank or self.basis_of is not centers:
            width = min(*centers.shape, (64 if rank <= 64 else RANKS[-1]) + 8)
            narrow = centers.astype(self.geometry.dtype)
            basis = self.basis
            if basis is None or basis.shape[1] < width:
                start = self.rng.standard_normal((centers.shape[1], width)).astype(narrow.dtype)
                basis = leading_directions(narrow, start)
            self.basis, self.basis_of = leading_directions(narrow, basis), centers

    def _calibrated(
        self, screen: Screen, rows: NDArray[Any], exact: Assignment, limit: float = np.inf, target: float = TARGET
    ) -> tuple[Screen, float]:
        """The screen with about the least margin that meets the target on the sample, and its cost per row.

        The cost is infinite if no margin meets the target, or none at a cost below the limit.
        """
        aim = (1 + target) * _objective(exact, screen)
        for i in range(1, len(MARGINS), 2):
            tried = screen.with_margin(MARGINS[i])
            assignment = self._assigned(tried, rows)
            if _objective(assignment, screen) <= aim:
                smaller = screen.with_margin(MARGINS[i - 1])
                other = self._assigned(smaller, rows)
                if _objective(other, screen) <= aim:
                    tried, assignment = smaller, other
                return tried, cost_per_row(tried, assignment)
            if cost_per_row(tried, assignment) > limit:
                break
        return screen, np.inf

    def _assigned(self, screen: Screen, rows: NDArray[Any]) -> Assignment:
        assignment = Assignment.empty(len(rows), screen.dtype)
        screen.assign(rows, assignment, self.n_threads)
        return assignment


def sample_index(n_rows: int, n_columns: int, rng: np.random.Generator) -> Index:
    """The rows that a chooser calibrates on."""
    most = max(256, min(_SAMPLE, _SAMPLE_ENTRIES // n_columns))
    return np.asarray(rng.choice(n_rows, min(most, n_rows), replace=False), np.int64)


def _objective(assignment: Assignment, screen: Screen) -> float:
    return float(assignment.squared_distances(screen.geometry).sum(dtype=np.float64))


def _is_possible(compression: float, centers: NDArray[np.float64]) -> bool:
    """Whether at least one number per row and one for the basis are left."""
    K, D = centers.shape
    return bool(K * D / compression >= K + 1)
