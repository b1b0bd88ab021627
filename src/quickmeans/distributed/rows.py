"""Rows on a Dask cluster, of which only sums and samples come to the client."""

from collections.abc import Iterator, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory_rows import ArrayRows
from quickmeans.data.source import check_rows_dtype
from quickmeans.distributed.passes import DaskPass
from quickmeans.distributed.reduction import Locator, extent, merge_extents, tree
from quickmeans.distributed.start import dask_start
from quickmeans.distributed.tasks import compute
from quickmeans.kmeans.context import Context, Start
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.moments import mean_and_variances
from quickmeans.kmeans.passes import Pass
from quickmeans.kmeans.rows import (
    Batch,
    Index,
    Points,
    RowFunction,
    Rows,
    naming_rows,
    spherical_geometry,
    working_dtype,
)
from quickmeans.kmeans.settings import Settings
from quickmeans.threads import resolve_threads

_CHUNKS_AT_ONCE = 16  # whose results come to the client together
_NO_BATCHES = "batch_size and partial_fit are not for Dask arrays; call partial_fit with one chunk after the other."
_NO_BOUNDS = (
    "min_cluster_size and max_cluster_size are not for Dask arrays, whose labels stay on the workers; give an array or "
    "a file."
)


class DaskRows(Rows):
    """The rows of a Dask array or data frame; weights stay on the cluster too.

    `blocks` brings the rows to the client, which a fit never does.
    """

    weights = None
    name = "the Dask array"

    def __init__(self, X: Any, weights: Any = None) -> None:
        self.columns = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        self.array = _to_array(X)
        self.n_columns = int(self.array.shape[1])
        self._dtype = check_rows_dtype(self.array.dtype, self.name)
        chunks = list(zip(self.array.to_delayed().ravel(), self.array.chunks[0], strict=True))
        self.parts = [part for part, n in chunks if n]
        self.sizes = [int(n) for _, n in chunks if n]
        self.weight_parts = _weight_parts(self.array, weights)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.array.shape[0]), self.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def weighted_parts(self) -> list[tuple[Any, Any]]:
        """The chunks and their weights, as tasks."""
        return list(zip(self.parts, self.weight_parts, strict=True))

    def deviations(self, n_threads: int) -> NDArray[np.float64]:
        raise TypeError("standardize=True is not for Dask arrays; give X / X.std(axis=0).")

    def scaled(self, scale: NDArray[np.float64]) -> Rows:
        return DaskRows(self.array / scale)

    @property
    def in_memory(self) -> bool:
        return False

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        begin = 0
        for part, n in zip(self.parts, self.sizes, strict=True):
            yield slice(begin, begin + n), np.asarray(compute(part))
            begin += n

    def take(self, index: Index) -> NDArray[Any]:
        order = np.argsort(index, kind="stable")
        out = np.empty((len(index), self.n_columns), self.dtype)
        out[order] = compute(self.array[index[order]])
        return out

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return self.take(rng.choice(self.shape[0], min(n, self.shape[0]), replace=False))

    def subset(self, index: Index) -> Rows:
        return ArrayRows(self.take(index))

    def whole(self) -> Any:
        raise TypeError("A callable as init needs rows in memory; for rows that are not, give an array.")

    def threads(self, n_threads: int | None) -> int:
        """One thread per task, unless more are asked for: the scheduler runs several tasks at a time."""
        return 1 if n_threads is None else resolve_threads(n_threads)

    def points(self, settings: Settings, seeds: Sequence[int]) -> Points:
        if settings.batch_size is not None or not len(seeds):
            raise ValueError(_NO_BATCHES)
        if settings.size_bounds is not None:
            raise ValueError(_NO_BOUNDS)
        shift = np.asarray(self.take(np.zeros(1, np.int64))[0], np.float64)
        begins = np.cumsum([0, *self.sizes[:-1]]).tolist()
        locator = Locator(self.array.chunks[0])
        tasks = [
            dask.delayed(extent)(part, weights, shift, begin, locator)
            for (part, weights), begin in zip(self.weighted_parts, begins, strict=True)
        ]
        whole = compute(tree(tasks, dask.delayed(merge_extents)))
        if whole.total <= 0:
            raise ValueError("sample_weight must not be all zero.")
        mean, variances = mean_and_variances(shift, whole.sums, whole.total)
        geometry = Geometry(mean, working_dtype(self.dtype, mean, variances))
        if settings.spherical:
            if whole.shortest <= 0:
                raise ValueError("A row of X is zero and has no direction; spherical k-means cannot place it.")
            geometry = spherical_geometry(self.n_columns, geometry.dtype, whole.shortest)
        return Points(self, geometry, whole.total, variances, self.threads(settings.n_threads))

    def passes(self, points: Points, n_clusters: int, *, stateless: bool) -> Pass:
        return DaskPass(self, points, n_clusters)

    def start(self, points: Points, context: Context) -> Start:
        return dask_start(self.weighted_parts, points, context)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        raise ValueError(_NO_BATCHES)

    def project(self, basis: NDArray[Any], n_threads: int, most_bytes: int) -> NDArray[Any] | None:
        return None

    def each(self, function: RowFunction) -> Iterator[NDArray[Any]]:
        """The results for one chunk after the other; workers compute them, some chunks at a time."""
        mapped = self.map(function, np.float64)
        chunks = [chunk for chunk, n in zip(mapped.to_delayed().ravel(), self.array.chunks[0], strict=True) if n]
        for begin in range(0, len(chunks), _CHUNKS_AT_ONCE):
            yield from compute(chunks[begin : begin + _CHUNKS_AT_ONCE])

    def map(self, function: RowFunction, dtype: Any, width: int | None = None) -> Any:
        locator = Locator(self.array.chunks[0])

        def of_chunk(chunk: Any, block_info: Any = None) -> NDArray[Any]:
            first = int(block_info[0]["array-location"][0][0]) if block_info else 0
            rows = np.asarray(chunk)
            with naming_rows(locator, first, rows):
                return function(first, rows)

        if width is None:
            return self.array.map_blocks(of_chunk, dtype=dtype, drop_axis=1)
        return da.map_blocks(of_chunk, self.array, dtype=dtype, chunks=(self.array.chunks[0], (width,)))

    def locate(self, row: int) -> str:
        return Locator(self.array.chunks[0]).locate(row)


def _to_array(X: Any) -> Any:
    """A 2-D Dask array of known chunks, each with whole rows, in the machine's byte order."""
    array = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    if array.ndim != 2:
        raise ValueError(f"The Dask array has shape {array.shape}; rows must be a 2-D array.")
    if np.isnan(array.shape[0]):
        array = array.compute_chunk_sizes()
    if 0 in array.shape:
        raise ValueError(f"The Dask array has shape {array.shape}; there must be at least one row and one column.")
    if array.dtype == bool:
        array = array.astype(np.uint8)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.rechunk({1: -1})


def _weight_parts(X: Any, weights: Any) -> list[Any]:
    """The weights of every chunk that has rows, as tasks; None for ones."""
    n_parts = sum(n > 0 for n in X.chunks[0])
    if weights is None:
        return [None] * n_parts
    array = weights
    if not hasattr(weights, "__dask_graph__"):
        array = da.from_array(np.ascontiguousarray(weights, np.float64))
    if array.shape != (X.shape[0],):
        raise ValueError(f"sample_weight must have shape ({X.shape[0]},), one weight per row, got {array.shape}.")
    parts = array.astype(np.float64).rechunk((X.chunks[0],)).to_delayed().ravel()
    return [part for part, n in zip(parts, X.chunks[0], strict=True) if n]
