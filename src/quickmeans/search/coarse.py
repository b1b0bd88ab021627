"""The coarse step: which lists are nearest to a query."""

import math

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, Assignment


def nearest_lists(
    assigner: Assigner, n_candidates: float, queries: NDArray[np.float32], m: int, n_threads: int
) -> NDArray[np.int64]:
    """The m lists with the nearest centroids for every query; for m = 1 the list to which the query would be added.

    `n_candidates` is the mean number of exact distances that the assigner needed per row when it was fitted.
    """
    if m == 1:
        assignment = Assignment.empty(len(queries), assigner.geometry.dtype)
        assigner.assign(queries, assignment, n_threads, exact_scores=False)
        return assignment.labels.astype(np.int64)[:, None]
    return assigner.nearest(queries, m, _n_listed(m, n_candidates), n_threads)[0]


def _n_listed(m: int, n_candidates: float) -> int:
    """How many lists the product proposes, of which exact distances choose m.

    These contain 99.3 % of the m nearest lists or more (MNIST and word vectors; benchmarks/thresholds.py).
    """
    return m + m // 2 + 4 * (1 + math.ceil(n_candidates))
