"""Memory for chunks that is used again."""

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ChunkMemory:
    """Gives arrays, and takes their memory back as soon as nobody looks at them.

    Fresh memory has to be cleared page by page, which takes as long as reading a file that the system has in its cache.
    """

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def empty(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array with anything in it."""
        count = shape[0] * shape[1]
        memory = self._free.pop() if self._free else bytearray()
        if len(memory) < count * dtype.itemsize:
            memory = bytearray(count * dtype.itemsize)
        flat = np.frombuffer(memory, dtype, count)
        weakref.finalize(flat, self._free.append, memory).atexit = False  # every view of it keeps it alive
        return flat.reshape(shape)
