r"""Mini-batch k-means: centroids that follow the rows of one batch after the other (Sculley, 2010).

With :math:`n_k` the weight and :math:`s_k` the weighted sum of those rows of a batch that are nearest to centroid k,
and :math:`N_k` the weight of all rows that it has ever been given, this batch included,

.. math:: c_k \leftarrow c_k + (s_k - n_k c_k) / N_k,

so every centroid is the mean of all its rows, each counted as of where the centroids were when it came by. Where the
same rows come again in several passes, those of earlier passes are forgotten by and by: before each pass :math:`N_k`
is halved.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.calibration import Screener
from quickmeans.kmeans.follower import ProductFollower
from quickmeans.kmeans.lloyd import Clustering, Observer, settle, stopping_at_interrupt
from quickmeans.kmeans.passes import AnyScreen, Pass
from quickmeans.kmeans.points import Frame, Points, row_blocks, some_rows, squared_norms
from quickmeans.kmeans.rows import Stream
from quickmeans.kmeans.screen import Assignment, ProductRows, fill_norms
from quickmeans.kmeans.update import by_label

_LEAST_GAIN = 1e-3  # a pass that lowers the objective by less than this share is the last
_WINDOW = 100  # a centroid that has got none of so many rows per centroid is given another place
_TRIALS = 4  # rows that are drawn for such a place
_STALE = 0.1  # a screen is kept while rows since it was made have less than this share of what the centroids stand for
_GROWTH = 2.0  # a screen that lists so many times more candidates than at first is chosen anew


class MiniBatch:
    """Means about the mean of all, how much weight each has got, and the screen that rows are compared with.

    Where the rows of a product are the centroids, these are compared with, and the product follows the means. Screen or
    product are made anew once some rows per centroid have passed, and the centroids have moved by them: a centroid that
    stands for many rows hardly does.
    """

    def __init__(
        self,
        frame: Frame,
        centers: NDArray[np.float64],
        counts: NDArray[np.float64],
        screener: Screener | ProductFollower,
        screen: AnyScreen | None = None,
    ) -> None:
        self.frame, self.centers, self.counts, self.screener = frame, centers.copy(), counts.copy(), screener
        self.window = np.zeros(len(centers))  # weight that each has got lately
        self.n_window, self.n_since, self.weight_since = 0, 0, 0.0
        self.listed = 0.0
        self._room = np.empty((3, *centers.shape))  # fresh memory costs more than the arithmetic
        self._interval = int(np.ceil(screener.patience * len(centers)))
        self.screen: AnyScreen = self.screener(self.centers, self.counts) if screen is None else screen

    def refresh(self) -> None:
        """A screen for the centroids where they are now."""
        self.screen = self.screener(self.centers, self.counts)
        self.n_since, self.weight_since = 0, 0.0

    def step(self, rows: NDArray[Any], weights: NDArray[np.float64] | None, n_threads: int) -> Assignment:
        """Let the centroids follow these rows; `found.objective` is the objective before they do."""
        if self.n_since >= self._interval and self.weight_since >= _STALE * float(self.counts.sum()):
            self.refresh()
        found = Assignment.empty(len(rows), self.frame.dtype)
        self.screen.assign(rows, found, n_threads, settle_all=False)
        fill_norms(rows, self.frame, found)
        w = np.ones(len(rows)) if weights is None else weights
        touched, within = np.unique(found.labels, return_inverse=True)
        n = np.bincount(within, w, len(touched)).astype(np.float64)
        sums = self._sums(rows, found, within, w, len(touched), n_threads)
        found.objective = self._follow(found, w, touched, n, sums)
        if isinstance(self.screen, ProductRows):
            found.objective = float(found.squared_distances(self.frame).astype(np.float64) @ w)
        self.n_since += len(rows)
        self.weight_since += float(n.sum())
        self.n_window += len(rows)
        self._replace_dead(rows, found, w)
        self._look_after_screen(found)
        return found

    def _sums(
        self,
        rows: NDArray[Any],
        found: Assignment,
        within: NDArray[np.int64],
        weights: NDArray[np.float64],
        n_touched: int,
        n_threads: int,
    ) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self._room[0][:n_touched]
        sums[:] = 0
        order, starts = by_label(within.astype(np.int32), n_touched)
        pulls = weights / np.sqrt(found.norms.astype(np.float64)) if self.frame.spherical else weights
        kernels.add_members(rows, order, starts, pulls[order], sums, n_threads)
        return sums

    def _follow(
        self,
        found: Assignment,
        weights: NDArray[np.float64],
        touched: NDArray[np.int32],
        n: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> float:
        """Move the centroids that have got rows; the objective before.

        With d_k = s_k - n_k (m + c_k) it is sum_i w_i |x_i - m|^2 - 2 sum_k <c_k, d_k> - sum_k n_k |c_k|^2.
        """
        centers = np.take(self.centers, touched, axis=0, out=self._room[1][: len(touched)], mode="clip")  # no copy
        gone = np.add(centers, self.frame.mean, out=self._room[2][: len(touched)])
        gone *= n[:, None]
        sums -= gone
        norms = float(weights.sum() if self.frame.spherical else found.norms.astype(np.float64) @ weights)
        objective = norms - 2 * float(np.vdot(centers, sums)) - float(n @ squared_norms(centers))
        self.counts[touched] += n
        self.window[touched] += n
        sums /= np.where(n > 0, self.counts[touched], 1.0)[:, None]
        centers += sums
        if self.frame.spherical:
            lengths = np.linalg.norm(centers, axis=1, keepdims=True)
            centers = np.where(lengths > 0, centers, self.centers[touched]) / np.where(lengths > 0, lengths, 1.0)
        self.centers[touched] = centers
        return max(objective, 0.0)

    def _replace_dead(self, rows: NDArray[Any], found: Assignment, weights: NDArray[np.float64]) -> None:
        """Centroids that rows no longer come to go to rows of this batch."""
        if self.n_window < _WINDOW * len(self.centers):
            return
        dead = np.flatnonzero(self.window <= 0)
        self.window[:], self.n_window = 0, 0
        if len(dead):
            Y = self.frame.centred(rows.astype(np.float64))
            prices = weights * found.squared_distances(self.frame)
            places = _spread(Y, weights, prices, len(dead))
            self.centers[dead[: len(places)]], self.counts[dead[: len(places)]] = Y[places], weights[places]
            self._call_for_screen()

    def _look_after_screen(self, found: Assignment) -> None:
        """If the centroids have drifted away from what the screen was chosen for, choose again."""
        listed = found.n_listed / len(found.labels)
        self.listed = self.listed or listed
        if listed > _GROWTH * self.listed + 1:
            self.screener.look_again()
            self.listed = 0.0
            self._call_for_screen()

    def _call_for_screen(self) -> None:
        """It is time for a new one."""
        self.n_since, self.weight_since = self._interval, np.inf


def _spread(Y: NDArray[np.float64], weights: NDArray[np.float64], prices: NDArray[np.float64], count: int) -> list[int]:
    """Rows for so many new centroids, each the best of a few drawn by their prices, which are weight times squared
    distance from all centroids so far (k-means++); fewer if no price is left."""
    squares, places = squared_norms(Y), []
    for chances in np.random.default_rng(count).random((min(count, len(Y)), _TRIALS)):
        heap = np.cumsum(prices)
        if heap[-1] <= 0:
            break
        drawn = np.minimum(np.searchsorted(heap, chances * heap[-1], "right"), len(Y) - 1)
        size = squares[drawn, None] + squares
        apart = size - 2 * (Y[drawn] @ Y.T)
        after = np.minimum(prices, weights * np.where(apart > 1e-12 * size, apart, 0))
        best = int(after.sum(axis=1).argmin())
        places.append(int(drawn[best]))
        prices = after[best]
    return places


def mini_batch_means(
    passes: Pass,
    run: Clustering,
    screener: Screener | ProductFollower,
    batch_size: int,
    seed: int,
    *,
    max_iter: int,
    tol: float,
    observe: Observer | None = None,
) -> Clustering:
    """Passes over all rows in batches, from where `run` has got to; its history gets the objective of every pass."""
    if isinstance(screener, ProductFollower) and run.current is None:
        counts = np.zeros(len(run.centers)) if run.counts is None else run.counts
        run.screen = run.current = screener(run.centers, counts)
    with stopping_at_interrupt(run):
        while run.n_iter < max_iter and not run.converged:
            _one_pass(passes.points, run, screener, batch_size, np.random.default_rng((seed, run.n_iter)), tol)
            if observe is not None and observe(run.n_iter, run.history[-1]):
                break
    if isinstance(screener, Screener):
        return settle(passes, run, screener)
    assert isinstance(run.screen, ProductRows)
    run.centers = run.screen.centers  # and no longer the means
    return run.finish(passes)


def _one_pass(
    points: Points,
    run: Clustering,
    screener: Screener | ProductFollower,
    batch_size: int,
    rng: np.random.Generator,
    tol: float,
) -> None:
    counts = np.zeros(len(run.centers)) if run.counts is None else run.counts / 2 if run.n_iter else run.counts
    batch = MiniBatch(points.frame, run.centers, counts, screener, run.screen)
    total = 0.0
    for _, rows, weights in batches(points, batch_size, rng):
        total += batch.step(rows, weights, points.n_threads).objective
    batch.refresh()
    moves = float(squared_norms(batch.centers - run.centers).sum())
    gained = not run.history or total < (1 - _LEAST_GAIN) * run.history[-1]
    run.centers, run.counts, run.screen = batch.centers, batch.counts, batch.screen
    run.current = batch.screen if isinstance(batch.screen, ProductRows) else None
    run.history.append(total)
    run.n_iter += 1
    run.converged = moves <= tol or not gained


def batches(
    points: Points, size: int, rng: np.random.Generator
) -> Iterator[tuple[slice | NDArray[np.int64], NDArray[Any], NDArray[np.float64] | None]]:
    """All rows, so many at a time: of those in memory in random order, of streams in their own.

    With every batch come the numbers of its rows and their weights.
    """
    if isinstance(points.X, Stream):
        for part, rows in _regrouped(points.X, size):
            yield part, rows, None if points.weights is None else points.weights[part]
        return
    order = rng.permutation(len(points))
    for begin in range(0, len(order), size):
        index = np.sort(order[begin : begin + size])
        yield index, some_rows(points.X, index), None if points.weights is None else points.weights[index]


def _regrouped(X: Stream, size: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The rows of a stream in blocks of the given size, whatever its chunks."""
    waiting: list[NDArray[Any]] = []
    first = n_waiting = 0
    for _, rows in row_blocks(X):
        waiting.append(rows)
        n_waiting += len(rows)
        if n_waiting < size:
            continue
        together = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
        whole = n_waiting // size * size
        for begin in range(0, whole, size):
            yield slice(first + begin, first + begin + size), together[begin : begin + size]
        first, waiting, n_waiting = first + whole, [together[whole:].copy()], n_waiting - whole
    if n_waiting:
        yield slice(first, first + n_waiting), np.concatenate(waiting)
