"""Rows in inverted lists, searched by way of the coarse step."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner, Assignment
from quickmeans.search.coarse import NearestLists
from quickmeans.search.flat import FlatRows
from quickmeans.search.ids import RowIds
from quickmeans.search.lists import Lists, add_rows, coarse_scores, faiss_library, remove_rows
from quickmeans.search.metrics import Metric
from quickmeans.search.probes import Neighbors, Probes
from quickmeans.search.rows import LARGEST_SQUARE, as_float32
from quickmeans.search.scan import scan, scan_radius
from quickmeans.search.turns import Turns


@dataclass
class InvertedIndex:
    """The lists, what finds the lists of a query, the ids of the rows, and the distances that users get.

    Rows are added and removed while nobody searches.

    Attributes
    ----------
    lists : faiss.IndexIVF
    ids : RowIds
    metric : Metric
    assigner : Assigner
        Over the centroids of the lists.
    coarse : NearestLists or None
        None: the centroids are rows of a product, by which the assigner finds the lists.
    """

    lists: Lists
    ids: RowIds
    metric: Metric
    assigner: Assigner
    coarse: NearestLists | None

    def __post_init__(self) -> None:
        self.turns = Turns()

    @cached_property
    def _flat(self) -> FlatRows | None:
        """The rows for the native search; None if the lists have codes."""
        return FlatRows(self.lists) if isinstance(self.lists, faiss_library().IndexIVFFlat) else None

    def __getstate__(self) -> dict[str, Any]:
        """Lists as an array of bytes, which faiss can read back; what depends on addresses is made anew."""
        with self.turns:
            state = {name: value for name, value in self.__dict__.items() if name not in ("turns", "_flat")}
            return state | {"lists": faiss_library().serialize_index(self.lists)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"lists": faiss_library().deserialize_index(state["lists"])})
        self.__post_init__()

    # ---- searches -------------------------------------------------------------------------------------------------

    def nearest(self, queries: NDArray[np.float32], k: int, m: int, n_threads: int) -> Neighbors:
        """Distances and row numbers of the k nearest rows in the m nearest lists of every query, nearest first.

        Queries whose lists have fewer than k rows get more lists.
        """
        with self.turns:
            values, rows = self._nearest(queries, k, m, n_threads)
        return self.metric.distances(values), rows

    def within(
        self, queries: NDArray[np.float32], radius: float, m: int, n_threads: int, *, sort: bool
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distances and numbers of the rows within the radius in the m nearest lists: one array per query."""
        with self.turns:
            probes = self.probes(as_float32(queries, "X"), m, n_threads)
            results = scan_radius(self.lists, queries, probes, self.metric.limit(radius), n_threads)
        all_distances, all_rows = np.empty((2, len(results)), object)
        for i, (values, rows) in enumerate(results):
            distances = self.metric.distances(values)
            if sort:
                order = np.argsort(distances if self.metric.is_distance else -distances, kind="stable")
                distances, rows = distances[order], rows[order]
            all_distances[i], all_rows[i] = distances, rows
        return all_distances, all_rows

    def probes(self, queries: NDArray[np.float32], m: int, n_threads: int) -> Probes:
        """The m nearest lists of every query."""
        nearest = self.nearest_lists(queries, m, n_threads)
        return Probes(nearest, coarse_scores(self.lists, queries, nearest))

    def nearest_lists(self, queries: NDArray[np.float32], m: int, n_threads: int) -> NDArray[np.int64]:
        """The m lists with the nearest centroids for every query; for m = 1 the list to which it would be added."""
        if m == 1:
            assignment = Assignment.empty(len(queries), self.assigner.geometry.dtype)
            self.assigner.assign(queries, assignment, n_threads, exact_scores=False)
            return assignment.labels.astype(np.int64)[:, None]
        if self.coarse is None:
            return self.assigner.nearest(queries, m, m, n_threads)[0]
        return self.coarse.find(queries, m, n_threads)

    def _nearest(self, queries: NDArray[np.float32], k: int, m: int, n_threads: int) -> Neighbors:
        """The same with what is compared in place of distances."""
        values, rows = self._in_lists(queries, k, m, n_threads)
        if (rows[:, -1] < 0).any():
            short = np.flatnonzero(rows[:, -1] < 0)
            if m == self.lists.nlist:
                self.check_count(k)  # rows may have been removed since it was asked
                raise ValueError("Distances overflow float32, and rows at infinite distance are not found; scale X.")
            values[short], rows[short] = self._nearest(queries[short], k, min(2 * m, self.lists.nlist), n_threads)
        return values, rows

    def _in_lists(self, queries: NDArray[np.float32], k: int, m: int, n_threads: int) -> Neighbors:
        if self._flat is None or m == 1 or self.coarse is None:
            queries = as_float32(queries, "X")
        if self._flat is None:
            return scan(self.lists, queries, self.probes(queries, m, n_threads), k, n_threads)
        if m == 1 or self.coarse is None:
            return self._flat.native.search(queries, self.nearest_lists(queries, m, n_threads), k, n_threads)
        rows, counts = self._flat.native, self.coarse.counts(m)
        *found, bad = self.coarse.native.search(queries, counts, rows, k, LARGEST_SQUARE, n_threads)
        if bad >= 0:
            as_float32(queries, "X")  # an error that names the row
        return found[0], found[1]

    def check_count(self, k: int) -> None:
        """Refuse more neighbours than there are rows."""
        if k > self.lists.ntotal:
            raise ValueError(f"n_neighbors must not exceed the rows of the index, {self.lists.ntotal}, got {k}.")

    # ---- changes --------------------------------------------------------------------------------------------------

    def add(
        self, blocks: Iterable[tuple[slice, NDArray[np.float32]]], labels: NDArray[np.int32], ids: Any
    ) -> NDArray[np.int64]:
        """Add rows to the lists that their labels name, and return their numbers; all of them or, on errors, none."""
        with self.turns.changing():
            before = len(self.ids)
            new_ids = self.ids.extended(len(labels), ids)
            numbers = np.arange(before, len(new_ids))
            try:
                for place, block in blocks:
                    add_rows(self.lists, block, labels[place], numbers[place])
                self.ids = new_ids
            except BaseException:  # a file that cannot be read to its end
                remove_rows(self.lists, numbers)
                raise
            finally:
                self._refresh()
        return numbers

    def remove(self, ids: Any) -> None:
        """Remove the rows with these ids; if there is none with one of them, none is removed."""
        with self.turns.changing():
            rows = self.ids.rows(ids)
            remove_rows(self.lists, rows)
            self.ids = self.ids.without(rows)
            self._refresh()

    def _refresh(self) -> None:
        if self._flat is not None:
            self._flat.refresh()
