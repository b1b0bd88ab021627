"""Dask arrays and data frames: rows on a cluster, of which only sums and samples come to the client."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import check_rows_dtype
from quickmeans.kmeans.rows import Stream

with suppress(ImportError):  # first imported where `compute` changes a setting, all its settings would go with that one
    import_module("distributed")


def as_rows(X: Any) -> "DaskRows":
    """A Dask array or data frame as rows."""
    return DaskRows(to_array(X), columns=[str(name) for name in X.columns] if hasattr(X, "columns") else None)


def to_array(X: Any) -> Any:
    """A 2-D Dask array of known chunks, each with whole rows."""
    array = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    if array.ndim != 2:
        raise ValueError(f"The Dask array has shape {array.shape}; rows must be a 2-D array.")
    if np.isnan(array.shape[0]):
        array = array.compute_chunk_sizes()
    return array.rechunk({1: -1})


class DaskRows(Stream):
    """Rows of a Dask array. `blocks` brings them to the client; a fit has no need of that."""

    def __init__(self, array: Any, columns: list[str] | None = None) -> None:
        self.array, self.columns, self.name = array, columns, "the Dask array"
        self.n_columns = int(array.shape[1])
        self._dtype = check_rows_dtype(array.dtype, self.name)
        chunks = zip(array.to_delayed().ravel(), array.chunks[0], strict=True)
        self.parts, self.sizes = zip(*((part, int(n)) for part, n in chunks if n), strict=True)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.array.shape[0]), self.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        begin = 0
        for part, n in zip(self.parts, self.sizes, strict=True):
            yield slice(begin, begin + n), np.asarray(compute(part))
            begin += n

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        order = np.argsort(index, kind="stable")
        out = np.empty((len(index), self.n_columns), self.dtype)
        out[order] = compute(self.array[index[order]])
        return out

    def locate(self, row: int) -> str:
        return Locator(self.array.chunks[0]).locate(row)


class Locator:
    """Names rows where the array itself is not."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    def locate(self, row: int) -> str:
        """By its number, and that of its chunk."""
        return f"row {row}, in chunk {int(np.searchsorted(np.cumsum(self.sizes), row, 'right'))} of the Dask array"


def compute(task: Any) -> Any:
    """The result of a task, on the cluster of the active client or, without one, in threads of this process."""
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # a message is what it is
            return dask.compute(task)[0]
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise MemoryError(
                "Workers died over and over on the same chunk of X, most likely for want of memory; give them more, or "
                "make the chunks smaller with X.rechunk."
            ) from error
        raise


def send(message: Any) -> Any:
    """Something that every task needs, as a task of its own: it travels once, and the scheduler keeps it.

    Scattered to the workers it would be lost with them, and one that dies while it is scattered stops everything.
    """
    return dask.delayed(message, name=f"screen-{uuid.uuid4().hex}", traverse=False)


# ---- the use of a fitted model --------------------------------------------------------------------------------------


def lazy_labels(X: Any, screen: Any, n_threads: int) -> Any:
    """The labels of the rows, as a Dask array that is computed when it is asked for."""
    return X.map_blocks(_labels, screen, n_threads, dtype=np.int32, drop_axis=1)


def _labels(rows: NDArray[Any], screen: Any, n_threads: int) -> NDArray[np.int32]:
    from quickmeans.kmeans.screen import Assignment

    found = Assignment.empty(len(rows), screen.dtype)
    screen.assign(np.asarray(rows), found, n_threads, settle_all=False)
    return found.labels


def lazy_distances(X: Any, centers: NDArray[np.float64], frame: Any, dtype: Any) -> Any:
    """The distances of the rows from the centroids, as a Dask array."""
    from quickmeans.kmeans.distances import distances

    return da.map_blocks(
        lambda rows: distances(np.asarray(rows), centers, frame, dtype), X,
        dtype=dtype, chunks=(X.chunks[0], (len(centers),)),
    )  # fmt: skip
