"""The coarse step: which lists are nearest to a query."""

import math

import numpy as np
from numpy.typing import NDArray

from quickmeans.cluster import QKMeans
from quickmeans.kmeans.assignment import Assignment


def nearest_lists(quantizer: QKMeans, queries: NDArray[np.float32], m: int, n_threads: int) -> NDArray[np.int64]:
    """The m lists with the nearest centroids for every query; for m = 1 the one in which the query would be put."""
    screen = quantizer._screen
    if m == 1:
        found = Assignment.empty(len(queries), screen.dtype)
        screen.assign(queries, found, n_threads, settle_all=False)
        return found.labels.astype(np.int64)[:, None]
    settled = math.ceil(quantizer.n_candidates_)  # that much the screen is to be mistrusted
    return screen.nearest(queries, m, m + m // 2 + 4 * (1 + settled), n_threads)[0]


def with_directions(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, with something else in place of zero rows: inner products with these are zero wherever they are."""
    zero = ~rows.any(axis=1)
    if zero.any():
        rows = rows.copy()
        rows[zero, 0] = 1
    return rows
