"""One pass over the rows: sizes and spreads of the clusters, their nearest rows, the objective, a sample of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.cluster import QKMeans

_MOST_ROWS, _MOST_BYTES = 4096, 64 << 20  # of the sample
_EXAMPLES = 4  # rows per cluster


@dataclass(frozen=True)
class Survey:
    """Cluster sizes, or None if they are not known; everything else if rows were given."""

    sizes: NDArray[np.int64] | None = None
    squares: NDArray[np.float64] | None = None  # sum of the squared distances in every cluster
    examples: NDArray[np.int64] | None = None  # rows nearest to the centroid of every cluster, -1 if there are none
    sample: NDArray[Any] | None = None
    labels: NDArray[np.int32] | None = None  # of the sample

    @property
    def objective(self) -> float | None:
        """Sum of all squared distances."""
        return None if self.squares is None else float(self.squares.sum())

    @property
    def spread(self) -> NDArray[np.float64] | None:
        """Root of the mean squared distance from the centroid; zero for empty clusters."""
        if self.sizes is None or self.squares is None:
            return None
        return np.asarray(np.sqrt(self.squares / np.maximum(self.sizes, 1)))

    @property
    def n_rows(self) -> int | None:
        """Number of rows that were counted."""
        return None if self.sizes is None else int(self.sizes.sum())

    def largest(self, n_clusters: int, most: int) -> NDArray[np.int64]:
        """Return the largest clusters in descending order; the first ones if sizes are not known."""
        order = np.arange(n_clusters) if self.sizes is None else np.argsort(-self.sizes, kind="stable")
        return order[:most]

    def which(self, n_shown: int, n_clusters: int) -> str:
        """Return what a caption calls the clusters that `largest` returns."""
        if n_shown == n_clusters:
            return f"all {n_clusters:,}"
        return (
            f"the first {n_shown:,} of {n_clusters:,}"
            if self.sizes is None
            else f"the {n_shown:,} largest of {n_clusters:,}"
        )


def survey_rows(model: QKMeans, rows: Any) -> Survey:
    """Return a survey of the given rows, which are read once; without rows, of the labels that the model has kept."""
    K = len(model.cluster_centers_)
    if rows is None:
        labels = getattr(model, "labels_", None)
        return Survey(None if labels is None else np.bincount(np.asarray(labels), minlength=K))
    sizes, squares, sample, examples = np.zeros(K, np.int64), np.zeros(K), _Sample(model), _Examples(K)
    for block, labels, squared_distances in model.assign(rows):
        sizes += np.bincount(labels, minlength=K)
        squares += np.bincount(labels, squared_distances, minlength=K)
        sample.add(block, labels)
        examples.add(labels, squared_distances)
    return Survey(sizes, squares, examples.rows, sample.rows, sample.labels)


def sample_size(n_features: int, dtype: np.dtype[Any]) -> int:
    """Return the number of rows of a sample: a few thousand, or fewer if they are very long."""
    return max(64, min(_MOST_ROWS, _MOST_BYTES // (n_features * dtype.itemsize)))


class _Sample:
    """A sample without replacement: every row gets a random key, and the rows with the smallest keys are kept."""

    def __init__(self, model: QKMeans) -> None:
        dtype, D = model.assigner_.geometry.dtype, model.n_features_in_
        self.size = sample_size(D, dtype)
        self.rows, self.labels, self.keys = np.empty((0, D), dtype), np.empty(0, np.int32), np.empty(0)
        self.rng = np.random.default_rng(0)

    def add(self, rows: NDArray[Any], labels: NDArray[np.int32]) -> None:
        """Take another block of rows into account."""
        keys = self.rng.random(len(rows))
        chosen = np.argsort(keys)[: self.size]
        keys = np.concatenate([self.keys, keys[chosen]])
        smallest = np.argsort(keys)[: self.size]
        self.keys = keys[smallest]
        self.rows = np.concatenate([self.rows, rows[chosen].astype(self.rows.dtype)])[smallest]
        self.labels = np.concatenate([self.labels, labels[chosen]])[smallest]


class _Examples:
    """The rows nearest to the centroid of each cluster, nearest first."""

    def __init__(self, n_clusters: int) -> None:
        self.rows = np.full((n_clusters, _EXAMPLES), -1)
        self.squares = np.full((n_clusters, _EXAMPLES), np.inf)
        self.n_seen = 0

    def add(self, labels: NDArray[np.int32], squares: NDArray[Any]) -> None:
        """Take another block of rows into account."""
        order = np.lexsort((squares, labels))
        sorted_labels = labels[order]
        ranks = np.arange(len(order)) - np.searchsorted(sorted_labels, sorted_labels)  # within their clusters
        near = ranks < _EXAMPLES
        chosen, at = order[near], (sorted_labels[near], ranks[near] + _EXAMPLES)
        both_rows = np.hstack([self.rows, np.full_like(self.rows, -1)])
        both_squares = np.hstack([self.squares, np.full_like(self.squares, np.inf)])
        both_rows[at], both_squares[at] = chosen + self.n_seen, squares[chosen]
        nearest = np.argsort(both_squares, axis=1, kind="stable")[:, :_EXAMPLES]
        self.rows = np.take_along_axis(both_rows, nearest, 1)
        self.squares = np.take_along_axis(both_squares, nearest, 1)
        self.n_seen += len(labels)
