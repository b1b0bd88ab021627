"""A run of iterations that rows have of their own."""

from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.context import Start
from quickmeans.kmeans.iteration import Iteration
from quickmeans.kmeans.lloyd import Clustering, Iterate, Observer
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.settings import Settings


def iterated(
    iteration: Iteration, settings: Settings, points: Points, start: Start, choose: ScreenChooser, observe: Observer
) -> Clustering:
    """Iterate until convergence unless Ctrl-C has come before, and label all rows."""
    history, n_iter, tol = list(start.history), 0, points.tolerance(settings.tol)
    try:
        while n_iter < settings.max_iter and not iteration.converged and not start.ended:
            history += iteration.step(tol)
            n_iter += 1
            if observe(n_iter, history[-1]):
                break
        interrupted = start.interrupted
    except KeyboardInterrupt:
        interrupted = True
    centers = points.rounded(iteration.centers())
    screen = choose.dense(centers)
    if settings.compression is not None:
        screen = choose.last(screen, centers)
    last = iteration.label(screen, centers)
    iterate = Iterate(centers, history, n_iter, iteration.converged, interrupted, assigner=screen)
    return Clustering(iterate, last.labels, last.objective, 0.0, last.weights, int((last.sizes > 0).sum()))
