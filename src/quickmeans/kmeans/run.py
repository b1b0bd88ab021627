"""One run of a fit: a start, and the iterations from there."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

import numpy as np

from quickmeans import kernels
from quickmeans.kmeans.algorithm1 import quick_means
from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.balance import balanced
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.context import Context
from quickmeans.kmeans.dense import DenseSearch
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.grouped_screens import look_through_groups, needed_for_chunks
from quickmeans.kmeans.iterated import iterated
from quickmeans.kmeans.learn import ProductLearner, learner
from quickmeans.kmeans.lloyd import (
    Clustering,
    Iterate,
    Means,
    Observer,
    finish,
    finish_means,
    lloyd,
    lloyd_natively,
    screen_to_keep,
    stopping_at_interrupt,
)
from quickmeans.kmeans.memory_pass import last_pass
from quickmeans.kmeans.minibatch import AssignerMaker, mini_batch_means
from quickmeans.kmeans.neighborhood import needed_bytes, run_among_neighbors
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import (
    chooser,
    iterates_natively,
    screen_seed,
    starting_centers,
    stays_among_neighbors,
    stream_sample_size,
)
from quickmeans.memory import refuse_too_large
from quickmeans.threads import with_one_blas_thread

_ROUNDING = 1e-9  # objectives that differ by a smaller share are equal


class Checkpoint(Protocol):
    """Where a run is kept so that it can go on after it was killed."""

    seed: int

    def resume(self, choose: ScreenChooser) -> Iterate | None:
        """The iterate that was kept, or None; the chooser takes the kind of screen that was kept with it."""

    def write(self, iterate: Iterate, choose: ScreenChooser) -> None:
        """Keep the iterate and the kind of its screens."""


class Progress(Protocol):
    """Somebody who looks on."""

    @property
    def watched(self) -> bool:
        """Whether anybody wants to know of every iteration."""

    def say(self, text: str) -> None:
        """Show a line."""

    def searched(self, move: str, objective: float) -> bool:
        """Show a move of the search for better centroids; True asks to stop."""

    def __call__(self, iteration: int, objective: float) -> bool:
        """Show an iteration; True asks to stop."""


def best_of(run: Callable[[int], Clustering], seeds: Iterable[int]) -> tuple[Clustering, bool]:
    """The best of the runs with these seeds, and whether Ctrl-C ended them; without a result, Ctrl-C is passed on."""
    best: Clustering | None = None
    for seed in seeds:
        try:
            result = run(int(seed))
        except KeyboardInterrupt:
            if best is None:
                raise
            return best, True
        if best is None or result.objective < (1 - _ROUNDING) * best.objective:
            best = result
        if result.iterate.interrupted:
            return best, True
    assert best is not None
    return best, False


def run_once(
    settings: Settings, points: Points, seed: int, progress: Progress, checkpoint: Checkpoint | None = None
) -> Clustering:
    """The clustering of the points that follows from the settings and a seed."""
    seed = seed if checkpoint is None else checkpoint.seed
    context = Context(settings, seed, progress.say, progress.searched)
    choose = chooser(settings, points, screen_seed(seed))
    found = _run(points, context, choose, progress, checkpoint)
    if settings.size_bounds is None:
        return found
    sizes = settings.size_bounds.of_rows(points.total, settings.n_clusters, points.weights)
    return balanced(points, found, sizes, choose, settings, progress if progress.watched else None)


def _run(
    points: Points, context: Context, choose: ScreenChooser, progress: Progress, checkpoint: Checkpoint | None
) -> Clustering:
    """The clustering without bounds on sizes."""
    settings = context.settings
    if iterates_natively(points, settings):
        return _run_natively(points, context, choose, progress)
    refuse_without_memory(points, settings)
    if stays_among_neighbors(points, settings):
        start = starting_centers(points, context)
        return run_among_neighbors(points, context, start.centers, choose, progress if progress.watched else None)
    return _run_with_screens(points, context, choose, progress, checkpoint)


def _run_natively(points: Points, context: Context, choose: ScreenChooser, progress: Progress) -> Clustering:
    """Search and iterate on a copy of the rows, then on the rows themselves if float32 rounds them, and finish."""
    settings, start = context.settings, starting_centers(points, context)
    search = start.search or DenseSearch.of(points.dense(), start.centers, points.geometry, kernels.Search)
    means = Means(start.centers, list(start.history), interrupted=start.interrupted)
    most, tol, stopped = settings.max_iter, points.tolerance(settings.tol), start.ended
    observe = progress if progress.watched else None
    if not stopped:
        with stopping_at_interrupt(means):
            stopped = lloyd_natively(search, means, max_iter=most, tol=tol, observe=observe)
    if points.result_dtype == np.float64 and not (stopped or means.interrupted) and means.n_iter < most:
        means = iterate = means.assigned_by(choose.dense(means.centers))
        later = observe and _later_than(means.n_iter, observe)
        means.repeat_last()
        passes = points.rows.passes(points, settings.n_clusters, stateless=False)
        with stopping_at_interrupt(means):
            lloyd(passes, iterate, choose.dense, max_iter=most, tol=tol, observe=later)
    means.centers = points.rounded(means.centers)
    iterate = means.assigned_by(screen_to_keep(choose, means, search.cluster_weights()))
    return finish(partial(last_pass, points), iterate)


def refuse_without_memory(points: Points, settings: Settings) -> None:
    """Raise a MemoryError before the start if many clusters take more memory than there is."""
    if stays_among_neighbors(points, settings):
        needed = needed_bytes(points, settings)
    elif look_through_groups(points, settings):
        size = 0 if points.rows.in_memory else stream_sample_size(*points.rows.shape, settings.n_clusters)
        needed = needed_for_chunks(points, settings.n_clusters, size)
    else:
        return
    refuse_too_large(f"A fit of {len(points)} rows with {settings.n_clusters} clusters", needed)


@with_one_blas_thread
def _run_with_screens(
    points: Points, context: Context, choose: ScreenChooser, progress: Progress, checkpoint: Checkpoint | None
) -> Clustering:
    """Start or resume, and iterate with screens, or as the settings say, pass by pass."""
    settings, seed = context.settings, context.seed
    iterate = None if checkpoint is None else checkpoint.resume(choose)
    if iterate is None:
        start = starting_centers(points, context)
        iteration = points.rows.iteration(points, settings, start.centers)
        if iteration is not None:
            return iterated(iteration, settings, points, start, choose, progress)
        counts = None if settings.batch_size is None else start.counts
        screen = choose(start.centers)
        iterate = Iterate(start.centers, interrupted=start.interrupted, assigner=screen, counts=counts)
        if counts is not None:
            choose.choose_once()
    observe = progress if checkpoint is None else _writing(checkpoint, iterate, choose, progress)
    return _iterated(settings, points, iterate, choose, seed, observe)


def _iterated(
    settings: Settings, points: Points, iterate: Iterate, choose: ScreenChooser, seed: int, observe: Observer
) -> Clustering:
    """Iterate until convergence unless Ctrl-C has come before, and finish."""
    passes = points.rows.passes(points, settings.n_clusters, stateless=settings.stateless)
    tol = points.tolerance(settings.tol)
    if iterate.interrupted:
        pass
    elif settings.batch_size is not None:
        make = assigner_maker(settings, points.geometry, iterate.latest, choose)
        mini_batch_means(points, iterate, make, settings, seed, tol=tol, observe=observe)
    elif settings.learns_product:
        learn = learner(settings, points.geometry.dtype)
        quick_means(passes, iterate, learn, max_iter=settings.max_iter, tol=tol, observe=observe)
    else:
        with stopping_at_interrupt(iterate):
            lloyd(passes, iterate, choose, max_iter=settings.max_iter, tol=tol, observe=observe)
            while iterate.converged and (sharper := choose.sharpened(iterate.centers)) is not None:
                iterate.assigner, iterate.converged = sharper, False  # the few rows that the margin misled move now
                lloyd(passes, iterate, choose, max_iter=settings.max_iter, tol=tol, observe=observe)
    if settings.learns_product:
        return finish(passes.last, iterate)
    return finish_means(passes, points, iterate, choose)


def _later_than(n_iter: int, observe: Observer) -> Observer:
    """An observer of the iterations after the first so many, which the given one has seen."""
    return lambda iteration, objective: iteration > n_iter and observe(iteration, objective)


def assigner_maker(
    settings: Settings, geometry: Geometry, last: Assigner | None, choose: ScreenChooser
) -> AssignerMaker:
    """What makes the assigners of mini-batches: screens, or products learned from the last one on."""
    if settings.learns_product:
        return ProductLearner(learner(settings, geometry.dtype), geometry, last)
    return choose


def _writing(checkpoint: Checkpoint, iterate: Iterate, choose: ScreenChooser, observe: Observer) -> Observer:
    """An observer that writes the checkpoint before the given one is called."""

    def observer(iteration: int, objective: float) -> object:
        checkpoint.write(iterate, choose)
        return observe(iteration, objective)

    return observer
