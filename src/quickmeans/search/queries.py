"""The queries of an estimator that has an inverted index, with the signatures of scikit-learn."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from quickmeans.checks import check_whole, is_number
from quickmeans.search.index import InvertedIndex
from quickmeans.search.probes import Neighbors
from quickmeans.threads import resolve_threads


class NeighborQueries(ABC):
    """Nearest rows, rows within a radius, and the graph of neighbours."""

    n_neighbors: int
    radius: float
    n_threads: int | None
    nprobe_: int

    _index: InvertedIndex  # when fitted

    @abstractmethod
    def _blocks(self, X: Any) -> Iterable[NDArray[np.float32]]:
        """X as the index compares it, in one block or several."""

    @property
    def n_samples_fit_(self) -> int:
        """The number of rows that the index has now."""
        return int(self._index.lists.ntotal)

    @property
    def has_string_ids(self) -> bool:
        """Whether ids of one's own were given that are strings."""
        own = self._index.ids.own
        return own is not None and own.dtype == object

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True, *, nprobe: int | None = None
    ) -> Any:
        """Find the nearest rows of every row of X, nearest first.

        Where the probed lists have fewer than `n_neighbors` rows, more lists are searched until there are enough.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), or anything :func:`quickmeans.open_rows` takes
            The queries.
        n_neighbors : int, default=None
            None stands for the parameter `n_neighbors`.
        return_distance : bool, default=True
            Whether to return the distances too.
        nprobe : int, default=None
            The number of lists to search; None stands for `nprobe_`.

        Returns
        -------
        distances : ndarray of float32, shape (n_queries, n_neighbors)
            Only if `return_distance`.
        ids : ndarray of int64, or of str, shape (n_queries, n_neighbors)
            Row numbers, or the ids that were given.
        """
        index = self._fitted_index()
        distances, rows = self._nearest_rows(index, X, n_neighbors, nprobe)
        ids = index.ids.of(rows)
        return (distances, ids) if return_distance else ids

    def _fitted_index(self) -> InvertedIndex:
        """The index as it is now: another fit on another thread makes a new one."""
        index = self.__dict__.get("_index")
        if index is None:  # it takes longer to ask scikit-learn than to search
            check_is_fitted(self)
        assert isinstance(index, InvertedIndex)
        return index

    def _nearest_rows(self, index: InvertedIndex, X: Any, n_neighbors: int | None, nprobe: int | None) -> Neighbors:
        """Distances and row numbers."""
        k = check_whole("n_neighbors", self.n_neighbors if n_neighbors is None else n_neighbors, 1)
        index.check_count(k)
        m = check_nprobe(index, self.nprobe_ if nprobe is None else nprobe)
        parts = [index.nearest(block, k, m, self._threads_for(block)) for block in self._blocks(X)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([d for d, _ in parts]), np.concatenate([r for _, r in parts])

    def _threads_for(self, queries: NDArray[np.float32]) -> int:
        """One query is not worth a thread, nor the time to look for processors."""
        return resolve_threads(self.n_threads) if len(queries) > 1 else 1

    def radius_neighbors(
        self,
        X: Any,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
        *,
        nprobe: int | None = None,
    ) -> Any:
        """Find the rows within a radius of every row of X, among those in the probed lists.

        For the metric "inner_product" these are the rows whose product is at least the radius.

        Parameters
        ----------
        X, return_distance, nprobe
            As in :meth:`kneighbors`.
        radius : float, default=None
            None stands for the parameter `radius`.
        sort_results : bool, default=False
            Whether to return the nearest rows first; if False, their order is arbitrary.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of arrays
            Only if `return_distance`.
        ids : ndarray of shape (n_queries,) of arrays
        """
        index, limit = self._fitted_index(), check_radius(self.radius if radius is None else radius)
        m = check_nprobe(index, self.nprobe_ if nprobe is None else nprobe)
        if limit < 0 and index.metric.is_distance:
            raise ValueError(f"radius must not be negative for distances, got {limit!r}.")
        n_threads = resolve_threads(self.n_threads)
        parts = [index.within(block, limit, m, n_threads, sort=sort_results) for block in self._blocks(X)]
        distances, rows = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        ids = np.empty(len(rows), object)
        ids[:] = [index.ids.of(found) for found in rows]
        return (distances, ids) if return_distance else ids

    def kneighbors_graph(
        self, X: Any, n_neighbors: int | None = None, mode: str = "connectivity", *, nprobe: int | None = None
    ) -> sp.csr_matrix:
        """Find the nearest rows of every row of X, as a graph.

        Parameters
        ----------
        X, n_neighbors, nprobe
            As in :meth:`kneighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether the graph has ones or distances.

        Returns
        -------
        graph : csr_matrix of shape (n_queries, n_rows)
            Its columns are row numbers: as many as rows were ever added.
        """
        check_mode(mode)
        index = self._fitted_index()
        distances, ids = self._nearest_rows(index, X, n_neighbors, nprobe)
        values = distances.ravel().astype(np.float64) if mode == "distance" else np.ones(ids.size)
        starts = np.arange(len(ids) + 1, dtype=np.int64) * ids.shape[1]
        return sp.csr_matrix((values, ids.ravel(), starts), shape=(len(ids), len(index.ids)))


def check_nprobe(index: InvertedIndex, nprobe: Any) -> int:
    """The number of lists to search; the index must have so many."""
    m = check_whole("nprobe", nprobe, 1)
    n_lists = index.lists.nlist
    if m > n_lists:
        raise ValueError(f"nprobe must be between 1 and the number of lists, {n_lists}, got {nprobe}.")
    return m


def check_radius(radius: Any) -> float:
    """The radius as a float."""
    if not is_number(radius) or np.isnan(radius):
        raise ValueError(f"radius must be a number, got {radius!r}.")
    return float(radius)


def check_mode(mode: Any) -> None:
    """Refuse what is no mode of a graph."""
    if mode not in ("connectivity", "distance"):
        raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}.")
