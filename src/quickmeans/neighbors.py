"""QKNeighbors: nearest-neighbour search in inverted lists, with QKMeans as the coarse step."""

from collections.abc import Iterable
from copy import copy
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from quickmeans.checks import check_whole, is_number
from quickmeans.cluster import QKMeans
from quickmeans.data.features import check_features, with_columns
from quickmeans.data.open import as_source
from quickmeans.files import container, indexes
from quickmeans.rollback import unchanged_on_error
from quickmeans.search.coarse import CoarseSettings, NearestLists, chosen
from quickmeans.search.ids import RowIds
from quickmeans.search.index import InvertedIndex
from quickmeans.search.input import ArrayInput, Input, SourceInput
from quickmeans.search.lists import Lists, build_lists, check_payload, exported, faiss_library
from quickmeans.search.metrics import METRICS, Metric
from quickmeans.search.queries import NeighborQueries, check_nprobe, check_radius
from quickmeans.search.rows import as_float32
from quickmeans.search.storage import write_lists
from quickmeans.search.training import train
from quickmeans.search.tuning import default_n_lists, fewest_probes, tuning_sample
from quickmeans.state import State, storable_parameters
from quickmeans.threads import resolve_threads

_NOT_STORED = {"n_threads", "quantizer"}
_ROWS_PER_LIST = 128  # that the centroids are fitted to by default; faiss takes at most 256
_TRAINING_ITERATIONS = 10  # as faiss trains the centroids of its inverted lists


