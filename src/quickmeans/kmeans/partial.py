"""Mini-batches that come one call after the other."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, NotComparableError
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.kmeans.minibatch import BatchResult, MiniBatch
from quickmeans.kmeans.rows import Batch, Points, refuse_not_finite
from quickmeans.kmeans.run import assigner_maker
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import chooser, starting_centers
from quickmeans.threads import with_one_blas_thread


class PartialFit(NamedTuple):
    """The result of one call: the state for the next call, and labels, objectives and exact scores of its batches."""

    batch: MiniBatch
    labels: NDArray[np.int32]
    objectives: NDArray[np.float64]
    n_settled: int

    def fitted(self, dtype: np.dtype[Any], n_calls: int) -> FittedClusters:
        """The clusters after this call; `dtype` is that of the returned centroids."""
        assigner = self.batch.assigner
        centers = self.batch.centers if assigner.centers_are_means else assigner.centers
        cluster_centers = (centers + assigner.geometry.mean).astype(dtype)
        inertia, n_candidates = float(self.objectives.sum()), self.n_settled / len(self.labels)
        return FittedClusters(assigner, cluster_centers, self.labels, self.objectives, inertia, n_candidates, n_calls)


@with_one_blas_thread
def first_batch(
    settings: Settings,
    points: Points,
    fitted: FittedClusters | None,
    counts: NDArray[np.float64] | None,
    seeds: tuple[int, int],
) -> MiniBatch:
    """The state before the first call: from fitted clusters that have got so much weight, or from a start."""
    alone = replace(settings, stateless=True)  # the chooser must not keep the rows alive
    last: Assigner | None = None
    if fitted is None:
        start = _start(alone, points, seeds[0])
        if start.interrupted:
            raise KeyboardInterrupt
    else:
        points.geometry = fitted.assigner.geometry  # the mean of the first rows stays
        start = Start(fitted.centers, counts)
        last = None if fitted.assigner.centers_are_means else fitted.assigner
    choose = chooser(alone, points, seeds[1])
    make = assigner_maker(alone, points.geometry, last, choose)
    weights = np.zeros(settings.n_clusters) if start.counts is None else start.counts
    return MiniBatch(points.geometry, start.centers, weights, make)


def _start(settings: Settings, points: Points, seed: int) -> Start:
    """The start from the rows of the first call."""
    if len(points) < settings.n_clusters:
        raise ValueError(f"n_samples={len(points)} should be >= n_clusters={settings.n_clusters} in the first batch.")
    return starting_centers(points, Context(settings, seed, _silent, _watch_nothing))


def _silent(text: str) -> None:
    pass


def _watch_nothing(move: str, objective: float) -> bool:
    return False


@with_one_blas_thread
def follow_rows(batch: MiniBatch, points: Points, settings: Settings, n_calls: int) -> PartialFit:
    """Move the centroids by the rows of one call; the given state stays as it is."""
    batch = batch.for_rows(points)
    size = len(points) if settings.batch_size is None else settings.batch_size
    labels, results = np.empty(len(points), np.int32), []
    for part in points.rows.batches(size, np.random.default_rng((n_calls, len(points)))):
        results.append(_step(batch, part, points))
        labels[part.places] = results[-1].labels
    batch.refresh()
    objectives = np.array([result.objective for result in results])
    return PartialFit(batch, labels, objectives, sum(result.n_settled for result in results))


def _step(batch: MiniBatch, part: Batch, points: Points) -> BatchResult:
    """One batch; errors count rows from the first row of the call."""
    try:
        return batch.step(part.rows, part.weights, points.n_threads)
    except NotComparableError as error:
        numbers = np.arange(len(points))[part.places]
        refuse_not_finite(lambda row: points.rows.locate(int(numbers[row])), 0, part.rows)
        raise NotComparableError(error.dtype, int(numbers[error.row])) from None
