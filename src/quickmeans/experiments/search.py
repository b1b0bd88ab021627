"""The paper's nearest-neighbour search: find the cluster of the query, then search its rows exactly."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.experiments.models import OURS, kmeans, qkmeans
from quickmeans.experiments.peers import predictor
from quickmeans.experiments.run import Run
from quickmeans.neighbors import QKNeighbors
from quickmeans.search.lists import faiss_library

Search = Callable[[NDArray[Any]], NDArray[np.int64]]  # queries -> nearest rows, -1 in an empty cluster


def cluster_search(X: NDArray[Any], centers: NDArray[Any], labels: NDArray[Any], predict: Callable[..., Any]) -> Search:
    """Return a search in which `predict` chooses the cluster of a query and faiss searches it."""
    faiss, tools = faiss_library(), import_module("faiss.contrib.ivf_tools")
    coarse = faiss.IndexFlatL2(X.shape[1])
    coarse.add(np.ascontiguousarray(centers, np.float32))
    lists = faiss.IndexIVFFlat(coarse, X.shape[1], len(centers))
    tools.add_preassigned(lists, X, labels.astype(np.int64))
    lists.nprobe, lists.parallel_mode = 1, 3  # faiss uses threads here in mode 3 only

    def search(Q: NDArray[Any]) -> NDArray[np.int64]:
        _, ids = tools.search_preassigned(lists, Q, 1, np.asarray(predict(Q), np.int64)[:, None])
        return np.asarray(ids[:, 0])

    return search


def searches(run: Run, data: str, K: int, seed: int, methods: list[str]) -> dict[str, Search]:
    """Return the searches with K-means, with the given QK-means methods, and with QKNeighbors on one and two lists."""
    X = run.split(data).X
    plain = kmeans(run, data, K, seed)
    predict = predictor(plain.centers).predict
    result: dict[str, Search] = {"K-means": cluster_search(X, plain.centers, plain.labels, predict)}
    for method in methods:
        model = qkmeans(run, data, K, seed, method)
        result[method] = cluster_search(X, model.cluster_centers_, model.labels_, model.predict)
    index = QKNeighbors(1, quantizer=qkmeans(run, data, K, seed, OURS), nprobe=1).fit(X)
    for count, nprobe in (("one cluster", 1), ("two clusters", 2)):
        result[f"QKNeighbors, {count}"] = partial(_first, index, nprobe)
    return result


def _first(index: QKNeighbors, nprobe: int, Q: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(index.kneighbors(Q, 1, False, nprobe=nprobe)[:, 0])
