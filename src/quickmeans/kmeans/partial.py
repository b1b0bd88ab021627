"""Mini-batches that come one call after the other."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, NotComparableError
from quickmeans.kmeans.minibatch import BatchResult, MiniBatch
from quickmeans.kmeans.rows import Batch, Context, Points, Start, refuse_not_finite
from quickmeans.kmeans.run import assigner_maker, starting_centers
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import chooser
from quickmeans.threads import with_one_blas_thread


class PartialFit(NamedTuple):
    """The result of one call: the state for the next call, and labels, objectives and exact scores of its batches."""

    batch: MiniBatch
    labels: NDArray[np.int32]
    objectives: NDArray[np.float64]
    n_settled: int


@with_one_blas_thread
def first_centers(settings: Settings, points: Points, seed: int) -> Start:
    """The start from the rows of the first call."""
    if len(points) < settings.n_clusters:
        raise ValueError(f"n_samples={len(points)} should be >= n_clusters={settings.n_clusters} in the first batch.")
    rng = np.random.default_rng(seed)
    return starting_centers(points, Context(settings, rng, seed, _no_assigner, _silent))


def _no_assigner(centers: NDArray[np.float64]) -> Assigner:
    raise TypeError("partial_fit is not for rows on a cluster; give it one chunk after the other.")


def _silent(text: str) -> None:
    pass


@with_one_blas_thread
def first_batch(settings: Settings, points: Points, start: Start, last: Assigner | None, seed: int) -> MiniBatch:
    """The state before the first call that follows these centroids; `last` is the product that they are rows of."""
    alone = replace(settings, stateless=True)  # the chooser must not keep the rows alive
    choose = chooser(alone, points, np.random.default_rng(seed))
    make = assigner_maker(alone, points.geometry, last, choose)
    counts = np.zeros(settings.n_clusters) if start.counts is None else start.counts
    return MiniBatch(points.geometry, start.centers, counts, make)


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
