"""A run of iterations that rows have of their own."""

from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.iteration import Iteration
from quickmeans.kmeans.lloyd import Clustering, Iterate, Observer, stopping_at_interrupt
from quickmeans.kmeans.rows import Points, Start
from quickmeans.kmeans.settings import Settings


def iterated(
    iteration: Iteration, settings: Settings, points: Points, start: Start, choose: ScreenChooser, observe: Observer
) -> Clustering:
    """Iterate until convergence unless Ctrl-C has come before, and label all rows."""
    iterate = Iterate(start.centers, choose.dense(start.centers), history=list(start.history))
    iterate.interrupted, tol = start.interrupted, points.tolerance(settings.tol)
    with stopping_at_interrupt(iterate):
        while iterate.n_iter < settings.max_iter and not iterate.converged and not start.ended:
            iterate.history += iteration.step(tol)
            iterate.n_iter += 1
            iterate.converged = iteration.converged
            if observe(iterate.n_iter, iterate.history[-1]):
                break
    iterate.centers = points.rounded(iteration.centers())
    iterate.assigner = screen = choose.last(choose.dense(iterate.centers), iterate.centers)
    last = iteration.label(screen, iterate.centers)
    n_filled = int((last.sizes > 0).sum())
    return Clustering(iterate, last.labels, last.objective, 0.0, last.weights, n_filled)
