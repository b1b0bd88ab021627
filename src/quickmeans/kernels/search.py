"""The search for better clusters."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, Array, Floats, floats, packed
from quickmeans.threads import instruction_set


class Clusters:
    """What both searches have: clusters of rows in float32, Lloyd's iteration, and swaps.

    Parameters
    ----------
    rows : array of float32, shape (n_rows, n_features)
        About their mean, or of length one if spherical. They must not be changed afterwards.
    weights : array of shape (n_rows,)
    spherical : bool
        Whether centers have length one.
    n_threads : int
    """

    __slots__ = ("_native", "shape")

    _make: ClassVar[type[_native.Search] | type[_native.LocalSearch]]

    def __init__(self, rows: Array, weights: Floats, *, spherical: bool, n_threads: int) -> None:
        arrays = packed(rows, FLOAT32), floats(weights)
        self.shape = rows.shape
        self._native: Any = self._make(*arrays, spherical, n_threads, instruction_set())

    def place(self, centers: Array) -> None:
        """Begin anew with these centers."""
        self._native.place(packed(centers, FLOAT32))

    def iterate(self, most: int, tol: float = 0.0, *, until_empty: bool = False) -> int:
        """At most so many iterations of Lloyd; how many it took until no label changed or squared shifts were <= tol.

        Clusters that lose all rows keep their centers; with ``until_empty`` they end the iterations.
        """
        return int(self._native.iterate(most, tol, until_empty))

    def swap(self, most: int) -> int:
        """At most so many swaps of a cheap center for the split of a cluster of larger gain; how many were made."""
        return int(self._native.swap(most))

    def keep(self) -> None:
        """Remember the clusters as they are."""
        self._native.keep()

    def go_back(self) -> None:
        """Return to the clusters that were kept last."""
        self._native.go_back()

    def means(self) -> Floats:
        """The centers."""
        out = np.empty((self.n_centers, self.shape[1]))
        self._native.means(out)
        return out

    def labels(self) -> NDArray[np.int32]:
        """The cluster of every row."""
        out = np.empty(self.shape[0], np.int32)
        self._native.labels(out)
        return out

    def cluster_weights(self) -> Floats:
        """The weight of every cluster."""
        out = np.empty(self.n_centers)
        self._native.cluster_weights(out)
        return out

    @property
    def n_centers(self) -> int:
        """The number of centers."""
        return int(self._native.n_centers)

    @property
    def assigned(self) -> float:
        """The objective after the last assignment, before the centers moved."""
        return float(self._native.assigned)

    @property
    def objective(self) -> float:
        """The objective of the labels and the centers after the last iteration."""
        return float(self._native.objective)

    @property
    def history(self) -> list[float]:
        """The objective after every assignment and every update of the last call of `iterate`."""
        return list(self._native.history)

    @property
    def n_empty(self) -> int:
        """The number of clusters without weight."""
        return int(self._native.n_empty)

    @property
    def converged(self) -> bool:
        """Whether the last call of `iterate` ended before its time."""
        return bool(self._native.converged)

    @property
    def work(self) -> float:
        """What was done so far, in multiply-adds that take as long."""
        return float(self._native.work)

    @property
    def pass_work(self) -> float:
        """The work of comparing every row with every center; without bounds, of four times that."""
        return float(self._native.pass_work)


class Search(Clusters):
    """Clusters with bounds, so that few rows are compared with all centers, and with moves that change their number.

    After every method but `swap`, `grow` and `shrink` the centers are the means of their rows.
    """

    __slots__ = ()
    _make = _native.Search

    def grow(self, most: int) -> int:
        """Split the clusters of the largest gains, at most so many; how many centers were added."""
        return int(self._native.grow(most))

    def shrink(self, count: int) -> None:
        """Remove so many of the cheapest centers."""
        self._native.shrink(count)


class LocalSearch(Clusters):
    """Many clusters: a row is compared with the centers near its own only, so that K hardly matters.

    A label may miss a nearer center that is no neighbour. The rows need not be about their mean if it is not far away.
    """

    __slots__ = ()
    _make = _native.LocalSearch

    def assign(self) -> None:
        """Compare all rows once more; the centers stay."""
        self._native.assign()

    @property
    def n_near(self) -> int:
        """How many centers a row is compared with."""
        return int(self._native.n_near)
