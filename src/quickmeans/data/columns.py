"""A matrix in a file, one column after the other."""

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
    """Some rows are some numbers of every column."""

    def chunks(self) -> Iterator[NDArray[Any]]:
        assert self.n_rows is not None
        memory = ChunkMemory()
        with RecordReader(self.name, self.offset, self.stored.itemsize) as numbers:
            for begin in range(0, self.n_rows, self.chunk_rows):
                self._check_size()
                n = min(self.chunk_rows, self.n_rows - begin)
                starts = range(begin, begin + self.n_rows * self.n_columns, self.n_rows)
                columns = [numbers.read(at, at + n).view(self.stored)[:, 0] for at in starts]
                yield transpose(columns, memory.empty((n, self.n_columns), self.dtype))

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        return RowSource.take(self, index)
