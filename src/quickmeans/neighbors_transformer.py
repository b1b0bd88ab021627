"""QKNeighborsTransformer: the graph of nearest neighbours as a step of a pipeline."""

from typing import Any

import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from quickmeans.cluster import QKMeans
from quickmeans.neighbors import QKNeighbors
from quickmeans.search.queries import check_mode


class QKNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, QKNeighbors):
    """Transform rows into the sparse graph of their nearest neighbours.

    For estimators that take ``metric="precomputed"``, such as ``KNeighborsClassifier``, ``DBSCAN``, ``TSNE`` and
    ``Isomap``. As in scikit-learn's ``KNeighborsTransformer``, with ``mode="distance"`` every row gets one neighbour
    more than `n_neighbors`, because a row of the index is its own nearest neighbour.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default="distance"
        Whether the graph has distances or ones.
    n_neighbors : int, default=5
        The number of neighbours of every row.
    metric : {"euclidean", "inner_product", "cosine"}, default="euclidean"
        "inner_product", which is not a distance, is only for ``mode="connectivity"``.
    n_lists, nprobe : int or "auto", default="auto"
        See :class:`QKNeighbors`, as for the other parameters.
    recall : float, default=0.95
    n_train : int or "auto", default="auto"
    payload : str, default="flat"
    quantizer : QKMeans, default=None
    random_state : int, RandomState instance or None, default=None
    n_threads : int, default=None

    Attributes
    ----------
    quantizer_, metric_, nprobe_, recall_, n_train_, n_samples_fit_, n_features_in_, feature_names_in_
        As of :class:`QKNeighbors`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from quickmeans import QKNeighborsTransformer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(
    ...     QKNeighborsTransformer(n_neighbors=5, random_state=0), KNeighborsClassifier(5, metric="precomputed")
    ... )
    >>> bool(model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
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
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.n_lists = n_lists
        self.nprobe = nprobe
        self.recall = recall
        self.n_train = n_train
        self.payload = payload
        self.quantizer = quantizer
        self.random_state = random_state
        self.n_threads = n_threads

    radius = 1.0  # of radius_neighbors; not a parameter of this class

    @property
    def _n_features_out(self) -> int:
        return len(self._index.ids)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Find the neighbours of the rows of X in the index, as a graph; see :meth:`kneighbors_graph`."""
        check_is_fitted(self)
        extra = self.mode == "distance"
        return self.kneighbors_graph(X, self.n_neighbors + extra, self.mode)

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Index the rows of X, and find the neighbours of each; y is ignored. The same as ``fit(X).transform(X)``."""
        return self.fit(X).transform(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_mode(self.mode)
        if self.mode == "distance" and self.metric == "inner_product":
            raise ValueError("Inner products are no distances; use mode='connectivity' or another metric.")
