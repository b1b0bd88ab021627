"""Memory for chunks that is used again."""

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ChunkMemory:
    """Makes arrays, and uses the memory of an array again once neither it nor a view of it exists.

    The system clears the pages of new memory, which takes as long as reading a file from the system's cache.
    """

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def empty(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array with arbitrary content."""
        count = shape[0] * shape[1]
        memory = self._free.pop() if self._free else bytearray()
        if len(memory) < count * dtype.itemsize:
            memory = bytearray(count * dtype.itemsize)
        flat = np.frombuffer(memory, dtype, count)
        weakref.finalize(flat, self._free.append, memory).atexit = False  # every view keeps `flat` alive
        return flat.reshape(shape)
