"""Lloyd's iteration with exact means as centroids."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.calibration import Screener
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.screen import ProductRows, Screen

Observer = Callable[[int, float], object]


@dataclass
class Clustering:
    """Where an iteration has got to: centroids about the mean, labels, and the way there."""

    centers: NDArray[np.float64]
    screen: Screen | ProductRows
    history: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    interrupted: bool = False
    current: ProductRows | None = None  # the last product, where the rows of one are the centroids; not always the best
    # known at the end
    labels: Any = None
    objective: float = np.inf
    n_candidates: float = 0.0
    n_filled: int = 0  # clusters with rows
    counts: NDArray[np.float64] | None = None  # how much weight each centroid has got, ever

    def advance(
        self, centers: NDArray[np.float64], screen: Screen | ProductRows, after_assignment: float, after_update: float
    ) -> None:
        """One iteration is complete."""
        self.centers, self.screen = centers, screen
        self.history += [after_assignment, after_update]
        self.n_iter += 1

    def finish(self, passes: Pass) -> "Clustering":
        """Labels and objective of the centroids as they are."""
        self.labels, self.objective, self.n_candidates = passes.last(self.screen, self.centers)
        self.counts = passes.sums.weights.copy() if self.counts is None else self.counts
        self.n_filled = int(np.count_nonzero(passes.sums.sizes))
        return self


def lloyd(
    passes: Pass,
    run: Clustering,
    screener: Screener,
    *,
    max_iter: int,
    tol: float,
    observe: Observer | None = None,
) -> Clustering:
    """Assign rows to their nearest centroids and move centroids to their means, in turn, from where `run` has got to.

    Stops when no label changes, or when the squared moves of the centroids add up to `tol` or less.
    """
    with stopping_at_interrupt(run):
        iterate(passes, run, screener, max_iter, tol, observe)
    return settle(passes, run, screener)


def settle(passes: Pass, run: Clustering, screener: Screener) -> Clustering:
    """Centroids as they will be returned, a screen for them to keep, labels and objective."""
    assert isinstance(run.screen, Screen)
    run.centers = passes.points.rounded(run.centers)
    run.screen = screener.last(run.screen, run.centers)
    run.finish(passes)
    run.screen.projected = None  # the screen outlives the rows
    return run


def iterate(
    passes: Pass, run: Clustering, screener: Screener, max_iter: int, tol: float = 0.0, observe: Observer | None = None
) -> None:
    """The iteration without its end."""
    while run.n_iter < max_iter and not run.converged:
        passes.assign(run.screen)
        passes.refill()
        changed = passes.follow()
        means, moves, assigned, updated = passes.sums.step(run.centers)
        run.advance(means, screener(means), assigned, updated)
        run.converged = changed == 0 or float((moves**2).sum()) <= tol
        if observe is not None and observe(run.n_iter, run.history[-1]):
            return
        passes.loosen(moves)


@contextmanager
def stopping_at_interrupt(run: Clustering) -> Iterator[None]:
    """Ctrl-C ends the iteration, with the last complete iterate."""
    try:
        yield
    except KeyboardInterrupt:
        run.interrupted = True
