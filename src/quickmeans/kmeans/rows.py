"""Rows that are not all there at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Stream(ABC):
    """Rows that come in chunks, the same ones again in every pass."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers in every chunk."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """All rows in order, some at a time, and which ones they are; none of the blocks is empty."""

    @abstractmethod
    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """The rows with these numbers, in the order of the index."""

    @abstractmethod
    def locate(self, row: int) -> str:
        """What to call a row in an error message."""
