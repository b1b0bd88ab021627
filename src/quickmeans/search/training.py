"""Training the centroids of the lists."""

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from quickmeans.search.input import Input


class Quantizer(Protocol):
    """A clustering of rows, such as QKMeans."""

    n_clusters: int
    labels_: NDArray[np.int32]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of X."""

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The labels of the rows of X."""


def train(
    quantizer: Quantizer, rows: Input, n_train: int, held_back: NDArray[np.int64] | None, rng: np.random.Generator
) -> tuple[NDArray[np.int32], int]:
    """Fit the quantizer to at most `n_train` rows, and without those that are held back if enough rows remain.

    Returns the labels of all rows, and to how many the quantizer was fitted.
    """
    n_rows, held = rows.shape[0], np.zeros(0, np.int64) if held_back is None else held_back
    if n_rows - len(held) < quantizer.n_clusters:
        held = held[:0]
    n_fitted = n_rows - len(held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # about clusters without rows: lists may be empty
        if n_train < n_fitted:
            others = np.delete(np.arange(n_rows), held)
            quantizer.fit(rows.some_for_clusters(np.sort(rng.choice(others, n_train, replace=False))))
            return quantizer.predict(rows.for_clusters()), n_train
        weights = np.ones(n_rows)
        weights[held] = 0
        quantizer.fit(rows.for_clusters(), sample_weight=weights if len(held) else None)
    return quantizer.labels_, n_fitted
