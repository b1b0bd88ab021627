"""Lloyd's iteration with exact means as centroids."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.dense import DenseSearch, Native
from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.kmeans.passes import LastPass, Pass
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.screen import Screen

_WORTH = 1e-6  # empty clusters are filled again only if the last time lowered the objective by this share

Observer = Callable[[int, float], object]  # gets the iteration and its objective; a true result ends the run


@dataclass
class Means:
    """Centroids, and the iterations that have led to them.

    Attributes
    ----------
    centers : array of shape (n_clusters, n_features)
        Centered centroids.
    history : list of float
        The objective after every assignment and every update.
    """

    centers: NDArray[np.float64]
    history: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    interrupted: bool = False

    def repeat_last(self) -> None:
        """Let the last iteration, which found that the centroids rest, be made again."""
        self.n_iter, self.converged = self.n_iter - 1, False
        del self.history[-2:]

    def assigned_by(self, assigner: Assigner) -> "Iterate":
        """The iterate with these centroids and their assigner."""
        return Iterate(**vars(self), assigner=assigner)


@dataclass(kw_only=True)
class Iterate(Means):
    """Where an iteration has got to.

    Attributes
    ----------
    assigner : Assigner
        For the centroids.
    latest : Assigner or None
        The last product of a run that learns one; `assigner` is the best one.
    counts : array or None
        The weight that each centroid of a mini-batch run has got so far.
    """

    assigner: Assigner
    latest: Assigner | None = None
    counts: NDArray[np.float64] | None = None

    def assigned_by(self, assigner: Assigner) -> "Iterate":
        return replace(self, assigner=assigner)


@dataclass(frozen=True)
class Clustering:
    """The end of a run: the iterate with the labels and the objective of its centroids."""

    iterate: Iterate
    labels: Any
    objective: float
    n_candidates: float
    counts: NDArray[np.float64]
    n_filled: int  # clusters that have rows

    def fitted(self, points: Points) -> FittedClusters:
        """The clusters as they are returned."""
        iterate = self.iterate
        centers = (iterate.centers + points.geometry.mean).astype(points.result_dtype)
        history = np.array(iterate.history)
        return FittedClusters(
            iterate.assigner, centers, self.labels, history, self.objective, self.n_candidates, iterate.n_iter
        )


def lloyd(
    passes: Pass,
    iterate: Iterate,
    choose: Callable[[NDArray[np.float64]], Assigner],
    *,
    max_iter: int,
    tol: float = 0.0,
    observe: Observer | None = None,
) -> None:
    """Assign rows to their nearest centroids and move centroids to their means, in turn.

    Stops when no label changes, or when the squared shifts of the centroids add up to `tol` or less.
    """
    center_shift: NDArray[np.float64] | None = None
    while iterate.n_iter < max_iter and not iterate.converged:
        changed = passes.assign(iterate.assigner, center_shift)
        assigned = passes.sums.objective(iterate.centers) if not passes.sums.sizes.all() else None
        moves = [] if assigned is None else passes.refill()
        means, center_shift, before, updated = passes.sums.step(iterate.centers)
        iterate.centers, iterate.assigner = means, choose(means)
        iterate.history += [before if assigned is None else assigned, updated]
        iterate.n_iter += 1
        iterate.converged = (changed == 0 and not moves) or float((center_shift**2).sum()) <= tol
        if observe is not None and observe(iterate.n_iter, updated):
            return


def lloyd_natively(
    search: DenseSearch[Native], iterate: Means, *, max_iter: int, tol: float, observe: Observer | None
) -> bool:
    """The same on a copy of the rows, from the centroids of a search; whether the observer asked to stop.

    Without an observer all iterations are one native call. An empty cluster gets a part of the cluster that gains most
    by a split, as long as that lowers the objective.
    """
    native, lowest, moved = search.native, np.inf, 0
    while iterate.n_iter < max_iter and not iterate.converged:
        try:
            most = 1 if observe or moved else max_iter - iterate.n_iter
            least_shift = -1.0 if moved else tol / search.square_unit  # shifts do not have the move of a split
            native.iterate(most, least_shift, until_empty=True)
        finally:  # Ctrl-C leaves the iterations that were complete
            objectives = native.history
            iterate.history += [search.objective_unit * objective for objective in objectives]
            iterate.n_iter += len(objectives) // 2
            iterate.centers = search.centers()
        worth = native.n_empty and native.objective < (1 - _WORTH) * lowest and iterate.n_iter < max_iter
        moved = native.swap(native.n_empty) if worth else 0
        lowest = native.objective if moved else lowest
        iterate.converged = native.converged and not moved
        if observe is not None and observe(iterate.n_iter, iterate.history[-1]):
            return True
    return False


def finish(last: Callable[[Assigner, NDArray[np.float64]], LastPass], iterate: Iterate) -> Clustering:
    """Labels and objective of the centroids of an iterate, by a last pass."""
    found = last(iterate.assigner, iterate.centers)
    counts = found.weights if iterate.counts is None else iterate.counts
    return Clustering(iterate, found.labels, found.objective, found.n_candidates, counts, found.n_filled)


def finish_means(passes: Pass, points: Points, iterate: Iterate, choose: ScreenChooser) -> Clustering:
    """The same for means: rounded as they will be returned, with the screen that `predict` will use."""
    iterate.centers = points.rounded(iterate.centers)
    kept = choose.at_once(iterate.centers) if iterate.interrupted else None
    if kept is not None:
        last = passes.known(iterate.history[-1:]) or passes.last(iterate.assigner, iterate.centers)
        iterate.assigner = kept
        return finish(lambda assigner, centers: last, iterate)
    with stopping_at_interrupt(iterate):
        kept = choose.last(iterate.assigner, iterate.centers)
    iterate.assigner = screen = kept or choose.dense(iterate.centers)
    result = finish(passes.last, iterate)
    iterate.assigner = screen.with_projected(None)  # the screen outlives the rows
    return result


def screen_to_keep(choose: ScreenChooser, means: Means, weights: NDArray[np.float64]) -> Screen:
    """The screen that `predict` will use; after Ctrl-C one that is not calibrated, because it is exact."""
    kept = None
    with stopping_at_interrupt(means):
        kept = None if means.interrupted else choose.final(means.centers, weights)
    return kept or choose.dense(means.centers)


@contextmanager
def stopping_at_interrupt(iterate: Means) -> Iterator[None]:
    """Ctrl-C ends the iteration with the last complete iterate."""
    try:
        yield
    except KeyboardInterrupt:
        iterate.interrupted = True
