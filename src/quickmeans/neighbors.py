"""Nearest-neighbour search: rows in inverted lists, with QKMeans as the coarse step."""

import warnings
from copy import copy
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from quickmeans.checks import check_whole, is_number
from quickmeans.cluster import QKMeans
from quickmeans.data.features import with_columns
from quickmeans.files import container, indexes
from quickmeans.search.coarse import nearest_lists, with_directions
from quickmeans.search.lists import (
    Lists,
    add_rows,
    check_payload,
    coarse_scores,
    faiss_library,
    make_lists,
    remove_rows,
    train_codes,
)
from quickmeans.search.scan import Probes, scan, scan_radius
from quickmeans.search.storage import write_lists
from quickmeans.search.tuning import fewest_probes, held_back
from quickmeans.state import UNSIGNED, State, narrow, storable_parameters
from quickmeans.threads import resolve_threads

METRICS = ("euclidean", "inner_product", "cosine")
_NOT_STORED = {"n_threads", "quantizer"}
_TRAINING_ITERATIONS = 10
_LARGEST_SQUARE = np.finfo(np.float32).max / 8  # of a row, so that squared distances do not overflow
_LISTS_PER_ROOT = 8  # lists for N rows, in units of the square root of N
_ROWS_PER_LIST = 8  # but not so many that they have fewer rows than this


