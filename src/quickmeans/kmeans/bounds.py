"""Bounds on distances, by which rows whose labels cannot have changed are passed over."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.points import Frame
from quickmeans.kmeans.screen import Assignment

_MOST = 0.9  # with more doubtful rows than this share, all are looked at


class Bounds:
    """For every row a bound from above on the distance to its centroid, and one from below on that to any other.

    They hold as far as the screen's do, and loosen with the moves of the centroids (Hamerly, 2010).
    """

    def __init__(self, n_rows: int, frame: Frame) -> None:
        self.frame = frame
        self.upper, self.lower = np.zeros(n_rows, frame.dtype), np.zeros(n_rows, frame.dtype)

    def renew(self, found: Assignment, index: NDArray[np.int64] | None, first: int = 0) -> None:
        """After an assignment of these rows of a part of X that begins with row `first`, or of all of that part."""
        rows: Any = slice(None) if index is None else index
        part = slice(first, first + len(found.best))
        norms = found.norms[rows]
        self.upper[part][rows] = np.sqrt(self.frame.squared_distances(norms, found.best[rows]))
        self.lower[part][rows] = np.sqrt(self.frame.squared_distances(norms, found.second[rows]))

    def loosen(self, labels: NDArray[np.int32], moves: NDArray[np.float64]) -> None:
        """After the centroids have moved."""
        moves = moves.astype(self.upper.dtype)
        self.upper += moves[labels]
        self.lower -= moves.max()

    def doubtful(self) -> NDArray[np.int64] | None:
        """The rows whose labels are not proven, or None if that is most of them."""
        doubt = np.flatnonzero(self.upper >= self.lower)
        return None if len(doubt) > _MOST * len(self.upper) else doubt
