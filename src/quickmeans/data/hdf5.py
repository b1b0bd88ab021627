"""HDF5 files, such as those of ann-benchmarks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.errors import naming_errors
from quickmeans.data.npy import choose
from quickmeans.data.source import RowSource, check_rows_dtype

_DEFAULT_KEY = "train"  # the rows to index in the files of ann-benchmarks
_TAKE_BYTES = 256 << 10  # read from the system's cache in the 100 microseconds that a call of h5py takes (measured)


class Hdf5Source(RowSource):
    """A 2-D dataset of a file."""

    def __init__(self, path: str, key: str | None) -> None:
        self.path, self.paths = path, [path]
        with self._open() as file, naming_errors(path, "is damaged, or is cut short"):
            names: list[str] = []
            file.visititems(lambda name, item: names.append(name) if getattr(item, "ndim", 0) == 2 else None)
            self.key = choose(path, names, _DEFAULT_KEY if key is None and _DEFAULT_KEY in names else key)
            dataset = file[self.key]
            self.name = f"{path}: {self.key}"
            self.n_rows, self.n_columns = dataset.shape
            self.dtype = check_rows_dtype(dataset.dtype, self.name)
            self._stored_rows = dataset.chunks[0] if dataset.chunks else 1
        if not self.n_rows or not self.n_columns:
            shape = (self.n_rows, self.n_columns)
            raise ValueError(f"{self.name} has shape {shape}; there must be a row and a column at least.")

    def _open(self) -> Any:
        try:
            import h5py
        except ImportError:
            raise ImportError("HDF5 files need h5py: pip install 'quickmeans[files]'.") from None
        open(self.path, "rb").close()  # the system's errors are clearer than h5py's
        with naming_errors(self.path, "is no HDF5 file, or is cut short"):
            return h5py.File(self.path, "r")

    def chunks(self) -> Iterator[NDArray[Any]]:
        step = self._whole_blocks(self.chunk_rows)
        with self._open() as file:
            dataset = file[self.key]
            for begin in range(0, dataset.shape[0], step):
                yield self._read(dataset, begin, begin + step)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """Reads only the blocks of the file that contain these rows."""
        step = self._whole_blocks(-(-_TAKE_BYTES // (self.n_columns * self.dtype.itemsize)))
        collector = self.collector(index)
        with self._open() as file:
            dataset = file[self.key]
            for begin in (np.unique(index // step) * step).tolist():
                collector.see(begin, self._read(dataset, begin, begin + step))
        return collector.rows()

    def _whole_blocks(self, n_rows: int) -> int:
        """At least so many rows that fill whole blocks of the file, so that no block is decoded twice."""
        return -(-n_rows // self._stored_rows) * self._stored_rows

    def _read(self, dataset: Any, begin: int, end: int) -> NDArray[Any]:
        with naming_errors(self.name, f"cannot be read from row {begin} on"):
            return np.asarray(dataset[begin:end], self.dtype)
