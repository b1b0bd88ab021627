r"""Mini-batch k-means: centroids that follow the rows of one batch after the other (Sculley, 2010).

With :math:`n_k` the weight and :math:`s_k` the weighted sum of those rows of a batch that are nearest to centroid k,
and :math:`N_k` the weight of all rows that it has been given so far, this batch included,

.. math:: c_k \leftarrow c_k + (s_k - n_k c_k) / N_k,

so every centroid is the mean of all its rows, each assigned to the centroids of its time. Where the same rows come
again in several passes, earlier passes count less and less: before each pass :math:`N_k` is halved.
"""

from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.kmeans.geometry import Geometry, squared_norms
from quickmeans.kmeans.lloyd import Iterate, Observer, stopping_at_interrupt
from quickmeans.kmeans.rows import Points, Weights
from quickmeans.kmeans.settings import Settings

_LEAST_GAIN = 1e-3  # a pass that lowers the objective by less than this share is the last
_WINDOW = 100  # a centroid that gets none of so many rows per centroid is moved to another place
_TRIALS = 4  # rows that are drawn for such a place; the best is taken
_STALE = 0.1  # an assigner is kept while the rows since it was made have less than this share of all weight


class AssignerMaker(Protocol):
    """Makes an assigner for centroids that move from batch to batch."""

    @property
    def rows_between(self) -> float:
        """How many rows per centroid may pass between two assigners."""

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64]) -> Assigner:
        """An assigner for these means, each of which has so much weight."""

    def for_rows(self, points: Points) -> "AssignerMaker":
        """A copy for batches of these rows."""

    def is_outdated(self, listed: float, listed_at_first: float) -> bool:
        """Whether so many candidates per row, now and at first, show that another assigner is needed at once."""


class BatchResult(NamedTuple):
    """The labels of a batch, the objective before the centroids moved, and how many exact scores that took."""

    labels: NDArray[np.int32]
    objective: float
    n_settled: int


