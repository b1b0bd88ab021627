"""The methods of the comparison: each fits from given centroids, or as its library does if it is told nothing.

From given centroids all methods make the same number of iterations over all rows. Two defaults are turned off, because
they change that task: faiss and SuperKMeans would fit a sample of the rows, and SuperKMeans would stop early.
SuperKMeans always chooses its own start. A default call gets the number of clusters and a seed, and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
_ALL = 10**9  # rows per cluster: more than there are, so that no sample is drawn


@dataclass(frozen=True)
class Start:
    """The first centroids, and the number of iterations from them."""

    centers: Rows
    n_iter: int


@dataclass(frozen=True)
class Fitted:
    """The centroids, a function that finds the nearest one for every row, and the size of the model in a file."""

    centers: NDArray[Any]
    assign: Callable[[Rows], Any]
    n_bytes: int


@dataclass(frozen=True)
class Method:
    """A package that must be installed, and a function of rows, a number of clusters, a seed and a start.

    Without a start it is the default call.
    """

    package: str
    fit: Callable[[Rows, int, int, Start | None], Fitted]


def _sklearn(X: Rows, n_clusters: int, seed: int, start: Start | None) -> Fitted:
    from sklearn.cluster import KMeans

    same = {} if start is None else {"init": start.centers, "n_init": 1, "max_iter": start.n_iter, "tol": 0}
    model = KMeans(n_clusters, random_state=seed, **same).fit(X)
    return Fitted(model.cluster_centers_, model.predict, model.cluster_centers_.nbytes)


def _mini_batch(X: Rows, n_clusters: int, seed: int, start: Start | None) -> Fitted:
    from sklearn.cluster import MiniBatchKMeans

    same = {} if start is None else {"init": start.centers, "n_init": 1, "max_iter": start.n_iter}
    model = MiniBatchKMeans(n_clusters, random_state=seed, **same).fit(X)
    return Fitted(model.cluster_centers_, model.predict, model.cluster_centers_.nbytes)


def _faiss(X: Rows, n_clusters: int, seed: int, start: Start | None) -> Fitted:
    import faiss

    every = {"max_points_per_centroid": _ALL, "min_points_per_centroid": 1}
    same = {} if start is None else {"niter": start.n_iter, **every}
    model = faiss.Kmeans(X.shape[1], n_clusters, seed=seed % 2**31, **same)
    model.train(X, init_centroids=None if start is None else start.centers)
    centers = np.asarray(model.centroids)
    return Fitted(centers, model.assign, centers.nbytes)


def _super(X: Rows, n_clusters: int, seed: int, start: Start | None) -> Fitted:
    from superkmeans import SuperKMeans

    every = {"sampling_fraction": 1.0, "max_points_per_cluster": _ALL, "early_termination": False}
    same = {} if start is None else {"iters": start.n_iter, "hierarchical": False, **every}
    model = SuperKMeans(n_clusters, X.shape[1], seed=seed, **same)
    centers = model.train(X)
    return Fitted(centers, lambda rows: model.assign(rows, centers), centers.nbytes)


def _quick(X: Rows, n_clusters: int, seed: int, start: Start | None, **options: Any) -> Fitted:
    from quickmeans import QKMeans
    from quickmeans.files.container import encode

    same: dict[str, Any] = {} if start is None else {"init": start.centers, "max_iter": start.n_iter, "tol": 0}
    model = QKMeans(n_clusters, random_state=seed, **same, **options).fit(X)
    return Fitted(model.cluster_centers_, model.predict, len(encode(model.to_state())))


def _quick_product(X: Rows, n_clusters: int, seed: int, start: Start | None) -> Fitted:
    return _quick(X, n_clusters, seed, start, shortlist=0)


METHODS = {
    "scikit-learn KMeans": Method("sklearn", _sklearn),
    "MiniBatchKMeans": Method("sklearn", _mini_batch),
    "faiss Kmeans": Method("faiss", _faiss),
    "SuperKMeans": Method("superkmeans", _super),
    "QKMeans": Method("quickmeans", _quick),
    "QKMeans, shortlist 0": Method("quickmeans", _quick_product),
}
