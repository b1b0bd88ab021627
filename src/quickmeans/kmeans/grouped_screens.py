"""Screens for so many centroids that rows look for them through groups in every iteration.

A screen with groups (:mod:`quickmeans.kmeans.groups`) is calibrated for the first centroids. As these move, groups,
directions, reach and margin stay: rows are compared with the centroids where they are, and only the groups, whose
middles and radii are computed anew, fit a little less well.
"""

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.groups import LEAST_CENTERS
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.screen import Screen
from quickmeans.kmeans.settings import Settings

_LEAST_ROWS = 16384  # fewer rows are compared with all centroids in less time than groups are calibrated
_SURELY = 4 * LEAST_CENTERS  # from so many centroids on no screen without groups is cheaper
_ROW_BYTES = 8  # labels, before and after
_SAMPLE_COPIES, _SAMPLE_ROW_BYTES = 2, 64  # of float32; what the search among them knows of a row
_CENTER_BYTES = 600  # the lists of a centroid
_START_ARRAYS, _LAST_ARRAYS = 10, 28  # of float32, K x D: of a search; sums, and screens while one is calibrated


class GroupedScreens(ScreenChooser):
    """A :class:`ScreenChooser` whose screens all have groups, unless these do not pay."""

    in_vain = False  # whether groups were dearer than comparing all centroids

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> Screen:
        if self.groups is not None:
            return self._low_rank(centers, self.rank).with_groups(self.groups).with_margin(self.margin)
        if self.in_vain:
            return super().__call__(centers, counts)
        screen = self.last(self.dense(centers), centers, counts)
        self.in_vain = screen.groups is None
        if screen.groups is not None:
            self.groups, self.margin = screen.groups, screen.margin
            self.basis, self.rank = screen.directions.T, len(screen.directions)
        return screen

    def once(self, centers: NDArray[np.float64]) -> Screen:
        return self.last(self.dense(centers), centers)

    def sharpened(self, centers: NDArray[np.float64]) -> Screen | None:
        return None

    def last(
        self, assigner: Assigner, centers: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> Screen:
        """The screen to keep: calibrated for these centroids, and with groups of them."""
        return super().last(self.dense(centers), centers, weights)

    def at_once(self, centers: NDArray[np.float64]) -> Screen | None:
        return self.dense(centers) if self.groups is None else self(centers)

    def is_outdated(self, listed: float, listed_at_first: float) -> bool:
        outdated = super().is_outdated(listed, listed_at_first)
        self.groups = None if outdated else self.groups
        return outdated


def look_through_groups(points: Points, settings: Settings) -> bool:
    """Whether there are so many clusters that rows look for their centroids through groups in every iteration."""
    plain = settings.shortlist is None and settings.compression is None
    return plain and settings.n_clusters >= _SURELY and len(points) >= _LEAST_ROWS


def needed_for_chunks(points: Points, n_clusters: int, n_sampled: int) -> int:
    """Memory beside X for passes over chunks, from a start among so many rows that are brought into memory."""
    row = 4 * points.n_columns
    start = n_sampled * (_SAMPLE_ROW_BYTES + _SAMPLE_COPIES * row) + n_clusters * _START_ARRAYS * row
    last = n_clusters * _LAST_ARRAYS * row
    return _ROW_BYTES * len(points) + n_clusters * _CENTER_BYTES + max(start, last)
