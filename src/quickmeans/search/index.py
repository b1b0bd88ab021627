"""Rows in inverted lists, searched by way of the coarse step."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner
from quickmeans.search.coarse import nearest_lists
from quickmeans.search.lists import Lists, coarse_scores
from quickmeans.search.metrics import Metric
from quickmeans.search.probes import Neighbors, Probes
from quickmeans.search.scan import scan, scan_radius


@dataclass(frozen=True)
class InvertedIndex:
    """The lists, what finds the lists of a query, and the distances that users get.

    Attributes
    ----------
    lists : faiss.IndexIVF
    metric : Metric
    assigner : Assigner
        Over the centroids of the lists.
    n_candidates : float
        The mean number of exact distances per row that the assigner needed when it was fitted.
    """

    lists: Lists
    metric: Metric
    assigner: Assigner
    n_candidates: float

    def nearest(self, queries: NDArray[np.float32], k: int, m: int, n_threads: int) -> Neighbors:
        """Distances and ids of the k nearest rows in the m nearest lists of every query, nearest first.

        Queries whose lists have fewer than k rows get more lists.
        """
        values, ids = self._nearest(queries, k, m, n_threads)
        return self.metric.distances(values), ids

    def within(
        self, queries: NDArray[np.float32], radius: float, m: int, n_threads: int, *, sort: bool
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distances and ids of the rows within the radius in the m nearest lists: one array per query."""
        probes = self.probes(queries, m, n_threads)
        results = scan_radius(self.lists, queries, probes, self.metric.limit(radius), n_threads)
        all_distances, all_ids = np.empty((2, len(results)), object)
        for i, (values, ids) in enumerate(results):
            distances = self.metric.distances(values)
            if sort:
                order = np.argsort(distances if self.metric.is_distance else -distances, kind="stable")
                distances, ids = distances[order], ids[order]
            all_distances[i], all_ids[i] = distances, ids
        return all_distances, all_ids

    def probes(self, queries: NDArray[np.float32], m: int, n_threads: int) -> Probes:
        """The m nearest lists of every query."""
        n_candidates = min(self.n_candidates, self.lists.nlist)  # a file may name any number
        nearest = nearest_lists(self.assigner, n_candidates, queries, m, n_threads)
        return Probes(nearest, coarse_scores(self.lists, queries, nearest))

    def _nearest(self, queries: NDArray[np.float32], k: int, m: int, n_threads: int) -> Neighbors:
        """The same with what faiss compares in place of distances."""
        values, ids = scan(self.lists, queries, self.probes(queries, m, n_threads), k, n_threads)
        short = np.flatnonzero(ids[:, -1] < 0)
        if len(short):
            if m == self.lists.nlist:
                raise ValueError("Distances overflow float32, and rows at infinite distance are not found; scale X.")
            values[short], ids[short] = self._nearest(queries[short], k, min(2 * m, self.lists.nlist), n_threads)
        return values, ids
