"""What Tables 3 and 4 have in common: the accuracy of nearest neighbours and of a linear SVM on kernel features."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from quickmeans.experiments.frame import Line, Run, line
from quickmeans.experiments.landmarks import nystroem
from quickmeans.experiments.models import OURS, PAPER
from quickmeans.experiments.plots import panels, spread_lines
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.search import searches
from quickmeans.experiments.svm import LinearSVM, best_c

ABOUT = """\
Nearest neighbours are searched among the rows in the cluster of the query; trees on 50 queries, on all of which they
must agree with brute force. The SVM is that of scikit-learn's `LinearSVC` (one squared hinge per class), solved for
all classes at once; its C, of 1, 10 and 100, is the best on a fifth of the training rows held back, for the K-means
landmarks of the first seed, and the same for all others. The paper names neither kernel nor width nor C: here the
kernel is Gaussian, with gamma one over the mean squared distance of two rows. "QKNystroem"
compresses the centroids of `QKMeans(K)` as far as the error allows."""
EXACT = "exact"  # in the place of K
TREES = {"1NN KD Tree": "kd_tree", "1NN Ball Tree": "ball_tree"}
_TREE_QUERIES = 50  # trees take a tenth of a second each
NEIGHBORS = {
    "K-means": "1NN K-means",
    PAPER: "1NN QK-means",
    "QKNeighbors, one cluster": "1NN QKNeighbors, one cluster",
    "QKNeighbors, two clusters": "1NN QKNeighbors, two clusters",
}
MACHINES = {
    "K-means": "Nyström K-means + SVM",
    PAPER: "Nyström QK-means + SVM",
    OURS: "Nyström QKNystroem + SVM",
}
METHODS = [*NEIGHBORS.values(), *MACHINES.values()]


def measure(run: Run, data: str, K: Any, seed: int) -> Iterator[Row]:
    """Accuracy on the test rows."""
    if K == EXACT:
        yield from _exact(run, data)
        return
    X, test, y, expected = run.split(data)
    for key, search in searches(run, data, K, seed, [PAPER]).items():
        ids = search(test)
        right = (y[ids] == expected) & (ids >= 0)
        yield {"method": NEIGHBORS[key], "accuracy": float(right.mean())}
    for key, method in MACHINES.items():
        model = nystroem(run, data, K, seed, key)
        machine = LinearSVM(_chosen_c(run, data, K)).fit(model.transform(X), y)
        yield {"method": method, "accuracy": machine.score(model.transform(test), expected)}


@cache
def _chosen_c(run: Run, data: str, K: int) -> float:
    """One for all methods and seeds: the best for the K-means landmarks of the first seed, among training rows."""
    X, _, y, _ = run.split(data)
    return best_c(nystroem(run, data, K, 0, "K-means").transform(X), y)


def _exact(run: Run, data: str) -> Iterator[Row]:
    """Brute force on all test rows; trees on some, where they must agree with it."""
    X, test, y, expected = run.split(data)
    found = KNeighborsClassifier(1, algorithm="brute").fit(X, y).predict(test)
    accuracy = float((found == expected).mean())
    yield {"method": "1NN Brute force search", "accuracy": accuracy}
    some = test[:_TREE_QUERIES]
    for method, algorithm in TREES.items():
        same = KNeighborsClassifier(1, algorithm=algorithm).fit(X, y).predict(some) == found[: len(some)]
        if not same.all():
            raise RuntimeError(f"{method} and brute force differ on {np.count_nonzero(~same)} queries.")
        yield {"method": method, "accuracy": accuracy}


def against(results: Results, paper: dict[tuple[str, str, Any], object]) -> list[Line]:
    """Every number of a table, keyed by data set, method and K, and below it what the paper does not have."""
    lines = []
    for data, method, K in dict.fromkeys((row["data"], row["method"], row["K"]) for row in _sorted(results)):
        size = "" if K == EXACT else f" {K} clusters"
        spread = results.spread("accuracy", data=data, method=method, K=K)
        ours = spread and (f"{spread.mean:.3f}" if K == EXACT else f"{spread.mean:.3f} ± {spread.deviation:.3f}")
        lines += line(f"{data}, {method}{size}", paper.get((data, method, K), "-"), ours)
    return lines


def _sorted(results: Results) -> list[Row]:
    """By data set, then as in the paper's tables: by method, then by K."""
    order = ["1NN Brute force search", *TREES, *METHODS]
    names = results.values("data")
    return sorted(results.rows, key=lambda row: (names.index(row["data"]), order.index(row["method"])))


def draw(run: Run, results: Results) -> Any:
    """Accuracy against K."""
    names = results.values("data")
    figure, axes = panels(1, len(names), title="Accuracy against the number of clusters")
    for axis, data in zip(axes[0], names, strict=True):
        spread_lines(axis, results, "K", "accuracy", METHODS, data=data)
        exact = results.spread("accuracy", data=data, method="1NN Brute force search")
        if exact:
            axis.axhline(exact.mean, color="grey", ls=":", label="1NN, exact")
        axis.set(title=data)
    axes[0][0].legend(fontsize=7)
    return figure
