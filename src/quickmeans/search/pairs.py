r"""Searching list by list: pairs of a query and a list, sorted by list.

The rows of a list, once they are in the cache, are compared with all the queries that probe it. Where a list of plain
rows is probed by many queries, the distances are one matrix product, about the centroid c of the list:

.. math:: \|x - y\|^2 = \|x - c\|^2 + \|y - c\|^2 - 2 \langle x - c, y - c\rangle.

It loses digits where x and y are close together; those distances are computed again from the difference.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.search.lists import Lists, faiss_library, list_rows, list_sizes
from quickmeans.search.probes import Neighbors, Probes, empty_neighbors, on_one_faiss_thread, search_probes
from quickmeans.threads import run_in_threads

_BUFFER = 1 << 19  # numbers in a worker's copy of queries: 2 MB
# A matrix product is for lists with so many queries, rows, and pairs of both. From there on it is faster for 784
# features; for 128 features, from four times as many pairs on (benchmarks/thresholds.py).
_PRODUCT_QUERIES, _PRODUCT_ROWS, _PRODUCT_DISTANCES = 8, 16, 1024
# A squared distance below this share of |x - c|^2 is computed again. Products round by about 4 eps |x - c|^2, so that
# the other ones are right to 4 eps / _CLOSE = 2.4e-4.
_CLOSE = 2e-3


def scan_by_list(lists: Lists, queries: NDArray[np.float32], probes: Probes, k: int, n_threads: int) -> Neighbors:
    """The k nearest rows of the probed lists for every query; all queries of a list together.

    Pair j n + i is query i with its j-th list.
    """
    n, m = probes.lists.shape
    list_of_pair = probes.lists.T.ravel()
    order, starts = kernels.group_by_label(list_of_pair, lists.nlist)
    n_queries = np.diff(starts)
    by_product = _lists_for_products(lists, n_queries)
    remaining = order[~by_product[list_of_pair[order]]]
    step = max(1, _BUFFER // lists.d)
    parts = [remaining[i : i + step] for i in range(0, len(remaining), step)]
    parts += [order[starts[label] : starts[label + 1]] for label in np.flatnonzero(by_product)]
    longest = max(step, int(n_queries[by_product].max(initial=0)))
    search = _PairSearch(lists, queries, list_of_pair, probes.scores.T.ravel(), by_product, k)
    run_in_threads(on_one_faiss_thread(lambda: search.worker(longest)), parts, n_threads)
    merged: Neighbors = faiss_library().merge_knn_results(
        search.values.reshape(m, n, k), search.ids.reshape(m, n, k), keep_max=search.similarity
    )
    return merged


def _lists_for_products(lists: Lists, n_queries: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which lists are large enough, and probed by enough queries, for a matrix product."""
    if not isinstance(lists, faiss_library().IndexIVFFlat):
        return np.zeros(lists.nlist, np.bool_)
    sizes = list_sizes(lists)
    enough = (n_queries >= _PRODUCT_QUERIES) & (sizes >= _PRODUCT_ROWS)
    return np.asarray(enough & (n_queries * sizes >= _PRODUCT_DISTANCES))


class _PairSearch:
    """The nearest rows for pairs of queries and lists; workers fill in `values` and `ids`, one row per pair."""

    def __init__(
        self,
        lists: Lists,
        queries: NDArray[np.float32],
        list_of_pair: NDArray[np.int64],
        scores: NDArray[np.float32],
        by_product: NDArray[np.bool_],
        k: int,
    ) -> None:
        self.lists, self.queries, self.list_of_pair, self.scores = lists, queries, list_of_pair, scores
        self.by_product, self.k = by_product, k
        self.similarity = lists.metric_type == faiss_library().METRIC_INNER_PRODUCT
        self.values = np.full((len(list_of_pair), k), -np.inf if self.similarity else np.inf, np.float32)
        self.ids = np.full((len(list_of_pair), k), -1, np.int64)

    def worker(self, n_pairs: int) -> Callable[[NDArray[np.int64]], None]:
        """A function that searches up to `n_pairs` pairs: of any lists, or of one list for a product.

        It copies the queries to a buffer of its own.
        """
        buffer = np.empty((n_pairs, self.queries.shape[1]), np.float32)

        def search(pairs: NDArray[np.int64]) -> None:
            x, label = buffer[: len(pairs)], self.list_of_pair[pairs[0]]
            np.take(self.queries, pairs % len(self.queries), axis=0, out=x, mode="clip")
            nearest = self._by_product if self.by_product[label] else self._by_pairs
            values, ids = nearest(x, pairs)
            self.values[pairs, : values.shape[1]], self.ids[pairs, : values.shape[1]] = values, ids

        return search

    def _by_pairs(self, x: NDArray[np.float32], pairs: NDArray[np.int64]) -> Neighbors:
        """The k nearest rows of each pair by faiss; x are the queries of the pairs."""
        neighbors = empty_neighbors(len(pairs), self.k)
        search_probes(self.lists, x, Probes(self.list_of_pair[pairs, None], self.scores[pairs, None]), neighbors)
        return neighbors

    def _by_product(self, x: NDArray[np.float32], pairs: NDArray[np.int64]) -> Neighbors:
        """The same for pairs of one list by a matrix product; x is overwritten."""
        faiss = faiss_library()
        label = int(self.list_of_pair[pairs[0]])
        rows, row_ids = list_rows(self.lists, label)
        k = min(self.k, len(rows))
        if self.similarity:
            values, nearest = kernels.smallest(-faiss.pairwise_distances(x, rows, faiss.METRIC_INNER_PRODUCT), k)
            return -values, row_ids[nearest]
        center = self.lists.quantizer.reconstruct(label)
        x -= center
        values, nearest = kernels.smallest(faiss.pairwise_distances(x, rows - center), k)
        np.maximum(values, 0, out=values)
        close = values < _CLOSE * np.einsum("id,id->i", x, x)[:, None]  # where x is near y, |y - c| is near |x - c|
        if close.any():
            i, j = np.nonzero(close)
            difference = self.queries[pairs[i] % len(self.queries)] - rows[nearest[i, j]]
            values[i, j] = np.einsum("id,id->i", difference, difference)
            order = np.argsort(values, axis=1, kind="stable")
            values, nearest = np.take_along_axis(values, order, 1), np.take_along_axis(nearest, order, 1)
        ids = row_ids[nearest]
        uncertain = close.all(axis=1)  # rounding may have put rows that are as close after the first k
        if uncertain.any() and k < len(rows):
            again = pairs[uncertain]
            values[uncertain], ids[uncertain] = self._by_pairs(self.queries[again % len(self.queries)], again)
        return values, ids
