"""faiss's search of given lists for the nearest rows, on several threads: of codes, and within a radius."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quickmeans.search.lists import Lists, faiss_library
from quickmeans.search.probes import (
    Neighbors,
    Probes,
    empty_neighbors,
    equal_slices,
    on_one_faiss_thread,
    search_probes,
    search_probes_within,
)
from quickmeans.threads import run_in_threads


def scan(lists: Lists, queries: NDArray[np.float32], probes: Probes, k: int, n_threads: int) -> Neighbors:
    """The k nearest rows of the probed lists for every query; ids are -1 where there are fewer."""
    n = len(queries)
    values, ids = empty_neighbors(n, k)

    def search(part: slice) -> None:
        search_probes(lists, queries[part], probes.part(part), (values[part], ids[part]))

    if n == 1 or n_threads == 1:
        search(slice(0, n))
    else:
        _over_queries(search, n, n_threads)
    return values, ids


def scan_radius(
    lists: Lists, queries: NDArray[np.float32], probes: Probes, limit: float, n_threads: int
) -> list[Neighbors]:
    """For every query the rows of its lists below a squared distance, or above an inner product."""
    results: list[Neighbors] = [(np.empty(0, np.float32), np.empty(0, np.int64))] * len(queries)

    def search(part: slice) -> None:
        results[part] = search_probes_within(lists, queries[part], probes.part(part), limit)

    _over_queries(search, len(queries), n_threads)
    return results


def brute_force(
    rows: NDArray[np.float32], queries: NDArray[np.float32], k: int, similarity: bool, n_threads: int
) -> Neighbors:
    """The k nearest of all rows for every query."""
    faiss = faiss_library()
    metric = faiss.METRIC_INNER_PRODUCT if similarity else faiss.METRIC_L2
    values, ids = empty_neighbors(len(queries), k)

    def search(part: slice) -> None:
        values[part], ids[part] = faiss.knn(queries[part], rows, k, metric=metric)

    _over_queries(search, len(queries), n_threads)
    return values, ids


def _over_queries(search: Callable[[slice], None], n_queries: int, n_threads: int) -> None:
    """Call the search for slices of the queries, one per thread."""
    run_in_threads(on_one_faiss_thread(lambda: search), equal_slices(n_queries, n_threads), n_threads)
