"""One run of a fit: a start, and the iterations from there."""

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from quickmeans.kmeans.algorithm1 import quick_means
from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.dense import DenseSearch
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.iterated import iterated
from quickmeans.kmeans.learn import ProductLearner, learner
from quickmeans.kmeans.lloyd import (
    Clustering,
    Iterate,
    Observer,
    finish,
    finish_means,
    lloyd,
    lloyd_natively,
    stopping_at_interrupt,
)
from quickmeans.kmeans.minibatch import AssignerMaker, mini_batch_means
from quickmeans.kmeans.rows import Context, Points, Start
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import chooser, given_start, iterates_natively, run_generators
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


@with_one_blas_thread
def run_once(
    settings: Settings, points: Points, seed: int, progress: Progress, checkpoint: Checkpoint | None = None
) -> Clustering:
    """The clustering of the points that follows from the settings and a seed."""
    seed = seed if checkpoint is None else checkpoint.seed
    start_rng, screen_rng = run_generators(seed)
    choose = chooser(settings, points, screen_rng)
    iterate = None if checkpoint is None else checkpoint.resume(choose)
    if iterate is None:
        start = starting_centers(points, Context(settings, start_rng, seed, progress.say, progress.searched))
        iteration = points.rows.iteration(points, settings, start.centers)
        if iteration is not None:
            return iterated(iteration, settings, points, start, choose, progress)
        if iterates_natively(points, settings):
            return _iterated_natively(settings, points, start, choose, progress)
        counts = None if settings.batch_size is None else start.counts
        iterate = Iterate(start.centers, choose(start.centers), counts=counts, interrupted=start.interrupted)
        if counts is not None:
            choose.choose_once()
    observe = progress if checkpoint is None else _writing(checkpoint, iterate, choose, progress)
    return _iterated(settings, points, iterate, choose, seed, observe)


def _iterated_natively(
    settings: Settings, points: Points, start: Start, choose: ScreenChooser, observe: Observer
) -> Clustering:
    """Iterate on a copy of all rows until convergence, then on the rows themselves if float32 rounds them; finish."""
    search = start.search or DenseSearch.of(points.dense(), start.centers, points.geometry)
    iterate = Iterate(start.centers, choose.dense(start.centers), history=list(start.history))
    iterate.interrupted, tol = start.interrupted, points.tolerance(settings.tol)
    passes = points.rows.passes(points, settings.n_clusters, stateless=False)
    if not start.ended:
        with stopping_at_interrupt(iterate):
            stopped = lloyd_natively(search, iterate, max_iter=settings.max_iter, tol=tol, observe=observe)
            if points.result_dtype == np.float64 and not stopped and iterate.n_iter < settings.max_iter:
                iterate.converged, iterate.assigner = False, choose.dense(iterate.centers)
                lloyd(passes, iterate, choose.dense, max_iter=settings.max_iter, tol=tol, observe=observe)
    iterate.assigner = choose.once(iterate.centers)
    return finish_means(passes, points, iterate, choose)


def starting_centers(points: Points, context: Context) -> Start:
    """Centered starting centroids: by name, given, or from a function."""
    if isinstance(context.settings.init, str):
        return points.rows.start(points, context)
    return given_start(points, context)


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
        return finish(passes, iterate)
    return finish_means(passes, points, iterate, choose)


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
