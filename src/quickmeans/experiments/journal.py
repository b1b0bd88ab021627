"""The journal version's experiments: clusterings with compressed centroids, against two baselines.

Objective, agreement with the classes, compression and multiply-adds per row, from uniform and from k-means++ starts.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import adjusted_mutual_info_score, pairwise_distances_argmin

from quickmeans import QKMeans
from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.l1 import project_rows
from quickmeans.experiments.models import StopWhenSettled, lloyd, n_iterations, start
from quickmeans.experiments.plots import panels
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run
from quickmeans.transform import SparseProduct, hierarchical_palm4msa

STARTS = ("uniform", "k-means++")
LEVEL = 5
PLAIN, FAST, AFTER, L1, ALS = "K-means", "QK-means", "K-means, then palm4MSA", "K-means in an l1 ball", "als"
METHODS = (PLAIN, FAST, AFTER, L1, ALS)
CLUSTERS = {"mnist": 30, "fashion-mnist": 30, "digits": 30, "breast-cancer": 16, "blobs": 128}


class Centroids(NamedTuple):
    """The centroids of a method, with the numbers they store and the multiply-adds of one row."""

    centers: NDArray[Any]
    numbers: int
    macs: int


def cases(run: Run) -> list[Row]:
    """Return every data set with both starts and every seed."""
    names = dict.fromkeys(["digits", "breast-cancer", *run.images(), "blobs"])
    return run.seeded([{"data": name, "K": CLUSTERS[name], "init": init} for name in names for init in STARTS])


def measure(run: Run, data: str, K: int, init: str, seed: int) -> Iterator[Row]:
    """Measure all methods from the same start."""
    X, _, y, _ = run.split(data)
    begin = start(X, K, seed) if init == "uniform" else kmeans_plusplus(X, K, random_state=seed)[0]
    results = centroids(X, begin, n_iterations(data), seed)
    best = None
    for method in METHODS:
        centers, numbers, macs = results[method]
        labels = pairwise_distances_argmin(X, centers)
        objective = float(((X - centers[labels]).astype(np.float64) ** 2).sum())
        best = best or objective
        yield {"method": method, "objective": objective / best, "ami": adjusted_mutual_info_score(y, labels),
               "compression": centers.size / numbers, "macs": macs}  # fmt: skip


def centroids(X: NDArray[Any], begin: NDArray[Any], max_iter: int, seed: int) -> dict[str, Centroids]:
    """Return the centroids of all methods."""
    U, labels, _ = lloyd(X, begin, max_iter)
    sizes = np.bincount(labels, minlength=len(U))
    fast = _fitted(X, begin, max_iter, seed, solver="palm4msa", n_factors="journal", sparsity_level=LEVEL)
    after = hierarchical_palm4msa(U.astype(np.float64), "journal", LEVEL, weights=sizes).product
    numbers = fast.numbers
    return {
        PLAIN: Centroids(U, U.size, U.size),
        FAST: fast,
        AFTER: Centroids(after.toarray().astype(X.dtype), after.nnz, after.macs),
        L1: _in_l1_ball(X, begin, max_iter, numbers),
        ALS: _fitted(X, begin, max_iter, seed, compression=max(U.size / numbers, 1.0)),
    }


def _fitted(X: NDArray[Any], begin: NDArray[Any], max_iter: int, seed: int, **options: Any) -> Centroids:
    stop = StopWhenSettled()
    model = QKMeans(len(begin), init=begin, max_iter=max_iter, tol=0, callback=stop, shortlist=0, random_state=seed,
                    **options).fit(X)  # fmt: skip
    product = model.product_ or SparseProduct([model.cluster_centers_])
    return Centroids(model.cluster_centers_, product.nnz, product.macs)


def _in_l1_ball(X: NDArray[Any], begin: NDArray[Any], max_iter: int, numbers: int) -> Centroids:
    """K-means whose means are projected on the l1 ball with `numbers` non-zeros in all."""
    centers = project_rows(begin.astype(np.float64), numbers)
    for _ in range(max_iter):
        means = lloyd(X, centers.astype(X.dtype), 1).centers
        centers = project_rows(means.astype(np.float64), numbers)
    count = int(np.count_nonzero(centers))
    return Centroids(centers.astype(X.dtype), max(count, 1), count)


def compare(results: Results) -> list[Line]:
    """Return one line per data set, start and method; the journal's numbers are on other machines and data."""
    lines = []
    for data in results.values("data"):
        for init in results.values("init", data=data):
            for method in results.values("method", data=data, init=init):
                where = {"data": data, "init": init, "method": method}
                objective, ami, rate, macs = (
                    results.spread(column, **where) for column in ("objective", "ami", "compression", "macs")
                )
                if objective and ami and rate and macs:
                    ours = (f"{objective.mean:.4f} ± {objective.deviation:.4f}, AMI {ami.mean:.3f}, "
                            f"compression {rate.mean:.1f}, {macs.mean:.0f} multiply-adds")  # fmt: skip
                    lines += line(f"{data}, {init} start, {method}", "-", ours)
    return lines


def draw(run: Run, results: Results) -> Any:
    """Draw the objective of every method and data set, with one marker per start."""
    names = results.values("data")
    figure, axes = panels(1, len(names), title=EXPERIMENT.title)
    for axis, data in zip(axes[0], names, strict=True):
        for shift, init in enumerate(STARTS):
            for place, method in enumerate(METHODS):
                spread = results.spread("objective", data=data, init=init, method=method)
                if spread:
                    look = {"fmt": "os"[shift], "color": f"C{shift}", "ms": 4, "capsize": 3}
                    label = None if place else f"{init} start"
                    axis.errorbar(place + 0.16 * (2 * shift - 1), spread.mean, spread.deviation, label=label, **look)
        axis.set(title=f"{data}, K = {CLUSTERS[data]}", xticks=range(len(METHODS)))
        axis.set_xticklabels(METHODS, rotation=35, ha="right", fontsize=7)
        axis.grid(axis="y", alpha=0.3)
    axes[0][0].set(ylabel="objective over that of K-means")
    axes[0][0].legend(fontsize=7)
    return figure


ABOUT = """\
The journal version (Machine Learning, 2021) takes log2 of the larger side as the number of factors, k-means++ beside
uniform starts, the adjusted mutual information (AMI) with the classes, and two baselines: K-means whose centroids are
factored once at the end, and K-means whose centroids are projected on an l1 ball after every update. The radius of the
ball is chosen so that the centroids have as many non-zeros as QK-means. Objectives are over that of K-means from the
same start; multiply-adds are those of one row. Data that are not to be had here are left out."""
EXPERIMENT = Experiment("The journal version: compressed clusterings", ABOUT, cases, measure, compare, draw)
