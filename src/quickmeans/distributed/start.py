"""Starting centroids for rows on a Dask cluster."""

from functools import partial
from typing import Any

import dask

from quickmeans.data.memory_rows import ArrayRows
from quickmeans.distributed.reduction import Draw, drawn, merge_draws, tree
from quickmeans.distributed.tasks import compute
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.start import sample_size, start_from_sample


def dask_start(weighted_parts: list[tuple[Any, Any]], points: Points, context: Context) -> Start:
    """From a sample of the rows, which comes to the client with its weights; the workers draw it."""
    settings = context.settings
    count = sample_size(*points.rows.shape, settings.n_clusters)
    draws = [
        dask.delayed(drawn)(part, weights, count, (context.seed, i)) for i, (part, weights) in enumerate(weighted_parts)
    ]
    sample: Draw = compute(tree(draws, dask.delayed(partial(merge_draws, count=count))))
    return start_from_sample(points, ArrayRows(sample.rows, sample.weights).points(settings, ()), context)
