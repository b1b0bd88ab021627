r"""Searching given lists for the nearest rows.

A few queries go through their lists one after the other. Many are better served list by list: the pairs of a query and
a list are sorted by list, so that the rows of a list, once they are in the cache, meet all the queries that want them.
Where a list of plain rows meets many queries, their distances are one matrix product, about the centroid c of the list:

.. math:: \|x - y\|^2 = \|x - c\|^2 + \|y - c\|^2 - 2 \langle x - c, y - c\rangle,

which loses digits where x and y are close together; those distances are computed again from the difference.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.search.lists import Lists, faiss_library, list_rows, list_sizes
from quickmeans.threads import with_one_blas_thread

_ROOM = 1 << 19  # numbers of queries that are copied at a time
_CANDIDATES = 1 << 23  # results of lists, before they are merged, that are held at a time
_SHARED = 2.0  # other queries in the list of a query from which on pairs are sorted by list
_PRODUCT_QUERIES, _PRODUCT_ROWS = 8, 16  # a list of so many rows that meets so many queries
_PRODUCT_DISTANCES = 1024  # and so many of both together is searched by a matrix product
_CLOSE = 2e-3  # a squared distance below this share of the query's from the centroid is computed anew


class Probes(NamedTuple):
    """The lists to search for every query, and what the coarse step found: squared distances or inner products."""

    lists: NDArray[np.int64]
    scores: NDArray[np.float32]

    def of(self, part: slice) -> "Probes":
        """Those of some of the queries."""
        return Probes(self.lists[part], self.scores[part])


Found = tuple[NDArray[np.float32], NDArray[np.int64]]  # squared distances or inner products, best first; ids


def scan(lists: Lists, queries: NDArray[np.float32], probes: Probes, k: int, n_threads: int) -> Found:
    """The k best rows of the probed lists for every query; ids are -1 where there are fewer."""
    n, m = probes.lists.shape
    if n <= 1 or _company(probes.lists) < _SHARED:
        return _by_query(lists, queries, probes, k, n_threads)
    step = max(1, _CANDIDATES // (m * k))
    parts = [slice(i, i + step) for i in range(0, n, step)]
    found = [_by_list(lists, queries[p], probes.of(p), k, n_threads) for p in parts]
    return (np.concatenate([d for d, _ in found]), np.concatenate([i for _, i in found])) if parts[1:] else found[0]


def _company(lists: NDArray[np.int64]) -> float:
    """How many other queries want the same list, on average over pairs of a query and a list."""
    counts = np.bincount(lists.ravel()).astype(np.float64)
    return float(counts @ counts / counts.sum()) - 1


def scan_radius(
    lists: Lists, queries: NDArray[np.float32], probes: Probes, radius: float, n_threads: int
) -> list[Found]:
    """For every query the rows of its lists within a squared distance, or above an inner product."""
    faiss = faiss_library()
    found: list[Found] = [(np.empty(0, np.float32), np.empty(0, np.int64))] * len(queries)

    def search(part: slice) -> None:
        rows, at = queries[part], np.ascontiguousarray(probes.lists[part])
        result = faiss.RangeSearchResult(len(rows))
        parameters = faiss.SearchParametersIVF(nprobe=at.shape[1])
        scores = np.ascontiguousarray(probes.scores[part])
        lists.range_search_preassigned_c(
            len(rows),
            faiss.swig_ptr(rows),
            radius,
            faiss.swig_ptr(at),
            faiss.swig_ptr(scores),
            result,
            False,
            parameters,
            None,
        )
        limits = faiss.rev_swig_ptr(result.lims, len(rows) + 1)
        values = faiss.rev_swig_ptr(result.distances, int(limits[-1]))
        ids = faiss.rev_swig_ptr(result.labels, int(limits[-1]))
        for i, (begin, end) in enumerate(pairwise(limits)):
            found[part.start + i] = values[begin:end].copy(), ids[begin:end].copy()

    in_threads(lambda: search, _slices(len(queries), n_threads), n_threads)
    return found


def brute_force(rows: NDArray[np.float32], queries: NDArray[np.float32], k: int, similarity: bool, n: int) -> Found:
    """The k best of all rows, by n threads."""
    faiss = faiss_library()
    metric = faiss.METRIC_INNER_PRODUCT if similarity else faiss.METRIC_L2
    values, ids = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)

    def search(part: slice) -> None:
        values[part], ids[part] = faiss.knn(queries[part], rows, k, metric=metric)

    in_threads(lambda: search, _slices(len(queries), n), n)
    return values, ids


def in_threads(make_worker: Callable[[], Callable[[Any], None]], parts: Sequence[Any], n_threads: int) -> None:
    """Give all parts to workers, each with its own memory. faiss uses no threads of its own meanwhile."""
    faiss = faiss_library()
    waiting = iter(parts)

    def run(_: int) -> None:
        faiss.omp_set_num_threads(1)
        work = make_worker()
        for part in waiting:
            work(part)

    n = min(n_threads, max(len(parts), 1))
    with ThreadPoolExecutor(n) as pool:
        for _ in pool.map(run, range(n)):
            pass


def _slices(n: int, n_parts: int) -> list[slice]:
    edges = np.linspace(0, n, min(n_parts, max(n, 1)) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges) if b > a]


def _search(lists: Lists, queries: NDArray[np.float32], probes: Probes, found: Found) -> None:
    """faiss's search of given lists, on this thread."""
    faiss = faiss_library()
    n, m = probes.lists.shape
    arrays = [np.ascontiguousarray(a) for a in (queries, *probes)]
    x, at, scores, values, ids = map(faiss.swig_ptr, (*arrays, *found))
    lists.search_preassigned_c(
        n, x, found[0].shape[1], at, scores, values, ids, False, faiss.SearchParametersIVF(nprobe=m)
    )