class QKNeighbors(NeighborQueries, BaseEstimator):
    r"""Approximate nearest neighbours by inverted lists.

    Every row is kept in the list of its nearest centroid. A query is compared with the rows of the `nprobe` lists whose
    centroids are nearest to it. :class:`QKMeans` finds these lists at little cost, so that many short lists are faster
    than a few long ones. faiss keeps the lists and computes the distances to their rows. Rows are kept and compared in
    float32.

    Parameters
    ----------
    n_neighbors : int, default=5
        The number of neighbours that :meth:`kneighbors` returns by default.
    radius : float, default=1.0
        The radius that :meth:`radius_neighbors` uses by default.
    metric : {"euclidean", "inner_product", "cosine"}, default="euclidean"
        Neighbours have small distances :math:`\|x - y\|`, large products :math:`\langle x, y\rangle`, or small
        :math:`1 - \cos(x, y)`. These are also the "distances" that are returned, nearest first.
    n_lists : int or "auto", default="auto"
        "auto" is eight times the square root of the number of rows, and at most an eighth of that number.
    nprobe : int or "auto", default="auto"
        The number of lists to search. "auto" is the smallest number with which a sample of the rows finds the share
        `recall` of its true neighbours; the centroids are trained without this sample. 1 is the search of the paper.
    recall : float, default=0.95
        The share of the `n_neighbors` nearest rows that ``nprobe="auto"`` aims at.
    n_train : int or "auto", default="auto"
        The most rows that the centroids are fitted to, drawn at random; all rows are then assigned to them. "auto" is
        128 per list.
    payload : str, default="flat"
        What the lists keep of a row: "flat" all of it, "sq8" one byte per feature, "pqM" M bytes, "pqMxB" M times B
        bits, where M must divide the number of features. Distances are those to what was kept.
    quantizer : QKMeans, default=None
        The coarse step; None stands for ``QKMeans(n_lists, max_iter=10)``. A fitted one is copied and not fitted
        again. For "inner_product" and "cosine" it must have ``metric="cosine"``.
    random_state : int, RandomState instance or None, default=None
        Seeds the training and the choice of the sample.
    n_threads : int, default=None
        The most threads to use; None stands for all processors, see :func:`quickmeans.threads.resolve_threads`.

    Attributes
    ----------
    quantizer_ : QKMeans
        The fitted coarse step; its clusters are the lists.
    metric_ : str
        The metric of the fitted index.
    nprobe_ : int
        The number of lists that are searched by default.
    recall_ : float or None
        The share of its true neighbours that the sample finds in `nprobe_` lists, before any loss by the payload; None
        if `nprobe` was given.
    n_train_ : int
        The number of rows that the centroids were fitted to; 0 if `quantizer` was fitted before.
    n_samples_fit_ : int
        The number of rows that the index has now.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of str
        The names of the columns; only if X has names that are all strings.

    See Also
    --------
    QKNeighborsTransformer : the graph of neighbours as a step of a pipeline.

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
        n_train: int | str = "auto",
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
        self.n_train = n_train
        self.payload = payload
        self.quantizer = quantizer
        self.random_state = random_state
        self.n_threads = n_threads

    # ---- the rows -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, ids: ArrayLike | None = None) -> Self:
        """Train the centroids on X and index its rows.

        If that fails, an earlier index stays as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or anything :func:`quickmeans.open_rows` takes
            The rows. Those of files and functions are read block by block; the index holds what `payload` keeps.
        y : ignored
        ids : array-like of shape (n_samples,), default=None
            Different whole numbers or strings that searches return. None: row i has the id i.
        """
        self._check_parameters()
        with unchanged_on_error(self):
            self.metric_ = self.metric
            rows = self._input(X, reset=True)
            check_payload(self.payload, rows.shape[1])
            new_ids = RowIds(np.zeros(0, np.bool_)).extended(rows.shape[0], ids)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            sample = tuning_sample(rows.shape[0], rng)
            quantizer, labels = self._coarse(rows, sample, rng)
            n_threads = resolve_threads(self.n_threads)
            lists = build_lists(quantizer.cluster_centers_, self.payload, self._metric.similarity, rows, labels, rng)
            self.quantizer_ = quantizer
            queries, coarse = rows.take(sample), None
            if quantizer.assigner_.centers_are_means:
                centers = np.asarray(quantizer.cluster_centers_, np.float32)
                coarse = chosen(centers, queries, n_threads, similarity=self._metric.similarity)
            self._index = InvertedIndex(lists, new_ids, self._metric, quantizer.assigner_, coarse)
            self.nprobe_, self.recall_ = self._tuned(rows, sample, queries, labels)
        return self

    def add(self, X: Any, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Add rows to the index, and return their ids. If that fails, the index stays as it was.

        Parameters
        ----------
        X : as for :meth:`fit`
        ids : array-like of shape (n_samples,), default=None
            As for :meth:`fit`, and different from those of the rows in the index. None: ids continue from the highest
            row number so far.
        """
        check_is_fitted(self)
        rows, index = self._input(X), self._index
        numbers = index.add(rows.blocks(), self.quantizer_.predict(rows.for_clusters()), ids)
        return index.ids.of(numbers)

    def remove(self, ids: ArrayLike) -> None:
        """Remove the rows with these `ids` from the index; if it does not have one of them, none is removed."""
        check_is_fitted(self)
        self._index.remove(ids)

    # ---- other places ---------------------------------------------------------------------------------------------

    def as_faiss_ivf(self) -> Any:
        """Copy the index to faiss, which does the coarse step its own way.

        Returns
        -------
        faiss.IndexIVF
            For the metric "cosine" a ``faiss.IndexPreTransform``, which divides queries and added rows by their lengths
            and holds the ``IndexIVF``; scores are cosines. ``faiss.extract_index_ivf(index).nprobe`` sets the number of
            lists to search for all metrics. Its ids are those of this index; row numbers if these are strings, which
            faiss does not have.
        """
        check_is_fitted(self)
        index = self._index
        with index.turns:
            numbers = None if self.has_string_ids else index.ids.own
            return exported(index.lists, self.nprobe_, numbers, normalize=self.metric_ == "cosine")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to `path` and a file beside it, for :func:`quickmeans.load`.

        Both are complete or absent, whatever happens. Not stored are `n_threads`, and a generator as `random_state`.
        """
        check_is_fitted(self)
        with self._index.turns:
            indexes.write(path, self.to_state(), partial(write_lists, self._index.lists))

    def to_state(self) -> State:
        """What a file holds of the fitted index, but for its lists."""
        check_is_fitted(self)
        self._check_parameters()
        ids, coarse = self._index.ids, self._index.coarse
        settings = CoarseSettings() if coarse is None else coarse.settings
        facts = {
            "parameters": storable_parameters(self.get_params(deep=False), _NOT_STORED),
            "metric": self.metric_,
            "nprobe": self.nprobe_,
            "recall": self.recall_,
            "n_train": self.n_train_,
            "n_features_in": self.n_features_in_,
            "n_ids": len(ids),
            "coarse_rank": settings.rank,
            "coarse_groups": settings.n_looked,
            "faiss_version": faiss_library().__version__,
            "feature_names_in": [str(name) for name in getattr(self, "feature_names_in_", ())],
        }
        quantizer = np.frombuffer(container.encode(self.quantizer_.to_state()), np.uint8)
        return State(type(self).__name__, facts, {"quantizer": quantizer} | ids.tensors())

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
        index.metric_ = state.choice("metric", METRICS)
        index.nprobe_, index.n_features_in_ = state.number("nprobe", int, 1, K), D
        index.recall_ = None if state.facts.get("recall") is None else state.number("recall", float, 0.0, 1.0)
        state.facts = {"coarse_rank": 0, "coarse_groups": 0, "n_train": 0} | state.facts  # files of before have none
        index.n_train_ = state.number("n_train", int, 0)
        coarse = _stored_coarse(state, index.quantizer_, METRICS[index.metric_])
        index._index = InvertedIndex(
            lists, RowIds.from_state(state), METRICS[index.metric_], index.quantizer_.assigner_, coarse
        )
        index.__dict__.update(state.feature_names(D))
        state.finish()
        return index

    # ---- coarse step ----------------------------------------------------------------------------------------------

    @property
    def _metric(self) -> Metric:
        return METRICS[self.metric_]

    def _coarse(
        self, rows: Input, sample: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[QKMeans, NDArray[np.int32]]:
        """The quantizer, fitted without the sample, and the labels of all rows."""
        given = self.quantizer
        if given is not None and hasattr(given, "cluster_centers_"):
            if given.cluster_centers_.shape[1] != rows.shape[1]:
                raise ValueError(
                    f"The quantizer was fitted to {given.cluster_centers_.shape[1]} features, X has {rows.shape[1]}."
                )
            given = copy(given)  # so that fitting the original again does not change the index
            given.__dict__.pop("feature_names_in_", None)
            self.n_train_ = 0
            return given, given.predict(rows.for_clusters())
        quantizer = self._new_quantizer(rows.shape[0], rng)
        n_train = _ROWS_PER_LIST * quantizer.n_clusters if isinstance(self.n_train, str) else int(self.n_train)
        if n_train < quantizer.n_clusters:
            raise ValueError(f"n_train={n_train} must not be below the number of lists, {quantizer.n_clusters}.")
        labels, self.n_train_ = train(quantizer, rows, n_train, sample if self.nprobe == "auto" else None, rng)
        return quantizer, labels

    def _new_quantizer(self, n_rows: int, rng: np.random.Generator) -> QKMeans:
        if self.quantizer is not None:
            quantizer: QKMeans = clone(self.quantizer)
            return quantizer
        K = default_n_lists(n_rows) if isinstance(self.n_lists, str) else int(self.n_lists)
        if n_rows < K:
            raise ValueError(f"n_lists={K} must not be larger than the number of rows, {n_rows}.")
        return QKMeans(
            K,
            max_iter=_TRAINING_ITERATIONS,
            metric="cosine" if self._metric.similarity else "euclidean",
            random_state=int(rng.integers(2**31)),
            n_threads=self.n_threads,
        )

    def _tuned(
        self, rows: Input, sample: NDArray[np.int64], queries: NDArray[np.float32], labels: NDArray[np.int32]
    ) -> tuple[int, float | None]:
        """`nprobe` as a number, and the recall that was measured."""
        if self.nprobe != "auto":
            return check_nprobe(self._index, self.nprobe), None
        return fewest_probes(
            rows, sample, queries, labels, self._index, self.n_neighbors, self.recall, resolve_threads(self.n_threads)
        )

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _input(self, X: Any, *, reset: bool = False) -> Input:
        """X in float32, row-major and finite; its rows have length one for cosines."""
        source = as_source(X)
        if source is not None:
            check_features(self, source, reset=reset)
            return SourceInput(source, self._metric)
        if reset or not self._is_plain(X):
            X = validate_data(self, with_columns(X), reset=reset, dtype="numeric", ensure_all_finite=False)
        return ArrayInput(self._metric.prepare(as_float32(X, "X"), "X"), self._metric)

    def _is_plain(self, X: Any) -> bool:
        """Whether the queries need no more than a look at their numbers."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float32
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and len(X) > 0
            and "feature_names_in_" not in self.__dict__
        )

    def _blocks(self, X: Any) -> Iterable[NDArray[np.float32]]:
        if self.metric_ != "cosine" and self._is_plain(X) and X.flags.carray:
            return (X,)  # the search looks for numbers that cannot be compared
        return (block for _, block in self._input(X).blocks())

    def _check_parameters(self) -> None:
        faiss_library()
        check_whole("n_neighbors", self.n_neighbors, 1)
        check_radius(self.radius)
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}, got {self.metric!r}.")
        for name in ("n_lists", "nprobe", "n_train"):
            if getattr(self, name) != "auto":
                check_whole(name, getattr(self, name), 1, " or 'auto'")
        if not is_number(self.recall) or not 0 < self.recall <= 1:
            raise ValueError(f"recall must be above 0 and not above 1, got {self.recall!r}.")
        check_payload(self.payload)
        if self.quantizer is None:
            return
        if not isinstance(self.quantizer, QKMeans):
            raise TypeError(f"quantizer must be a QKMeans, got {type(self.quantizer).__name__}.")
        metric = "cosine" if METRICS[self.metric].similarity else "euclidean"
        if self.quantizer.metric != metric:
            raise ValueError(f"A quantizer for the metric {self.metric!r} must have metric={metric!r}.")
        if self.n_lists not in ("auto", self.quantizer.n_clusters):
            raise ValueError(f"n_lists={self.n_lists} must be the quantizer's n_clusters, {self.quantizer.n_clusters}.")

    def __sklearn_is_fitted__(self) -> bool:
        return "_index" in self.__dict__


def _stored_coarse(state: State, quantizer: QKMeans, metric: Metric) -> NearestLists | None:
    """The coarse step that a file says."""
    K, D = quantizer.cluster_centers_.shape
    rank = state.number("coarse_rank", int, 0, max(min(K, D) - 1, 0))
    settings = CoarseSettings(rank, state.number("coarse_groups", int, 0, K))
    if not quantizer.assigner_.centers_are_means:
        return None
    centers = np.asarray(quantizer.cluster_centers_, np.float32)
    return NearestLists(centers, settings, resolve_threads(None), similarity=metric.similarity)
