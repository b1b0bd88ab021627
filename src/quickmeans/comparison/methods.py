"""The methods of the comparison: each fits from given centroids, for a given number of iterations over all rows.

Two defaults are turned off, because they change the task: faiss and SuperKMeans would fit a sample of the rows, and
SuperKMeans would stop early. SuperKMeans always chooses its own start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
_ALL = 10**9  # rows per cluster: more than there are, so that no sample is drawn


@dataclass(frozen=True)
class Fitted:
    """The centroids, a function that finds the nearest one for every row, and the size of the model in a file."""

    centers: NDArray[Any]
    assign: Callable[[Rows], Any]
    n_bytes: int


@dataclass(frozen=True)
class Method:
    """A package that must be installed, and a function of rows, first centroids and a number of iterations."""

    package: str
    fit: Callable[[Rows, Rows, int], Fitted]


def _sklearn(X: Rows, init: Rows, n_iter: int) -> Fitted:
    from sklearn.cluster import KMeans

    model = KMeans(len(init), init=init, n_init=1, max_iter=n_iter, tol=0).fit(X)
    return Fitted(model.cluster_centers_, model.predict, model.cluster_centers_.nbytes)


def _mini_batch(X: Rows, init: Rows, n_iter: int) -> Fitted:
    from sklearn.cluster import MiniBatchKMeans

    model = MiniBatchKMeans(len(init), init=init, n_init=1, max_iter=n_iter, random_state=0).fit(X)
    return Fitted(model.cluster_centers_, model.predict, model.cluster_centers_.nbytes)


def _faiss(X: Rows, init: Rows, n_iter: int) -> Fitted:
    import faiss

    model = faiss.Kmeans(
        X.shape[1], len(init), niter=n_iter, max_points_per_centroid=_ALL, min_points_per_centroid=1, seed=0
    )
    model.train(X, init_centroids=init)
    centers = np.asarray(model.centroids)
    return Fitted(centers, model.assign, centers.nbytes)


def _super(X: Rows, init: Rows, n_iter: int) -> Fitted:
    from superkmeans import SuperKMeans

    every = {"sampling_fraction": 1.0, "max_points_per_cluster": _ALL, "early_termination": False}
    model = SuperKMeans(len(init), X.shape[1], seed=0, hierarchical=False, iters=n_iter, **every)
    centers = model.train(X)
    return Fitted(centers, lambda rows: model.assign(rows, centers), centers.nbytes)


def _quick(X: Rows, init: Rows, n_iter: int, **options: Any) -> Fitted:
    from quickmeans import QKMeans
    from quickmeans.files.container import encode

    model = QKMeans(len(init), init=init, max_iter=n_iter, tol=0, random_state=0, **options).fit(X)
    return Fitted(model.cluster_centers_, model.predict, len(encode(model.to_state())))


def _quick_product(X: Rows, init: Rows, n_iter: int) -> Fitted:
    return _quick(X, init, n_iter, shortlist=0)


METHODS = {
    "scikit-learn KMeans": Method("sklearn", _sklearn),
    "MiniBatchKMeans": Method("sklearn", _mini_batch),
    "faiss Kmeans": Method("faiss", _faiss),
    "SuperKMeans": Method("superkmeans", _super),
    "QKMeans": Method("quickmeans", _quick),
    "QKMeans, shortlist 0": Method("quickmeans", _quick_product),
}
