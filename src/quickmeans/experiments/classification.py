"""The measurements of Tables 3 and 4: accuracy of nearest neighbours and of a linear SVM on kernel features."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from quickmeans.experiments.experiment import Line, line
from quickmeans.experiments.landmarks import nystroem
from quickmeans.experiments.models import OURS, PAPER
from quickmeans.experiments.plots import panels, spread_lines
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run
from quickmeans.experiments.search import searches
from quickmeans.experiments.svm import LinearSVM, best_c

ABOUT = """\
The nearest neighbour of a query is searched among the rows of its cluster. The trees search for 50 queries and must
agree with brute force on all of them. The SVM minimises the objective of scikit-learn's `LinearSVC` (one squared hinge
per class) for all classes at once. Its C is chosen among 1, 10 and 100 on a fifth of the training rows, with the
K-means landmarks of the first seed, and is the same for all methods and seeds. The paper states neither the kernel nor
its width nor C: here the kernel is Gaussian with gamma one over the mean squared distance of two rows. "QKNystroem"
compresses the centroids of `QKMeans(K)` as far as the error allows."""
EXACT = "exact"  # stands for K in the cases without clusters
TREES = {"1NN KD Tree": "kd_tree", "1NN Ball Tree": "ball_tree"}
_TREE_QUERIES = 50  # a tree takes a tenth of a second per query
NEIGHBORS = {
    "K-means": "1NN K-means",
    PAPER: "1NN QK-means",
    "QKNeighbors, one cluster": "1NN QKNeighbors, one cluster",
    "QKNeighbors, two clusters": "1NN QKNeighbors, two clusters",
}
SVMS = {
    "K-means": "Nyström K-means + SVM",
    PAPER: "Nyström QK-means + SVM",
    OURS: "Nyström QKNystroem + SVM",
}
METHODS = [*NEIGHBORS.values(), *SVMS.values()]


def measure(run: Run, data: str, K: Any, seed: int) -> Iterator[Row]:
    """Measure the accuracy on the test rows."""
    if K == EXACT:
        yield from _exact(run, data)
        return
    X, test, y, expected = run.split(data)
    for key, search in searches(run, data, K, seed, [PAPER]).items():
        ids = search(test)
        right = (y[ids] == expected) & (ids >= 0)
        yield {"method": NEIGHBORS[key], "accuracy": float(right.mean())}
    for key, method in SVMS.items():
        model = nystroem(run, data, K, seed, key)
        svm = LinearSVM(_chosen_c(run, data, K)).fit(model.transform(X), y)
        yield {"method": method, "accuracy": svm.score(model.transform(test), expected)}


@cache
def _chosen_c(run: Run, data: str, K: int) -> float:
    """Return the best C for the K-means landmarks of the first seed; all methods and seeds use it."""
    X, _, y, _ = run.split(data)
    return best_c(nystroem(run, data, K, 0, "K-means").transform(X), y)


def _exact(run: Run, data: str) -> Iterator[Row]:
    """Search by brute force for all test rows, and by trees for a few, where they must agree with brute force."""
    X, test, y, expected = run.split(data)
    predicted = KNeighborsClassifier(1, algorithm="brute").fit(X, y).predict(test)
    accuracy = float((predicted == expected).mean())
    yield {"method": "1NN Brute force search", "accuracy": accuracy}
    queries = test[:_TREE_QUERIES]
    for method, algorithm in TREES.items():
        same = KNeighborsClassifier(1, algorithm=algorithm).fit(X, y).predict(queries) == predicted[: len(queries)]
        if not same.all():
            raise RuntimeError(f"{method} and brute force differ on {np.count_nonzero(~same)} queries.")
        yield {"method": method, "accuracy": accuracy}


def compare(results: Results, paper: dict[tuple[str, str, Any], object]) -> list[Line]:
    """Set our accuracies beside those of the paper, which are keyed by data set, method and K."""
    lines = []
    for data, method, K in dict.fromkeys((row["data"], row["method"], row["K"]) for row in _sorted(results)):
        size = "" if K == EXACT else f" {K} clusters"
        spread = results.spread("accuracy", data=data, method=method, K=K)
        ours = spread and (f"{spread.mean:.3f}" if K == EXACT else f"{spread.mean:.3f} ± {spread.deviation:.3f}")
        lines += line(f"{data}, {method}{size}", paper.get((data, method, K), "-"), ours)
    return lines


def _sorted(results: Results) -> list[Row]:
    """Return the rows by data set, then in the order of the paper's tables: by method, then by K."""
    order = ["1NN Brute force search", *TREES, *METHODS]
    names = results.values("data")
    return sorted(results.rows, key=lambda row: (names.index(row["data"]), order.index(row["method"])))


def draw(run: Run, results: Results) -> Any:
    """Draw the accuracy against K."""
    names = results.values("data")
    figure, axes = panels(1, len(names), title="Accuracy against the number of clusters")
    for axis, data in zip(axes[0], names, strict=True):
        spread_lines(axis, results, "K", "accuracy", METHODS, data=data)
        exact = results.spread("accuracy", data=data, method="1NN Brute force search")
        if exact:
            axis.axhline(exact.mean, color="grey", ls=":", label="1NN, exact")
        axis.set(title=data)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    return figure
