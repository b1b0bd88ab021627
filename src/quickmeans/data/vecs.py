"""The .fvecs, .ivecs and .bvecs files of the TEXMEX sets, in which four bytes before every row give its length."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.records import RecordFile

_TYPES = {".fvecs": "<f4", ".ivecs": "<i4", ".bvecs": "u1"}


class VecsFile(RecordFile):
    """Vectors that all have the length of the first."""

    def __init__(self, path: str) -> None:
        stored = np.dtype(_TYPES[os.path.splitext(path)[1].lower()])
        size = os.stat(path).st_size
        first = np.fromfile(path, "<i4", 1)
        if not len(first) or first[0] < 1:
            raise ValueError(f"{path} is no file of vectors: it must begin with the length of the first one.")
        row_bytes = 4 + int(first[0]) * stored.itemsize
        n_rows, rest = divmod(size, row_bytes)
        if rest:
            raise ValueError(
                f"{path} is cut short, or its rows differ in length: {size} bytes are not a whole number of rows of "
                f"{row_bytes} bytes."
            )
        super().__init__(path, stored, (n_rows, int(first[0])), offset=0, prefix=4)

    def _rows(self, records: NDArray[np.uint8], numbers: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
        lengths = records[:, :4].view("<i4")[:, 0]
        wrong = np.flatnonzero(lengths != self.n_columns)
        if len(wrong):
            raise ValueError(
                f"{self.locate(int(numbers[wrong[0]]))} says that it has {lengths[wrong[0]]} numbers; all must have "
                f"{self.n_columns}, like the first."
            )
        return super()._rows(records, numbers)
