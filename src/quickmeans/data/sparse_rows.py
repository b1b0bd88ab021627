"""The rows of a sparse matrix, which stay sparse."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.data.memory_rows import MemoryRows
from quickmeans.kernels import CsrRows
from quickmeans.kmeans.assignment import NotComparableError
from quickmeans.kmeans.blocks import block_rows, slices
from quickmeans.kmeans.chunk_pass import ChunkPass
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.iteration import Iteration
from quickmeans.kmeans.memory_pass import MemoryPass
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.rows import Index, Points, RowFunction, Rows, Weights, exact_dtype, refuse_entry
from quickmeans.kmeans.settings import Settings
from quickmeans.kmeans.sparse import SparseIteration, sparse_points
from quickmeans.kmeans.sparse_start import sparse_start
from quickmeans.kmeans.start import start_in_memory

_FEW_ENTRIES = 1 << 18  # so small a matrix, 1 MB in float32, is searched as a dense one


class SparseRows(MemoryRows):
    """The rows of a CSR matrix. They are made dense, by blocks, only for what has no kernel for sparse rows:
    mini-batches, checkpoints, shortlists of given length, and products whose rows are the centroids.
    """

    def __init__(self, X: Any, weights: Weights = None) -> None:
        X = sp.csr_array(X)
        self.csr = _bound(X)
        if not self.csr.distinct:
            X = X.copy()
            X.sum_duplicates()
            self.csr = _bound(X)
        super().__init__(X, weights)

    @property
    def in_memory(self) -> bool:
        """Whether a dense copy costs next to nothing, so that the search may look at all rows."""
        return self.shape[0] * self.shape[1] <= _FEW_ENTRIES

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        for place in slices(self.shape[0], block_rows(self.shape[1])):
            yield place, self.X[place].toarray()

    def take(self, index: Index | slice) -> NDArray[Any]:
        return np.asarray(self.X[index].toarray())

    def scaled(self, scale: NDArray[np.float64]) -> Rows:
        kind = np.float32 if self.dtype == np.float32 else np.float64
        return SparseRows(sp.csr_array(self.X.astype(kind) * (1 / scale).astype(kind)), self.weights)

    def slices(self, size: int) -> list[slice]:
        return slices(self.shape[0], min(size, block_rows(self.shape[1])))

    def points(self, settings: Settings, seeds: Sequence[int]) -> Points:
        try:
            return sparse_points(self, self.csr, self.threads(settings.n_threads), spherical=settings.spherical)
        except NotComparableError:
            self._refuse_not_finite()
            raise ValueError("Squares of the numbers in X overflow float64; scale X.") from None

    def passes(self, points: Points, n_clusters: int, *, stateless: bool) -> Pass:
        if stateless:
            return ChunkPass(points, n_clusters, keep=False)
        return MemoryPass(points, n_clusters, correct=False)

    def start(self, points: Points, context: Context) -> Start:
        if self.in_memory or not context.settings.iterates_plainly:
            return start_in_memory(points, context)
        return sparse_start(points, self.X, self.csr, context)

    def iteration(self, points: Points, settings: Settings, centers: NDArray[np.float64]) -> Iteration | None:
        if self.in_memory or not settings.iterates_plainly:
            return None
        return SparseIteration(points, self.csr, centers)

    def project(self, basis: NDArray[Any], n_threads: int, most_bytes: int) -> NDArray[Any] | None:
        return None

    def each(self, function: RowFunction) -> Iterator[NDArray[Any]]:
        try:
            result = function.of_csr(self.csr)
        except NotComparableError:
            self._refuse_not_finite()
            raise
        return super().each(function) if result is None else iter([result])

    def _refuse_not_finite(self) -> None:
        """Raise a ValueError that names the first NaN or infinity, if there is one."""
        bad = np.flatnonzero(~np.isfinite(self.X.data[: self.X.indptr[-1]]))
        if not len(bad):
            return
        row = int(np.searchsorted(self.X.indptr, bad[0], side="right")) - 1
        here = bad[bad < self.X.indptr[row + 1]]
        first = here[np.argmin(self.X.indices[here])]
        refuse_entry(self.X.data[first], self.locate(row), int(self.X.indices[first]))


def _bound(X: Any) -> CsrRows:
    """The entries as native code reads them; a ValueError if an index is out of range."""
    return CsrRows(X.indptr, X.indices, X.data.astype(exact_dtype(X.dtype), copy=False), X.shape[1])
