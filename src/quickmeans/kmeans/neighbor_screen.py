"""Many centroids and rows that come in chunks with the labels of the pass before: a row looks near its centroid.

See ``native/near_centers.hpp``. Where rows have no labels yet, as in the first pass, they look through groups first.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.grouped_screens import GroupedScreens
from quickmeans.kmeans.screen import Screen

_FAR = 1 / 3  # of the rows are far from their centroids, and looked at more widely once in four passes
_LARGEST = 1e15  # the squares of larger numbers, which only rows without weight have, could overflow float32


class NeighborScreen(Screen):
    """A screen without a product whose rows are compared with some centroids near the one of their label.

    Parameters
    ----------
    centers : array of shape (n_clusters, n_features)
        The c_k.
    geometry : Geometry
        With float32 as its dtype.
    n_threads : int
        For finding the neighbours.
    turn : int
        A number of the pass.
    far : float
        The squared distance from which on rows are looked at more widely in some passes.
    """

    gives_bounds = False

    def __init__(
        self, centers: NDArray[np.float64], geometry: Geometry, n_threads: int, turn: int, far: float = np.inf
    ) -> None:
        super().__init__(centers, geometry)
        self.n_threads, self.turn, self.far = n_threads, turn, far

    @cached_property
    def _near(self) -> kernels.NearCenters:
        return kernels.NearCenters(self.centers, self.n_threads)

    def assign(
        self,
        rows: NDArray[Any],
        assignment: Assignment,
        n_threads: int,
        *,
        index: NDArray[np.int64] | None = None,
        projected: NDArray[Any] | None = None,
        exact_scores: bool = True,
    ) -> None:
        """Assign the rows by their labels in the assignment; -1 stands for none."""
        assert index is None
        geometry, near = self.geometry, np.empty(rows.shape, np.float32)
        kernels.center_rows(rows, None if geometry.spherical else geometry.mean, 1.0, near, n_threads)
        np.clip(near, -_LARGEST, _LARGEST, out=near)
        results = assignment.labels, assignment.best, assignment.norms
        self._near.assign(near, *results, far=self.far, turn=self.turn, n_threads=n_threads)
        if geometry.spherical:  # scores without the -|c|^2 / 2
            assignment.best += np.float32(0.5)
        assignment.norms_known = True

    def with_far(self, far: float) -> "NeighborScreen":
        """The same screen with another distance."""
        other = self._copy()
        assert isinstance(other, NeighborScreen)
        other.far = far
        return other


class NeighborScreens(GroupedScreens):
    """A chooser of such screens for passes; the screen that is kept has groups."""

    turn = 0

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> Screen:
        screen = NeighborScreen(centers, self.geometry, self.n_threads, self.turn)
        self.turn += 1
        found = Assignment.empty(len(self.sample), self.geometry.dtype)
        found.labels[:] = -1
        screen.assign(self.sample, found, self.n_threads)
        return screen.with_far(float(np.quantile(found.squared_distances(self.geometry), 1 - _FAR)))
