"""A function that returns iterators over chunks."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource, check_rows_dtype

ONLY_ONCE = (
    "X is an iterator, which can be read only once, but a fit reads its rows several times; give a function that "
    "returns a new iterator over chunks every time it is called."
)


class IteratorSource(RowSource):
    """Rows that a function gives: each call returns an iterator over all chunks, beginning with the first.

    The first chunk that has rows determines the number of columns and the type.
    """

    n_rows = None

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self.make = make
        self.name = f"what {getattr(make, '__name__', 'the function')} returns"
        first = next((chunk for chunk in self.chunks() if len(chunk)), None)
        if first is None:
            raise ValueError(f"{self.name} has no rows; there must be one at least.")
        self.n_columns, self.dtype = first.shape[1], check_rows_dtype(first.dtype, self.name)

    def chunks(self) -> Iterator[NDArray[Any]]:
        iterator = self.make()
        if not isinstance(iterator, Iterable):
            raise TypeError(f"{self.name} must be an iterator over 2-D arrays, got {type(iterator).__name__}.")
        for i, item in enumerate(iterator):
            chunk = np.array(item)  # a copy: the function may fill the same buffer again while this chunk waits
            if chunk.ndim != 2:
                raise ValueError(f"Chunk {i} of {self.name} has shape {chunk.shape}; every chunk must be a 2-D array.")
            yield np.asarray(chunk, chunk.dtype.newbyteorder("="))
