"""The coarse step: which lists are nearest to a query."""

import math

import numpy as np
from numpy.typing import NDArray

from quickmeans.cluster import QKMeans
from quickmeans.lloyd.assign import Assignment
from quickmeans.search.scan import Probes


def nearest_lists(
    quantizer: QKMeans, queries: NDArray[np.float32], m: int, *, similarity: bool, n_threads: int
) -> Probes:
    """The m lists with the nearest centroids for every query, with squared distances or inner products.

    For m = 1 it is the list in which the query itself would be put.
    """
    screen, frame = quantizer._screen, quantizer._frame
    if m == 1:
        found = Assignment.empty(len(queries), screen.dtype)
        screen.assign(queries, found, n_threads, settle_all=True)
        lists, scores = found.labels.astype(np.int64)[:, None], found.best[:, None]
    else:
        settled = math.ceil(quantizer.n_candidates_)  # that much the screen is to be mistrusted
        lists, scores = screen.nearest(queries, m, m + m // 2 + 4 * (1 + settled), n_threads)
    if not similarity:
        mean = frame.mean.astype(np.float32)
        norms = np.einsum("id,id->i", queries, queries) + (mean @ mean - 2 * np.einsum("id,d->i", queries, mean))
        scores = np.maximum(norms[:, None] - 2 * scores, 0)
    return Probes(lists, scores.astype(np.float32))


def with_directions(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, with something else in place of zero rows: inner products with these are zero wherever they are."""
    zero = ~rows.any(axis=1)
    if zero.any():
        rows = rows.copy()
        rows[zero, 0] = 1
    return rows
