"""Starting centroids for rows on a Dask cluster."""

from functools import partial
from typing import Any, Protocol

import dask
import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory_rows import ArrayRows
from quickmeans.distributed.passes import ChunkedRows, reduced
from quickmeans.distributed.reduction import Draw, drawn, merge_draws, tree
from quickmeans.distributed.tasks import compute, send
from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.lloyd import Iterate, lloyd
from quickmeans.kmeans.rows import Context, Index, Points, Start
from quickmeans.kmeans.start import kmeans_plusplus

_ROUNDS = 2  # of k-means||, after the first rows (Bahmani et al., 2012, find that a few are enough)
_ITERATIONS = 5  # on the rows drawn, by their weights


class TakenRows(ChunkedRows, Protocol):
    """Rows on a cluster of which some can be brought to the client."""

    def take(self, index: Index) -> NDArray[Any]:
        """The rows with these numbers."""


def dask_start(rows: TakenRows, points: Points, context: Context) -> Start:
    """k-means||, or rows drawn by weight for `init="random"`."""
    if context.settings.init == "random":
        return Start(points.geometry.centered(_random_rows(rows, points, context)))
    return Start(_kmeans_parallel(rows, points, context))


def _random_rows(rows: TakenRows, points: Points, context: Context) -> NDArray[np.float64]:
    K = context.settings.n_clusters
    chosen = _draw(rows, points, None, K, (context.seed,)).astype(np.float64)
    return np.resize(chosen, (K, points.n_columns))  # some of them twice if too few have weight


def _kmeans_parallel(rows: TakenRows, points: Points, context: Context) -> NDArray[np.float64]:
    """Rows drawn at random, then some by squared distance, twice; these are clustered by their weights."""
    K, geometry = context.settings.n_clusters, points.geometry
    rng = np.random.default_rng(context.seed)
    index = np.sort(rng.choice(len(points), min(K, len(points)), replace=False))
    chosen = np.asarray(rows.take(index), np.float64)
    for turn in range(_ROUNDS):
        assigner = context.assigner_for(geometry.centered(chosen))
        more = _draw(rows, points, assigner, K, (context.seed, turn))
        chosen = np.concatenate([chosen, more.astype(np.float64)])
    part = reduced(rows, context.assigner_for(geometry.centered(chosen)), points.n_threads)
    counts = np.zeros(len(chosen))
    counts[part.clusters] = part.weights
    local = ArrayRows(chosen, counts).points(context.settings, ())
    centers = kmeans_plusplus(local, K, rng)
    choose = ScreenChooser(local, rng)
    iterate = Iterate(centers, choose(centers))
    passes = local.rows.passes(local, K, stateless=False)
    lloyd(passes, iterate, choose, max_iter=_ITERATIONS)
    return np.asarray(local.rounded(iterate.centers) + local.geometry.mean - geometry.mean, np.float64)


def _draw(
    rows: TakenRows, points: Points, assigner: Assigner | None, count: int, seed: tuple[int, ...]
) -> NDArray[Any]:
    message = None if assigner is None else send(assigner)
    draws = [
        dask.delayed(drawn)(part, weights, message, points.n_threads, count, (*seed, i))
        for i, (part, weights) in enumerate(rows.weighted_parts)
    ]
    result: Draw = compute(tree(draws, dask.delayed(partial(merge_draws, count=count))))
    return result.rows
