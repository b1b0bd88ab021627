"""Rows as the native search reads them: float32, about a fixed point, in a convenient unit."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.geometry import Geometry

Native = TypeVar("Native", bound=kernels.Clusters)
_FARTHEST = 1e15  # centroids farther away get no rows, and their squares could overflow float32


@dataclass(frozen=True)
class DenseRows:
    """Rows with weight: a row x of X is origin + unit * row, or has the direction of the row if spherical.

    Attributes
    ----------
    rows : array of float32, shape (n_rows, n_features)
    weights : array of float64, shape (n_rows,)
    origin : array of float64, shape (n_features,)
    unit : float
    weight_unit : float
        What the weights have been divided by.
    spherical : bool
    n_threads : int
    """

    rows: NDArray[np.float32]
    weights: NDArray[np.float64]
    origin: NDArray[np.float64]
    unit: float
    weight_unit: float
    spherical: bool
    n_threads: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        """The number of features."""
        return int(self.rows.shape[1])

    def take(self, index: NDArray[np.int64]) -> "DenseRows":
        """Some of the rows."""
        return replace(self, rows=self.rows[index], weights=self.weights[index])

    def sample(self, count: int, rng: np.random.Generator) -> "DenseRows":
        """So many rows, one from every stretch of about equal length; these themselves if there are not many more."""
        if len(self) <= 2 * count:
            return self
        edges = np.arange(count + 1) * len(self) // count
        return self.take(edges[:-1] + (rng.random(count) * np.diff(edges)).astype(np.int64))

    def search(self, centers: NDArray[np.float64], kind: type[Native]) -> Native:
        """A search of this kind among these rows that begins with these centroids."""
        search = kind(self.rows, self.weights, spherical=self.spherical, n_threads=self.n_threads)
        search.place(centers)
        return search


@dataclass(frozen=True)
class DenseSearch(Generic[Native]):
    """A native search among dense rows, in the terms of the rows as they were.

    Attributes
    ----------
    rows : DenseRows
    native : kernels.Clusters
    geometry : Geometry
        That of the centroids.
    """

    rows: DenseRows
    native: Native
    geometry: Geometry

    @classmethod
    def of(
        cls, rows: DenseRows, centers: NDArray[np.float64], geometry: Geometry, kind: type[Native]
    ) -> "DenseSearch[Native]":
        """A search of this kind that begins with these centered centroids."""
        moved = (centers - (rows.origin - geometry.mean)) / rows.unit
        return cls(rows, rows.search(np.maximum(np.minimum(moved, _FARTHEST), -_FARTHEST), kind), geometry)

    def centers(self) -> NDArray[np.float64]:
        """The centered centroids."""
        means = self.native.means()
        return np.asarray(self.rows.unit * means + (self.rows.origin - self.geometry.mean), np.float64)

    def cluster_weights(self) -> NDArray[np.float64]:
        """The weight of every cluster."""
        return self.rows.weight_unit * self.native.cluster_weights()

    @property
    def square_unit(self) -> float:
        """What native squared shifts are multiplied with."""
        return self.rows.unit**2

    @property
    def objective_unit(self) -> float:
        """What native objectives are multiplied with."""
        return self.rows.weight_unit * self.rows.unit**2
