"""What one pass over the rows tells of the clusters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.cluster import QKMeans
from quickmeans.kmeans.screen import fill_norms

_MOST_ROWS, _MOST_BYTES = 4096, 64 << 20  # of the sample


@dataclass(frozen=True)
class Survey:
    """Cluster sizes (None if they are not known), and of given rows the objective and a sample."""

    sizes: NDArray[np.int64] | None = None
    objective: float | None = None
    sample: NDArray[Any] | None = None
    labels: NDArray[np.int32] | None = None  # of the sample

    @property
    def n_rows(self) -> int | None:
        """How many have been counted."""
        return None if self.sizes is None else int(self.sizes.sum())

    def largest(self, n_clusters: int, most: int) -> NDArray[np.int64]:
        """The largest clusters, largest first; if sizes are not known, the first ones."""
        order = np.arange(n_clusters) if self.sizes is None else np.argsort(-self.sizes, kind="stable")
        return order[:most]

    def which(self, n_shown: int, n_clusters: int) -> str:
        """What to call those that `largest` gives."""
        kind = "first" if self.sizes is None else "largest"
        return f"the {n_shown:,} {kind} of {n_clusters:,}" if n_shown < n_clusters else f"all {n_clusters:,}"


def survey(model: QKMeans, rows: Any) -> Survey:
    """Of the given rows, which are read once and some at a time; else of the labels that the model has kept."""
    K = len(model.cluster_centers_)
    if rows is None:
        labels = getattr(model, "labels_", None)
        return Survey(None if labels is None else np.bincount(np.asarray(labels), minlength=K))
    sizes, objective, draw = np.zeros(K, np.int64), 0.0, _Draw(model)
    for chunk, found in model._assigned(model._rows_to_place(rows), exact=False, settle_all=True):
        fill_norms(chunk, model._frame, found)
        sizes += np.bincount(found.labels, minlength=K)
        objective += float(found.squared_distances(model._frame).sum(dtype=np.float64))
        draw.show(chunk, found.labels)
    return Survey(sizes, objective, draw.rows, draw.labels)


def sample_size(n_features: int, dtype: np.dtype[Any]) -> int:
    """How many rows a sample has: a few thousand, unless they are very long."""
    return max(64, min(_MOST_ROWS, _MOST_BYTES // (n_features * dtype.itemsize)))


class _Draw:
    """A sample without replacement: every row gets a random number, and the rows with the smallest are kept."""

    def __init__(self, model: QKMeans) -> None:
        dtype, D = model._frame.dtype, model.n_features_in_
        self.most = sample_size(D, dtype)
        self.rows, self.labels, self.keys = np.empty((0, D), dtype), np.empty(0, np.int32), np.empty(0)
        self.rng = np.random.default_rng(0)

    def show(self, rows: Any, labels: NDArray[np.int32]) -> None:
        """Some more rows."""
        keys = self.rng.random(rows.shape[0])
        some = np.argsort(keys)[: self.most]
        chosen = rows[some].toarray() if sp.issparse(rows) else rows[some]
        keys = np.concatenate([self.keys, keys[some]])
        best = np.argsort(keys)[: self.most]
        self.keys = keys[best]
        self.rows = np.concatenate([self.rows, chosen.astype(self.rows.dtype)])[best]
        self.labels = np.concatenate([self.labels, labels[some]])[best]