class MiniBatch:
    """Centered means, the weight that each has got so far, and the assigner that rows are compared with.

    An assigner is made anew once some rows per centroid have passed and these have moved the centroids: centroids with
    much weight hardly move. If the centroids are rows of a product, these are compared, and the product follows the
    means.
    """

    def __init__(
        self,
        geometry: Geometry,
        centers: NDArray[np.float64],
        counts: NDArray[np.float64],
        make: AssignerMaker,
        assigner: Assigner | None = None,
    ) -> None:
        self.geometry, self.centers, self.counts, self.make = geometry, centers.copy(), counts.copy(), make
        self.window = np.zeros(len(centers))  # weight that each centroid has got lately
        self.n_window, self.n_since, self.weight_since = 0, 0, 0.0
        self.listed_at_first = 0.0  # candidates per row; it starts anew in every pass, so that a run can resume
        self._buffer = np.empty((3, *centers.shape))  # fresh memory costs more than the arithmetic
        self._interval = int(np.ceil(make.rows_between * len(centers)))
        self.assigner: Assigner = make(self.centers, self.counts) if assigner is None else assigner

    def for_rows(self, points: Points) -> "MiniBatch":
        """A copy for the batches of these rows; its steps leave this one as it is."""
        other = copy(self)
        other.make = self.make.for_rows(points)
        other.centers, other.counts, other.window = self.centers.copy(), self.counts.copy(), self.window.copy()
        return other

    def refresh(self) -> None:
        """Make an assigner for the centroids where they are now."""
        self.assigner = self.make(self.centers, self.counts)
        self.n_since, self.weight_since = 0, 0.0

    def step(self, rows: NDArray[Any], weights: Weights, n_threads: int) -> BatchResult:
        """Move the centroids by these rows."""
        if self.n_since >= self._interval and self.weight_since >= _STALE * float(self.counts.sum()):
            self.refresh()
        assignment = Assignment.empty(len(rows), self.geometry.dtype)
        self.assigner.assign(rows, assignment, n_threads, exact_scores=False)
        assignment.fill_norms(rows, self.geometry)
        w = np.ones(len(rows)) if weights is None else weights
        touched, within = np.unique(assignment.labels, return_inverse=True)
        n = np.bincount(within, w, len(touched)).astype(np.float64)
        sums = self._sums(rows, assignment, within, w, len(touched), n_threads)
        objective = self._move(assignment, w, touched, n, sums)
        if not self.assigner.centers_are_means:
            objective = float(assignment.squared_distances(self.geometry).astype(np.float64) @ w)
        self.n_since += len(rows)
        self.weight_since += float(n.sum())
        self.n_window += len(rows)
        self._replace_unused(rows, assignment, w)
        listed = assignment.n_listed / len(rows)
        self.listed_at_first = self.listed_at_first or listed
        if self.make.is_outdated(listed, self.listed_at_first):
            self.listed_at_first = 0.0
            self._ask_for_assigner()
        return BatchResult(assignment.labels, objective, assignment.n_settled)

    def _sums(
        self,
        rows: NDArray[Any],
        assignment: Assignment,
        within: NDArray[np.int64],
        weights: NDArray[np.float64],
        n_touched: int,
        n_threads: int,
    ) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self._buffer[0][:n_touched]
        sums[:] = 0
        order, starts = kernels.group_by_label(within, n_touched)
        factors = weights / np.sqrt(assignment.norms.astype(np.float64)) if self.geometry.spherical else weights
        kernels.add_members(rows, order, starts, factors[order], sums, n_threads)
        return sums

    def _move(
        self,
        assignment: Assignment,
        weights: NDArray[np.float64],
        touched: NDArray[np.int32],
        n: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> float:
        """Move the centroids that have got rows; the objective before.

        With d_k = s_k - n_k (m + c_k) it is sum_i w_i |x_i - m|^2 - 2 sum_k <c_k, d_k> - sum_k n_k |c_k|^2.
        """
        centers = np.take(self.centers, touched, axis=0, out=self._buffer[1][: len(touched)], mode="clip")  # no copy
        own = np.add(centers, self.geometry.mean, out=self._buffer[2][: len(touched)])
        own *= n[:, None]
        sums -= own
        norms = float(weights.sum() if self.geometry.spherical else assignment.norms.astype(np.float64) @ weights)
        objective = norms - 2 * float(np.vdot(centers, sums)) - float(n @ squared_norms(centers))
        self.counts[touched] += n
        self.window[touched] += n
        sums /= np.where(n > 0, self.counts[touched], 1.0)[:, None]
        centers += sums
        if self.geometry.spherical:
            lengths = np.linalg.norm(centers, axis=1, keepdims=True)
            centers = np.where(lengths > 0, centers, self.centers[touched]) / np.where(lengths > 0, lengths, 1.0)
        self.centers[touched] = centers
        return max(objective, 0.0)

    def _replace_unused(self, rows: NDArray[Any], assignment: Assignment, weights: NDArray[np.float64]) -> None:
        """Move centroids that get no rows any more to rows of this batch."""
        if self.n_window < _WINDOW * len(self.centers):
            return
        unused = np.flatnonzero(self.window <= 0)
        self.window[:], self.n_window = 0, 0
        if len(unused):
            Y = self.geometry.centered(rows.astype(np.float64))
            costs = weights * assignment.squared_distances(self.geometry)
            places = _spread(Y, weights, costs, len(unused))
            self.centers[unused[: len(places)]], self.counts[unused[: len(places)]] = Y[places], weights[places]
            self._ask_for_assigner()

    def _ask_for_assigner(self) -> None:
        """Have the next step make another assigner."""
        self.n_since, self.weight_since = self._interval, np.inf


def _spread(Y: NDArray[np.float64], weights: NDArray[np.float64], costs: NDArray[np.float64], count: int) -> list[int]:
    """Rows for so many new centroids by k-means++; fewer if no row is left that costs anything.

    `costs` are the weights times the squared distances from all centroids. Each row is the best of a few drawn by cost.
    """
    squares, places = squared_norms(Y), []
    for chances in np.random.default_rng(count).random((min(count, len(Y)), _TRIALS)):
        heap = np.cumsum(costs)
        if heap[-1] <= 0:
            break
        drawn = np.minimum(np.searchsorted(heap, chances * heap[-1], "right"), len(Y) - 1)
        size = squares[drawn, None] + squares
        apart = size - 2 * (Y[drawn] @ Y.T)
        after = np.minimum(costs, weights * np.where(apart > 1e-12 * size, apart, 0))
        best = int(after.sum(axis=1).argmin())
        places.append(int(drawn[best]))
        costs = after[best]
    return places


def mini_batch_means(
    points: Points,
    iterate: Iterate,
    make: AssignerMaker,
    settings: Settings,
    seed: int,
    *,
    tol: float,
    observe: Observer | None = None,
) -> None:
    """Passes over all rows in batches, from an iterate on; its history gets the objective of every pass."""
    assert settings.batch_size is not None
    if settings.learns_product and iterate.latest is None:
        counts = np.zeros(len(iterate.centers)) if iterate.counts is None else iterate.counts
        iterate.assigner = iterate.latest = make(iterate.centers, counts)
    batch_size = min(settings.batch_size, len(points))
    with stopping_at_interrupt(iterate):
        while iterate.n_iter < settings.max_iter and not iterate.converged:
            _one_pass(points, iterate, make, batch_size, np.random.default_rng((seed, iterate.n_iter)), tol)
            if observe is not None and observe(iterate.n_iter, iterate.history[-1]):
                break
    if settings.learns_product:
        iterate.centers = np.asarray(iterate.assigner.centers, np.float64)  # and no longer the means


def _one_pass(
    points: Points, iterate: Iterate, make: AssignerMaker, batch_size: int, rng: np.random.Generator, tol: float
) -> None:
    counts = np.zeros(len(iterate.centers)) if iterate.counts is None else iterate.counts
    batch = MiniBatch(
        points.geometry, iterate.centers, counts / 2 if iterate.n_iter else counts, make, iterate.assigner
    )
    total = 0.0
    for _, rows, weights in points.rows.batches(batch_size, rng):
        total += batch.step(rows, weights, points.n_threads).objective
    batch.refresh()
    shift = float(squared_norms(batch.centers - iterate.centers).sum())
    gained = not iterate.history or total < (1 - _LEAST_GAIN) * iterate.history[-1]
    iterate.centers, iterate.counts, iterate.assigner = batch.centers, batch.counts, batch.assigner
    iterate.latest = None if batch.assigner.centers_are_means else batch.assigner
    iterate.history.append(total)
    iterate.n_iter += 1
    iterate.converged = shift <= tol or not gained
