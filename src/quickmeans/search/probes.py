"""The lists to search for every query, and faiss's search of them."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from quickmeans.search.lists import Lists, faiss_library

Part = TypeVar("Part")
Neighbors = tuple[NDArray[np.float32], NDArray[np.int64]]  # squared distances or inner products, nearest first; ids


class Probes(NamedTuple):
    """For every query its lists, and its squared distances to (or inner products with) their centroids."""

    lists: NDArray[np.int64]
    scores: NDArray[np.float32]

    def part(self, queries: slice | NDArray[Any]) -> "Probes":
        """The probes of these queries."""
        return Probes(self.lists[queries], self.scores[queries])


def empty_neighbors(n: int, k: int) -> Neighbors:
    """Memory for k neighbours of n queries."""
    return np.empty((n, k), np.float32), np.empty((n, k), np.int64)


def search_probes(lists: Lists, queries: NDArray[np.float32], probes: Probes, out: Neighbors) -> None:
    """faiss's search of the probed lists, on this thread; ids are -1 where the lists have too few rows."""
    faiss = faiss_library()
    n, m = probes.lists.shape
    arrays = [np.ascontiguousarray(a) for a in (queries, *probes)]
    x, at, scores, values, ids = map(faiss.swig_ptr, (*arrays, *out))
    parameters = faiss.SearchParametersIVF(nprobe=m)
    lists.search_preassigned_c(n, x, out[0].shape[1], at, scores, values, ids, False, parameters)


def search_probes_within(lists: Lists, queries: NDArray[np.float32], probes: Probes, limit: float) -> list[Neighbors]:
    """The rows of the probed lists below a squared distance, or above an inner product; on this thread."""
    faiss = faiss_library()
    arrays = [np.ascontiguousarray(a) for a in (queries, *probes)]
    x, at, scores = map(faiss.swig_ptr, arrays)
    result = faiss.RangeSearchResult(len(queries))
    parameters = faiss.SearchParametersIVF(nprobe=probes.lists.shape[1])
    lists.range_search_preassigned_c(len(queries), x, limit, at, scores, result, False, parameters, None)
    ends = faiss.rev_swig_ptr(result.lims, len(queries) + 1)
    values, ids = (faiss.rev_swig_ptr(a, int(ends[-1])) for a in (result.distances, result.labels))
    return [(values[begin:end].copy(), ids[begin:end].copy()) for begin, end in pairwise(ends)]


def on_one_faiss_thread(make_worker: Callable[[], Callable[[Part], object]]) -> Callable[[], Callable[[Part], object]]:
    """For `run_in_threads`: faiss uses no threads of its own in the worker's thread."""

    def make() -> Callable[[Part], object]:
        faiss_library().omp_set_num_threads(1)
        return make_worker()

    return make


def equal_slices(n: int, n_parts: int) -> list[slice]:
    """0 to n in so many slices of nearly equal length, none of them empty."""
    edges = np.linspace(0, n, min(n_parts, max(n, 1)) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges) if b > a]
