"""Many clusters: a start by levels, then iterations in which rows are compared with the centroids near their own.

With many clusters the next centroid of a row is mostly a neighbour of its present one, so an iteration costs as much
for a million centroids as for a thousand. See ``native/local_search.hpp``.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.context import Context
from quickmeans.kmeans.dense import DenseSearch
from quickmeans.kmeans.lloyd import (
    Clustering,
    Means,
    Observer,
    finish,
    lloyd_natively,
    screen_to_keep,
    stopping_at_interrupt,
)
from quickmeans.kmeans.memory_pass import labelled, last_pass
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.swaps import improve_locally

_ROW_BYTES = 48  # labels, scores and norms of a row, its place in the order, its weight
_CENTER_BYTES = 320  # the list of a centroid, and what is known of its cluster
_CENTER_ARRAYS = 10  # of float32: centroids, those that were kept, those of the result and of its screen


def run_among_neighbors(
    points: Points, context: Context, centers: NDArray[np.float64], choose: ScreenChooser, observe: Observer | None
) -> Clustering:
    """Move centered centroids among all rows, with swaps where a search is wanted, and label the rows."""
    settings = context.settings
    search = DenseSearch.of(points.shared(), centers, points.geometry, kernels.LocalSearch)
    means, tol = Means(centers), points.tolerance(settings.tol)
    with stopping_at_interrupt(means):
        stopped = _swapped(search, means, context)
        if not stopped:
            lloyd_natively(search, means, max_iter=settings.max_iter, tol=tol, observe=observe)
    means.centers = points.rounded(means.centers)
    iterate = means.assigned_by(screen_to_keep(choose, means, search.cluster_weights()))
    with stopping_at_interrupt(iterate):
        if not iterate.interrupted:
            return finish(partial(last_pass, points), iterate)
    search.native.assign()
    last = labelled(points, search.native.labels(), means.centers, float(search.native.n_near))
    return Clustering(iterate, last.labels, last.objective, last.n_candidates, last.weights, last.n_filled)


def needed_bytes(points: Points, settings: Settings) -> int:
    """Memory beside X: what is known of every row and every centroid, and a copy of the rows if one must be made."""
    row = _ROW_BYTES + (0 if points.is_read_in_place else 4 * points.n_columns)
    return len(points) * row + settings.n_clusters * (_CENTER_BYTES + _CENTER_ARRAYS * 4 * points.n_columns)


def _swapped(search: DenseSearch[kernels.LocalSearch], means: Means, context: Context) -> bool:
    """Rounds of priced swaps; whether the observer asked to stop."""
    if not context.settings.effort.passes:
        return False

    def observe(move: str, objective: float) -> bool:
        means.history.append(search.objective_unit * objective)
        return context.observe(move, means.history[-1])

    try:
        return improve_locally(search.native, context.settings, observe)
    finally:
        means.centers = search.centers()
