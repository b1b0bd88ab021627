"""HDF5 files; of those of ann-benchmarks, the rows to be indexed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.npy import choose
from quickmeans.data.source import RowSource, check_rows_dtype

_USUAL = "train"  # of ann-benchmarks


class Hdf5Source(RowSource):
    """A 2-D dataset of a file."""

    def __init__(self, path: str, key: str | None) -> None:
        self.path, self.paths = path, [path]
        with self._open() as file:
            names: list[str] = []
            file.visititems(lambda name, item: names.append(name) if getattr(item, "ndim", 0) == 2 else None)
            self.key = choose(path, names, _USUAL if key is None and _USUAL in names else key)
            dataset = file[self.key]
            self.name = f"{path}: {self.key}"
            self.n_rows, self.n_columns = dataset.shape
            self.dtype = check_rows_dtype(dataset.dtype, self.name)
            self._step = dataset.chunks[0] if dataset.chunks else 1
        if not self.n_rows or not self.n_columns:
            raise ValueError(f"{self.name} has shape {dataset.shape}; there must be a row and a column at least.")

    def _open(self) -> Any:
        try:
            import h5py
        except ImportError:
            raise ImportError("HDF5 files need h5py: pip install 'quickmeans[files]'.") from None
        open(self.path, "rb").close()  # the errors of the system are clearer than h5py's
        try:
            return h5py.File(self.path, "r")
        except OSError as error:
            raise ValueError(f"{self.path} is no HDF5 file, or is cut short: {error}.") from None

    def chunks(self) -> Iterator[NDArray[Any]]:
        step = -(-self.chunk_rows // self._step) * self._step  # whole chunks of the file: each is decoded once
        with self._open() as file:
            dataset = file[self.key]
            for begin in range(0, dataset.shape[0], step):
                try:
                    yield np.asarray(dataset[begin : begin + step], self.dtype)
                except OSError as error:
                    raise ValueError(f"{self.name} is damaged in the rows from {begin} on: {error}.") from None
