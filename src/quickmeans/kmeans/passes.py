"""The protocol of a pass over all rows: every row gets its label, every cluster the sum of its rows."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.refill import Move
from quickmeans.kmeans.update import ClusterSums

# Below this share of the scatter the objective is summed from differences: half of the sixteen digits are left.
CANCELLED = 1e-8


@dataclass(frozen=True)
class LastPass:
    """What the last pass gives.

    Attributes
    ----------
    labels : array
        Lazy on a cluster.
    objective : float
    n_candidates : float
        Exact scores per row.
    weights : array of shape (n_clusters,)
        Of the rows of each cluster.
    n_filled : int
        How many clusters have rows with weight.
    """

    labels: Any
    objective: float
    n_candidates: float
    weights: NDArray[np.float64]
    n_filled: int


class Pass(Protocol):
    """A way to pass over all rows. After each method, `sums` are those of the labels."""

    sums: ClusterSums

    def assign(self, assigner: Assigner, center_shift: NDArray[np.float64] | None = None) -> int | None:
        """Give every row its nearest centroid.

        Parameters
        ----------
        assigner : Assigner
        center_shift : array of shape (n_clusters,), optional
            How far each centroid has moved since the pass before, if that pass used these centroids.

        Returns
        -------
        int or None
            How many labels have changed; None if that is not known.
        """

    def refill(self) -> list[Move]:
        """Give every empty cluster a row, where that is possible."""

    def undo(self, moves: list[Move]) -> None:
        """Take back what `refill` has done."""

    def known(self, history: list[float]) -> LastPass | None:
        """The results of the passes so far, the last of which may have been interrupted, if labels were kept.

        The history ends with the objective after the last complete pass.
        """

    def last(self, assigner: Assigner, centers: NDArray[np.float64]) -> LastPass:
        """Assign every row once more and sum up; `centers` are the centered centroids of the assigner in float64."""


def summed_pass(labels: Any, objective: float, n_candidates: float, sums: ClusterSums) -> LastPass:
    """The results of a last pass that has summed up all rows."""
    return LastPass(labels, objective, n_candidates, sums.weights.copy(), int(np.count_nonzero(sums.sizes)))
