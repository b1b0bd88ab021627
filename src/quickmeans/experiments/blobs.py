"""Which settings explain the accuracy on Blobs: the split into training and test rows, and the number of iterations."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from quickmeans.experiments.data import Split
from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.models import lloyd, start
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import BLOB_CLUSTERS, Run
from quickmeans.experiments.search import cluster_search

SPLITS = ("at random", "one row of every class")
ITERATIONS = (10, 30)
PAPER = {128: 0.96, 256: 0.97, 512: 0.99}


def cases(run: Run) -> list[Row]:
    """Return every number of clusters with both splits and every seed."""
    return run.seeded([{"K": K, "split": split} for K in BLOB_CLUSTERS[run.quick] for split in SPLITS])


def measure(run: Run, K: int, split: str, seed: int) -> Iterator[Row]:
    """Measure the accuracy of the nearest neighbour in the cluster of a query, after some iterations and after more."""
    data = run.split("blobs")
    X, test, y, expected = data if split == SPLITS[0] else by_class(data)
    centers: Any = start(X, K, seed)
    for done, total in zip((0, *ITERATIONS), ITERATIONS, strict=False):
        centers, labels, _ = lloyd(X, centers, total - done)
        search = cluster_search(X, centers, labels, lambda Q, U=centers: pairwise_distances_argmin(Q, U))
        ids = search(test)
        yield {"iterations": total, "accuracy": float(((y[ids] == expected) & (ids >= 0)).mean())}


def by_class(data: Split) -> Split:
    """Return the same rows, of which the last one of every class is a test row."""
    X, y = np.vstack([data.X, data.test]), np.concatenate([data.y, data.test_y])
    test = np.zeros(len(y), bool)
    test[len(y) - 1 - np.unique(y[::-1], return_index=True)[1]] = True
    return Split(X[~test], X[test], y[~test], y[test])


def compare(results: Results) -> list[Line]:
    """Set the accuracies beside that of the paper."""
    lines = []
    for K in results.values("K"):
        for split in results.values("split", K=K):
            for iterations in ITERATIONS:
                spread = results.spread("accuracy", K=K, split=split, iterations=iterations)
                lines += line(f"{K} clusters, test rows {split}, {iterations} iterations", PAPER.get(K, "-"),
                              spread and f"{spread.mean:.3f} ± {spread.deviation:.3f}")  # fmt: skip
    return lines


ABOUT = """\
The nearest neighbour of a query is searched among the rows of its K-means cluster, from a uniform start. Test rows are
drawn at random, as in Table 3, or are one row of every class: there are as many of them as classes, 1000."""
EXPERIMENT = Experiment("Blobs: settings that change the accuracy", ABOUT, cases, measure, compare)
