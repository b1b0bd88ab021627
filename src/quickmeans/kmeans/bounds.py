"""Bounds on distances: rows whose label cannot have changed are skipped."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.geometry import Geometry

# With more rows in doubt than this share, all are assigned: gathering rows costs about a tenth of assigning them.
_MOST_IN_DOUBT = 0.9


class Bounds:
    """For every row an upper bound on the distance to its centroid and a lower bound on the distance to any other.

    They hold as far as the screen's margin does, and move with the centroids (Hamerly, 2010).
    """

    def __init__(self, n_rows: int, geometry: Geometry) -> None:
        self.geometry = geometry
        self.upper, self.lower = np.zeros(n_rows, geometry.dtype), np.zeros(n_rows, geometry.dtype)

    def renew(self, assignment: Assignment, index: NDArray[np.int64] | None, first: int = 0) -> None:
        """Take the bounds of rows just assigned: those of the index, or all; `first` is their place in X."""
        chosen: Any = slice(None) if index is None else index
        part = slice(first, first + len(assignment.best))
        norms = assignment.norms[chosen]
        self.upper[part][chosen] = np.sqrt(self.geometry.squared_distances(norms, assignment.best[chosen]))
        self.lower[part][chosen] = np.sqrt(self.geometry.squared_distances(norms, assignment.second[chosen]))

    def move(self, labels: NDArray[np.int32], center_shift: NDArray[np.float64]) -> None:
        """Adjust the bounds to centroids that have moved by these distances."""
        shift = center_shift.astype(self.upper.dtype)
        self.upper += shift[labels]
        self.lower -= shift.max()

    def in_doubt(self) -> NDArray[np.int64] | None:
        """The rows whose label may have changed, or None if that is most of them."""
        rows = np.flatnonzero(self.upper >= self.lower)
        return None if len(rows) > _MOST_IN_DOUBT * len(self.upper) else rows
