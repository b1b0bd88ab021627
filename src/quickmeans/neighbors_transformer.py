"""The graph of nearest neighbours as a step of a pipeline."""

from typing import Any

import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from quickmeans.cluster import QKMeans
from quickmeans.neighbors import QKNeighbors


class QKNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, QKNeighbors):
    """Rows into the sparse graph of their nearest neighbours, for the next step of a pipeline.

    For estimators that take ``metric="precomputed"``: ``KNeighborsClassifier``, ``DBSCAN``, ``TSNE``, ``Isomap`` and
    others. As in scikit-learn's ``KNeighborsTransformer``, with ``mode="distance"`` one neighbour more is found than
    `n_neighbors` says, because a row of the index is its own nearest.

    Parameters
    ----------
    mode : "distance" or "connectivity"
        Whether the graph has distances or ones.
    n_neighbors, metric, n_lists, nprobe, recall, payload, quantizer, random_state, n_threads
        See :class:`QKNeighbors`. The metric "inner_product", which is no distance, is only for "connectivity".

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
        self.payload = payload
        self.quantizer = quantizer
        self.random_state = random_state
        self.n_threads = n_threads

    radius = 1.0  # not a parameter of the graph

    @property
    def _n_features_out(self) -> int:
        return len(self._removed)

    def transform(self, X: Any) -> sp.csr_matrix:
        """The graph of the neighbours that the rows of X have in the index."""
        check_is_fitted(self)
        extra = self.mode == "distance"
        return self.kneighbors_graph(X, self.n_neighbors + extra, self.mode)

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Index the rows of X and find their neighbours among each other; y is ignored."""
        return self.fit(X).transform(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {self.mode!r}.")
        if self.mode == "distance" and self.metric == "inner_product":
            raise ValueError("Inner products are no distances; use mode='connectivity' or another metric.")
