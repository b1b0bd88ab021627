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


def train(quantizer: Quantizer, rows: Input, held_back: NDArray[np.int64] | None) -> NDArray[np.int32]:
    """Fit the quantizer without the rows that are held back, if enough rows remain; returns the labels of all rows."""
    weights = None
    if held_back is not None and rows.shape[0] - len(held_back) >= quantizer.n_clusters:
        weights = np.ones(rows.shape[0])
        weights[held_back] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # about clusters without rows: lists may be empty
        quantizer.fit(rows.for_clusters(), sample_weight=weights)
    return quantizer.labels_