def _by_query(lists: Lists, queries: NDArray[np.float32], probes: Probes, k: int, n_threads: int) -> Found:
    n = len(queries)
    values, ids = np.empty((n, k), np.float32), np.empty((n, k), np.int64)
    if n == 1 or n_threads == 1:
        _search(lists, queries, probes, (values, ids))
        return values, ids

    def search(p: slice) -> None:
        _search(lists, queries[p], probes.of(p), (values[p], ids[p]))

    in_threads(lambda: search, _slices(n, n_threads), n_threads)
    return values, ids


@with_one_blas_thread
def _by_list(lists: Lists, queries: NDArray[np.float32], probes: Probes, k: int, n_threads: int) -> Found:
    """All queries of a list together. Pair j n + i is query i with its j-th list."""
    n, m = probes.lists.shape
    of_pair = probes.lists.T.ravel()
    order, starts = kernels.group_by_label(of_pair, lists.nlist)
    by_product = _lists_for_products(lists, np.diff(starts))
    others = order[~by_product[of_pair[order]]]
    step = max(1, _ROOM // lists.d)
    pairs = [others[i : i + step] for i in range(0, len(others), step)]
    pairs += [order[starts[label] : starts[label + 1]] for label in np.flatnonzero(by_product)]
    room = max(step, int(np.diff(starts)[by_product].max(initial=0)))
    work = _PairSearch(lists, queries, of_pair, probes.scores.T.ravel(), by_product, k)
    in_threads(lambda: work.worker(room), pairs, n_threads)
    found: Found = faiss_library().merge_knn_results(
        work.values.reshape(m, n, k), work.ids.reshape(m, n, k), keep_max=work.similarity
    )
    return found


class _PairSearch:
    """The best rows for pairs of queries and lists, some pairs at a time."""

    def __init__(
        self,
        lists: Lists,
        queries: NDArray[np.float32],
        of_pair: NDArray[np.int64],
        scores: NDArray[np.float32],
        by_product: NDArray[np.bool_],
        k: int,
    ) -> None:
        faiss = faiss_library()
        self.lists, self.queries, self.of_pair, self.scores = lists, queries, of_pair, scores
        self.by_product, self.k = by_product, k
        self.similarity = lists.metric_type == faiss.METRIC_INNER_PRODUCT
        self.values = np.full((len(of_pair), k), -np.inf if self.similarity else np.inf, np.float32)
        self.ids = np.full((len(of_pair), k), -1, np.int64)

    def worker(self, room: int) -> Callable[[NDArray[np.int64]], None]:
        """A function that searches pairs: of any lists, or of one list for a product. It has its own memory."""
        memory = np.empty((room, self.queries.shape[1]), np.float32)

        def search(pairs: NDArray[np.int64]) -> None:
            x, label = memory[: len(pairs)], self.of_pair[pairs[0]]
            np.take(self.queries, pairs % len(self.queries), axis=0, out=x, mode="clip")
            find = self._by_product if self.by_product[label] else self._by_pairs
            values, ids = find(x, pairs)
            self.values[pairs, : values.shape[1]], self.ids[pairs, : values.shape[1]] = values, ids

        return search

    def _by_pairs(self, x: NDArray[np.float32], pairs: NDArray[np.int64]) -> Found:
        found = np.empty((len(pairs), self.k), np.float32), np.empty((len(pairs), self.k), np.int64)
        _search(self.lists, x, Probes(self.of_pair[pairs, None], self.scores[pairs, None]), found)
        return found

    def _by_product(self, x: NDArray[np.float32], pairs: NDArray[np.int64]) -> Found:
        faiss = faiss_library()
        label = int(self.of_pair[pairs[0]])
        rows, names = list_rows(self.lists, label)
        k = min(self.k, len(rows))
        values, found = np.empty((len(x), k), np.float32), np.empty((len(x), k), np.int64)
        if self.similarity:
            kernels.smallest(-faiss.pairwise_distances(x, rows, faiss.METRIC_INNER_PRODUCT), values, found)
            return -values, names[found]
        center = self.lists.quantizer.reconstruct(label)
        x -= center
        kernels.smallest(faiss.pairwise_distances(x, rows - center), values, found)
        np.maximum(values, 0, out=values)
        norms = np.einsum("id,id->i", x, x)
        close = values < _CLOSE * norms[:, None]  # where x and y are close together, |y - c| is close to |x - c|
        if close.any():
            i, j = np.nonzero(close)
            difference = self.queries[pairs[i] % len(self.queries)] - rows[found[i, j]]
            values[i, j] = np.einsum("id,id->i", difference, difference)
            order = np.argsort(values, axis=1, kind="stable")
            values, found = np.take_along_axis(values, order, 1), np.take_along_axis(found, order, 1)
        ids = names[found]
        lost = close.all(axis=1)  # others may be as close as these
        if lost.any() and k < len(rows):
            values[lost], ids[lost] = self._by_pairs(self.queries[pairs[lost] % len(self.queries)], pairs[lost])
        return values, ids


def _lists_for_products(lists: Lists, n_queries: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which lists are worth a matrix product."""
    if not isinstance(lists, faiss_library().IndexIVFFlat):
        return np.zeros(lists.nlist, np.bool_)
    sizes = list_sizes(lists)
    enough = (n_queries >= _PRODUCT_QUERIES) & (sizes >= _PRODUCT_ROWS)
    return np.asarray(enough & (n_queries * sizes >= _PRODUCT_DISTANCES))
