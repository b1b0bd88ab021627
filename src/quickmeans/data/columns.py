"""A matrix in a file that stores one column after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory import ChunkMemory
from quickmeans.data.reader import RecordReader
from quickmeans.data.records import RecordFile
from quickmeans.data.source import RowSource
from quickmeans.data.transposed import transpose


class ColumnFile(RecordFile):
    """A chunk of rows is read as one range of every column."""

    def _read(self) -> Iterator[NDArray[Any]]:
        assert self.n_rows is not None
        memory = ChunkMemory()
        with RecordReader(self.name, self.offset, self.stored.itemsize) as numbers:
            for begin, end in self._ranges():
                self._check_size()
                starts = range(begin, begin + self.n_rows * self.n_columns, self.n_rows)
                columns = [numbers.read(at, at + end - begin).view(self.stored)[:, 0] for at in starts]
                yield transpose(columns, memory.empty((end - begin, self.n_columns), self.dtype))

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return RowSource.take(self, index)
