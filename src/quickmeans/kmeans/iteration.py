"""The protocol of Lloyd's iteration by native code over rows of one kind."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.screen import Screen


class Labelled(NamedTuple):
    """The end of an iteration: labels, objective, and the weight and the number of rows with weight of each cluster."""

    labels: NDArray[np.int32]
    objective: float
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]


class Iteration(Protocol):
    """Iterations over all rows that keep the centroids in native code."""

    @property
    def converged(self) -> bool:
        """Whether the last step changed no label, or its squared shifts added up to the tolerance or less."""

    def step(self, tol: float) -> tuple[float, float]:
        """One iteration with this bound on squared shifts; the objective after the assignment and after the update.

        If it is interrupted, the centroids are those before it.
        """

    def centers(self) -> NDArray[np.float64]:
        """The centered centroids."""

    def label(self, screen: Screen, centers: NDArray[np.float64]) -> Labelled:
        """Assign all rows by a screen without a shortlist, and sum up; `centers` are its centroids in float64."""