class QKNeighbors(BaseEstimator):
    r"""Approximate nearest neighbours by inverted lists.

    Rows are kept in the lists of their nearest centroids. A query is compared with the rows of the `nprobe` lists whose
    centroids are nearest to it. The coarse step, finding these, is that of :class:`QKMeans` and nearly free, so that
    many short lists pay; the lists are those of faiss, and so are the distances to their rows. Rows are kept and
    compared in float32.

    Parameters
    ----------
    n_neighbors : int
        How many neighbours :meth:`kneighbors` finds if it is not told.
    radius : float
        How far :meth:`radius_neighbors` looks if it is not told.
    metric : "euclidean", "inner_product" or "cosine"
        Neighbours have small distances :math:`\|x - y\|`, large products :math:`\langle x, y\rangle`, or small
        :math:`1 - \cos(x, y)`. These are also the "distances" that are returned, nearest first.
    n_lists : int or "auto"
        "auto": eight times the square root of the number of rows, if these lists have eight rows on the average.
    nprobe : int or "auto"
        How many lists are searched. "auto": as few as find the share `recall` of the true neighbours of some rows
        that are held back from the training of the centroids. 1 is the search of the paper.
    recall : float
        The share of the `n_neighbors` nearest that "auto" aims at.
    payload : "flat", "sq8", "pq16", ...
        What the lists keep of a row: all, a byte per feature, or with "pqM" M bytes ("pqMxB": M times B bits), where
        M must divide the number of features. Distances are then those to what was kept.
    quantizer : QKMeans, optional
        The coarse step, if it is to be another one than ``QKMeans(n_lists, max_iter=10)``. One that is fitted is used
        as it is, in a copy. For "inner_product" and "cosine" it must be spherical.
    random_state : int, RandomState or None
        Seeds the training.
    n_threads : int, optional
        At most so many threads.

    Attributes
    ----------
    quantizer_ : QKMeans
        The coarse step, fitted.
    nprobe_ : int
        How many lists are searched.
    n_samples_fit_ : int
        How many rows the index has now.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array of str
        If X has names.

    See Also
    --------
    QKNeighborsTransformer : the same as a step of a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans import QKNeighbors
    >>> X = np.arange(100.0).reshape(50, 2)
    >>> index = QKNeighbors(n_neighbors=2, random_state=0).fit(X)
    >>> distances, ids = index.kneighbors([[10, 11.5]])
    >>> ids, distances
    (array([[5, 6]]), array([[0.5, 2.5]], dtype=float32))
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        metric: str = "euclidean",
        n_lists: int | str = "auto",
        nprobe: int | str = "auto",
        recall: float = 0.95,
        payload: str = "flat",
        quantizer: QKMeans | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.n_lists = n_lists
        self.nprobe = nprobe
        self.recall = recall
        self.payload = payload
        self.quantizer = quantizer
        self.random_state = random_state
        self.n_threads = n_threads

    # ---- the rows -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the centroids on X and make an index of its rows, with their numbers as ids; y is ignored.

        If that fails, an earlier index stays as it was.
        """
        self._check_parameters()
        before = dict(vars(self))
        try:
            return self._fit(X)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any) -> Self:
        self._fitted_metric = self.metric
        rows = self._check_rows(X, "X", reset=True)
        check_payload(self.payload, rows.shape[1])
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        sample = held_back(len(rows), rng)
        quantizer, labels = self._coarse(rows, sample, rng)
        lists = make_lists(quantizer.cluster_centers_, self.payload, self._similarity)
        train_codes(lists, rows)
        add_rows(lists, rows, labels, np.arange(len(rows)))
        self.quantizer_, self._lists = quantizer, lists
        self._removed = np.zeros(len(rows), np.bool_)
        self.nprobe_ = self._tuned(rows, sample, labels)
        return self

    def add(self, X: Any) -> NDArray[np.int64]:
        """Add rows; the result are their ids, which go on from the highest so far."""
        check_is_fitted(self)
        rows = self._check_rows(X, "X", reset=False)
        labels = self.quantizer_.predict(with_directions(rows) if self._similarity else rows)
        ids = np.arange(len(self._removed), len(self._removed) + len(rows))
        add_rows(self._lists, rows, labels, ids)
        self._removed = np.concatenate([self._removed, np.zeros(len(rows), np.bool_)])
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Take rows out of the index, by their ids; nothing is done if one of them is not there."""
        check_is_fitted(self)
        wanted = np.asarray(ids)
        if wanted.size and wanted.dtype.kind not in "iu":
            raise TypeError(f"ids must be whole numbers, got an array of {wanted.dtype}.")
        wanted = np.unique(wanted)
        unknown = wanted[(wanted < 0) | (wanted >= len(self._removed))]
        gone = unknown if len(unknown) else wanted[self._removed[wanted.astype(np.int64)]]
        if len(gone):
            raise ValueError(f"The index has no row with id {gone[0]}; {len(gone)} of the {len(wanted)} are unknown.")
        wanted = wanted.astype(np.int64)
        remove_rows(self._lists, wanted)
        self._removed[wanted] = True

    @property
    def n_samples_fit_(self) -> int:
        """How many rows the index has."""
        return int(self._lists.ntotal)

    # ---- search ---------------------------------------------------------------------------------------------------

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True, *, nprobe: int | None = None
    ) -> Any:
        """The nearest rows of every row of X, nearest first.

        Where the probed lists have fewer than `n_neighbors` rows, more lists are searched until there are enough.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            The queries.
        n_neighbors : int, optional
            By default that of the index.
        return_distance : bool
            Whether to return distances too.
        nprobe : int, optional
            How many lists to search, if not `nprobe_`.

        Returns
        -------
        distances : float32 array of shape (n_queries, n_neighbors)
            Only if `return_distance`.
        ids : int64 array of shape (n_queries, n_neighbors)
        """
        check_is_fitted(self)
        k = self._check_count(self.n_neighbors if n_neighbors is None else n_neighbors)
        m = self._check_nprobe(self.nprobe_ if nprobe is None else nprobe)
        queries = self._check_rows(X, "X", reset=False)
        values, ids = self._search(queries, k, m)
        return (self._distances(values), ids) if return_distance else ids

    def radius_neighbors(
        self,
        X: Any,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
        *,
        nprobe: int | None = None,
    ) -> Any:
        """The rows within a radius of every row of X, of those in the probed lists.

        For the metric "inner_product" those whose product is at least the radius.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            The queries.
        radius : float, optional
            By default that of the index.
        return_distance : bool
            Whether to return distances too.
        sort_results : bool
            Whether the nearest come first; else they come in no order.
        nprobe : int, optional
            How many lists to search, if not `nprobe_`.

        Returns
        -------
        distances : array of arrays
            Only if `return_distance`.
        ids : array of arrays
        """
        check_is_fitted(self)
        m = self._check_nprobe(self.nprobe_ if nprobe is None else nprobe)
        limit = self._check_radius(self.radius if radius is None else radius)
        if limit < 0 and self._fitted_metric != "inner_product":
            raise ValueError(f"radius must not be negative for distances, got {limit!r}.")
        queries = self._check_rows(X, "X", reset=False)
        n_threads = self._threads
        probes = self._probes(queries, m, n_threads)
        found = scan_radius(self._lists, queries, probes, self._squared(limit), n_threads)
        results = [(self._distances(values), ids) for values, ids in found]
        if sort_results:
            orders = [
                np.argsort(-d if self._fitted_metric == "inner_product" else d, kind="stable") for d, _ in results
            ]
            results = [(d[order], ids[order]) for (d, ids), order in zip(results, orders, strict=True)]
        distances, ids = (_ragged([result[part] for result in results]) for part in (0, 1))
        return (distances, ids) if return_distance else ids

    def kneighbors_graph(
        self, X: Any, n_neighbors: int | None = None, mode: str = "connectivity", *, nprobe: int | None = None
    ) -> sp.csr_matrix:
        """The neighbours of every row of X as a sparse matrix of ones, or with ``mode="distance"`` of distances.

        Its columns are ids: as many as rows were ever added. `n_neighbors` and `nprobe` as in :meth:`kneighbors`.
        """
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}.")
        distances, ids = self.kneighbors(X, n_neighbors, nprobe=nprobe)
        values = distances.ravel().astype(np.float64) if mode == "distance" else np.ones(ids.size)
        starts = np.arange(len(ids) + 1, dtype=np.int64) * ids.shape[1]
        return sp.csr_matrix((values, ids.ravel(), starts), shape=(len(ids), len(self._removed)))

    def as_faiss_ivf(self) -> Any:
        """A copy of the index as a plain ``faiss.IndexIVF``, which does the coarse step its own way."""
        check_is_fitted(self)
        copy = faiss_library().clone_index(self._lists)
        copy.nprobe = self.nprobe_
        return copy

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to `path` and a file beside it, for :func:`quickmeans.load`.

        Both are complete or absent, whatever happens. Not stored are `n_threads`, and a generator as `random_state`.
        """
        indexes.write(path, self.to_state(), partial(write_lists, self._lists))

    def to_state(self) -> State:
        """What a file holds of the fitted index, but for its lists."""
        check_is_fitted(self)
        self._check_parameters()
        facts = {
            "parameters": storable_parameters(self.get_params(deep=False), _NOT_STORED),
            "metric": self._fitted_metric,
            "nprobe": self.nprobe_,
            "n_features_in": self.n_features_in_,
            "n_ids": len(self._removed),
            "faiss_version": faiss_library().__version__,
            "feature_names_in": [str(name) for name in getattr(self, "feature_names_in_", ())],
        }
        tensors = {
            "quantizer": np.frombuffer(container.encode(self.quantizer_.to_state()), np.uint8),
            "removed": narrow(np.flatnonzero(self._removed), len(self._removed)),
        }
        return State(type(self).__name__, facts, tensors)

    @classmethod
    def from_state(cls, state: State, lists: Lists) -> Self:
        """The index that :meth:`to_state` made the state of, with its lists."""
        index = cls(**state.parameters(cls().get_params().keys() - _NOT_STORED))
        index._check_parameters()
        with container.explaining("has a quantizer that", "model"):
            index.quantizer_ = QKMeans.from_state(container.decode(state.tensor("quantizer", 1, ("uint8",)).tobytes()))
        K, D = index.quantizer_.cluster_centers_.shape
        if (lists.nlist, lists.d) != (K, D) or state.number("n_features_in", int) != D:
            raise ValueError("its lists must be those of its quantizer.")
        index._fitted_metric = state.choice("metric", METRICS)
        index.nprobe_, index.n_features_in_ = state.number("nprobe", int, 1, K), D
        index._removed, index._lists = np.zeros(state.number("n_ids", int, 0), np.bool_), lists
        index._removed[state.tensor("removed", 1, UNSIGNED)] = True
        index.__dict__.update(state.feature_names(D))
        state.finish()
        return index

    # ---- how ------------------------------------------------------------------------------------------------------

    @property
    def _similarity(self) -> bool:
        """Whether rows are compared by inner products."""
        return getattr(self, "_fitted_metric", self.metric) != "euclidean"

    @property
    def _threads(self) -> int:
        return resolve_threads(self.n_threads)

    def _coarse(
        self, rows: NDArray[np.float32], sample: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[QKMeans, NDArray[np.int32]]:
        """The quantizer, fitted without the sample, and the labels of all rows."""
        rows = with_directions(rows) if self._similarity else rows
        given = self.quantizer
        if given is not None and hasattr(given, "cluster_centers_"):
            if given.cluster_centers_.shape[1] != rows.shape[1]:
                raise ValueError(
                    f"The quantizer was fitted to {given.cluster_centers_.shape[1]} features, X has {rows.shape[1]}."
                )
            given = copy(given)  # what becomes of the original is no matter
            given.__dict__.pop("feature_names_in_", None)
            return given, given.predict(rows)
        quantizer = self._new_quantizer(len(rows), rng)
        weights = None
        if self.nprobe == "auto" and len(rows) - len(sample) >= quantizer.n_clusters:
            weights = np.ones(len(rows))
            weights[sample] = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of clusters without rows: lists may be empty
            quantizer.fit(rows, sample_weight=weights)
        return quantizer, quantizer.labels_

    def _new_quantizer(self, n_rows: int, rng: np.random.Generator) -> QKMeans:
        if self.quantizer is not None:
            quantizer: QKMeans = clone(self.quantizer)
            return quantizer
        most = max(1, min(round(_LISTS_PER_ROOT * n_rows**0.5), n_rows // _ROWS_PER_LIST))
        K = most if isinstance(self.n_lists, str) else int(self.n_lists)
        if n_rows < K:
            raise ValueError(f"n_lists={K} must not be larger than the number of rows, {n_rows}.")
        return QKMeans(
            K,
            max_iter=_TRAINING_ITERATIONS,
            spherical=self._similarity,
            random_state=int(rng.integers(2**31)),
            n_threads=self.n_threads,
        )

    def _tuned(self, rows: NDArray[np.float32], sample: NDArray[np.int64], labels: NDArray[np.int32]) -> int:
        n_lists = self._lists.nlist
        if self.nprobe != "auto":
            return self._check_nprobe(self.nprobe)
        if n_lists == 1 or len(rows) < 3:
            return int(n_lists)
        k = min(self.n_neighbors, len(rows) - 1)
        centers = self.quantizer_.cluster_centers_
        return fewest_probes(rows, sample, labels, centers, k, self.recall, self._similarity, self._threads)

    def _probes(self, queries: NDArray[np.float32], m: int, n_threads: int) -> Probes:
        nearest = nearest_lists(self.quantizer_, queries, m, n_threads)
        return Probes(nearest, coarse_scores(self._lists, queries, nearest))

    def _search(self, queries: NDArray[np.float32], k: int, m: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Search m lists; for queries that find fewer than k rows in them, more."""
        n_threads = self._threads
        values, ids = scan(self._lists, queries, self._probes(queries, m, n_threads), k, n_threads)
        if ids[:, -1].min() < 0:
            if m == self._lists.nlist:
                raise ValueError("Distances overflow float32, and rows at infinite distance are not found; scale X.")
            short = np.flatnonzero(ids[:, -1] < 0)
            values[short], ids[short] = self._search(queries[short], k, min(2 * m, self._lists.nlist))
        return values, ids

    def _distances(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What is returned, from what faiss compares."""
        if self._fitted_metric == "euclidean":
            return np.sqrt(np.maximum(values, 0))
        return values if self._fitted_metric == "inner_product" else np.maximum(1 - values, 0)

    def _squared(self, radius: float) -> float:
        """A radius in terms of what faiss compares; faiss leaves the limit itself out."""
        if self._fitted_metric == "euclidean":
            with np.errstate(over="ignore"):
                return float(np.nextafter(np.float32(radius) ** 2, np.float32(np.inf)))
        limit = radius if self._fitted_metric == "inner_product" else 1 - radius
        return float(np.nextafter(np.float32(limit), np.float32(-np.inf)))

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any, name: str, *, reset: bool) -> NDArray[np.float32]:
        """X in float32, row-major and finite; of length one for cosines."""
        plain = type(X) is np.ndarray and X.dtype == np.float32 and X.ndim == 2 and not reset
        if not (plain and X.shape[1] == self.n_features_in_ and len(X) and not hasattr(self, "feature_names_in_")):
            X = validate_data(self, with_columns(X), reset=reset, dtype="numeric", ensure_all_finite=False)
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(X, np.float32)
        squares = np.einsum("id,id->i", rows, rows)
        fine = squares < _LARGEST_SQUARE  # not if NaN
        if not fine.all():
            row = int(np.argmin(fine))
            raise ValueError(
                f"Input {name} contains NaN, infinity or a value too large for the squares of float32 in row {row}."
            )
        metric = self.metric if reset else self._fitted_metric
        if metric != "cosine":
            return rows
        lengths = np.sqrt(np.einsum("id,id->i", rows, rows, dtype=np.float64))
        if not lengths.all():
            raise ValueError(f"Row {np.argmin(lengths)} of {name} is zero, and has no cosine with any other.")
        return np.asarray(rows / lengths[:, None], np.float32)

    def _check_parameters(self) -> None:
        faiss_library()
        check_whole("n_neighbors", self.n_neighbors, 1)
        self._check_radius(self.radius)
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}, got {self.metric!r}.")
        for name in ("n_lists", "nprobe"):
            if getattr(self, name) != "auto":
                check_whole(name, getattr(self, name), 1, " or 'auto'")
        if not is_number(self.recall) or not 0 < self.recall <= 1:
            raise ValueError(f"recall must be above 0 and not above 1, got {self.recall!r}.")
        check_payload(self.payload)
        if self.quantizer is None:
            return
        if not isinstance(self.quantizer, QKMeans):
            raise TypeError(f"quantizer must be a QKMeans, got {type(self.quantizer).__name__}.")
        if bool(self.quantizer.spherical) != (self.metric != "euclidean"):
            wanted = self.metric != "euclidean"
            raise ValueError(f"A quantizer for the metric {self.metric!r} must have spherical={wanted}.")
        if self.n_lists not in ("auto", self.quantizer.n_clusters):
            raise ValueError(f"n_lists={self.n_lists} must be the quantizer's n_clusters, {self.quantizer.n_clusters}.")

    def _check_radius(self, radius: Any) -> float:
        if not is_number(radius) or np.isnan(radius):
            raise ValueError(f"radius must be a number, got {radius!r}.")
        return float(radius)

    def _check_nprobe(self, nprobe: Any) -> int:
        check_whole("nprobe", nprobe, 1)
        if nprobe > self._lists.nlist:
            raise ValueError(f"nprobe must be between 1 and the number of lists, {self._lists.nlist}, got {nprobe}.")
        return int(nprobe)

    def _check_count(self, k: Any) -> int:
        check_whole("n_neighbors", k, 1)
        if k > self.n_samples_fit_:
            raise ValueError(f"n_neighbors must not exceed the rows of the index, {self.n_samples_fit_}, got {k}.")
        return int(k)

    def __getstate__(self) -> dict[str, Any]:
        """Lists as an array of bytes, which faiss can read back."""
        state = dict(super().__getstate__())
        if "_lists" in state:
            state["_lists"] = faiss_library().serialize_index(state["_lists"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_lists" in state:
            state = state | {"_lists": faiss_library().deserialize_index(state["_lists"])}
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_lists")


def _ragged(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """An array of arrays."""
    result = np.empty(len(parts), object)
    for i, part in enumerate(parts):
        result[i] = part
    return result
