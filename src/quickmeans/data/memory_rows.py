"""Rows in memory: what arrays and sparse matrices have in common, and arrays."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.scaled import divided
from quickmeans.kernels import readable
from quickmeans.kmeans.blocks import slices
from quickmeans.kmeans.chunk_pass import ChunkPass
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.memory_pass import MemoryPass
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.rows import Batch, Index, Points, RowFunction, Rows, Weights, local_points
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.start import start_in_memory
from quickmeans.threads import resolve_threads
from quickmeans.transform import SparseProduct

LOADED_BYTES = 1 << 31  # that all rows may take, where there are many clusters: every pass goes to them in any order


class MemoryRows(Rows):
    """What arrays and sparse matrices have in common. `X` is not copied."""

    def __init__(self, X: Any, weights: Weights = None) -> None:
        self.X = X
        self._weights = weights

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    @property
    def weights(self) -> Weights:
        return self._weights

    @property
    def in_memory(self) -> bool:
        return True

    @abstractmethod
    def take(self, index: Index | slice) -> NDArray[Any]: ...

    @abstractmethod
    def slices(self, size: int) -> list[slice]:
        """All rows in slices of so many, or of fewer if `take` would make a large array of them."""

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return self.take(rng.choice(self.shape[0], min(n, self.shape[0]), replace=False))

    def subset(self, index: Index) -> Rows:
        return type(self)(self.X[index], None if self.weights is None else self.weights[index])

    def whole(self) -> Any:
        return self.X

    def threads(self, n_threads: int | None) -> int:
        return resolve_threads(n_threads)

    def points(self, settings: Settings, seeds: Sequence[int]) -> Points:
        return local_points(self, self.threads(settings.n_threads), spherical=settings.spherical)

    def passes(self, points: Points, n_clusters: int, *, stateless: bool) -> Pass:
        if stateless:
            return ChunkPass(points, n_clusters, keep=False)
        return MemoryPass(points, n_clusters)

    def start(self, points: Points, context: Context) -> Start:
        return start_in_memory(points, context)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        order = rng.permutation(self.shape[0])
        for begin in range(0, len(order), size):
            index = np.sort(order[begin : begin + size])
            yield Batch(index, self.take(index), None if self.weights is None else self.weights[index])

    def map(self, function: RowFunction, dtype: Any, width: int | None = None) -> Any:
        n, first, out = self.shape[0], 0, np.empty(0, dtype)
        for part in self.each(function):
            if len(part) == n:
                return part  # without memory for a second array: the first touch of new memory takes long
            if first == 0:
                out = np.empty(n if width is None else (n, width), dtype)
            out[first : first + len(part)] = part
            first += len(part)
        return out

    def locate(self, row: int) -> str:
        return f"row {row}"


class ArrayRows(MemoryRows):
    """The rows of an array; one block."""

    def __init__(self, X: NDArray[Any], weights: Weights = None) -> None:
        super().__init__(readable(X), weights)

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        yield slice(0, len(self.X)), self.X

    def in_place(self) -> NDArray[Any]:
        return np.asarray(self.X)

    def scaled(self, scale: NDArray[np.float64]) -> Rows:
        return ArrayRows(divided(self.X, scale), self.weights)

    def fits_in_memory(self) -> bool:
        """Whether a copy in float32 is no larger than X, or not too large."""
        return bool(self.X.itemsize >= 4 or 4 * self.X.size <= LOADED_BYTES)

    def take(self, index: Index | slice) -> NDArray[Any]:
        return np.asarray(self.X[index])

    def slices(self, size: int) -> list[slice]:
        return slices(len(self.X), size)

    def project(self, basis: NDArray[Any], n_threads: int, most_bytes: int) -> NDArray[Any] | None:
        if len(self.X) * basis.shape[1] * basis.itemsize > most_bytes:
            return None
        return SparseProduct([basis.T]).apply(self.X, n_threads=n_threads)
