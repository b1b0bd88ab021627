r"""Sums and squares of the columns, about a shift, in float64.

Rows are summed in blocks of a fixed length that do not depend on the chunks in which they come, and the blocks one
after the other: any division into chunks, and any number of threads, gives the same bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels

_ROWS = 1024  # of a block


class Moments:
    r""":math:`\sum_i w_i (x_i - s)` and :math:`\sum_i w_i (x_i - s)^2` of all rows so far."""

    def __init__(self, shift: NDArray[np.float64], n_threads: int) -> None:
        self.shift, self.n_threads = shift, n_threads
        self._done = np.zeros((2, len(shift)))  # of complete blocks
        self._open = np.zeros((2, 1, len(shift)))  # of the last one
        self._n_open = 0

    def add(self, rows: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
        """Count some more rows."""
        head = min(len(rows), _ROWS - self._n_open) if self._n_open else 0
        body = head + (len(rows) - head) // _ROWS * _ROWS
        self._fill(rows[:head], _some(weights, 0, head))
        if body > head:
            blocks = np.zeros((2, (body - head) // _ROWS, len(self.shift)))
            self._sum(rows[head:body], _some(weights, head, body), blocks)
            for block in blocks.transpose(1, 0, 2):
                self._done += block
        self._fill(rows[body:], _some(weights, body, len(rows)))

    def _fill(self, rows: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
        if not len(rows):
            return
        self._sum(rows, weights, self._open)
        self._n_open += len(rows)
        if self._n_open == _ROWS:
            self._done += self._open[:, 0]
            self._open[:], self._n_open = 0, 0

    def _sum(self, rows: NDArray[Any], weights: NDArray[np.float64] | None, out: NDArray[np.float64]) -> None:
        kernels.moments(rows, weights, self.shift, out[0], out[1], self.n_threads)

    @property
    def sums(self) -> NDArray[np.float64]:
        """Both sums."""
        return np.asarray(self._done + self._open[:, 0])

    def are_finite(self) -> bool:
        """Whether nothing has overflown, and nothing was NaN or infinite."""
        sums, squares = self.sums
        return bool(np.isfinite(sums).all() and np.isfinite(squares.sum()))

    def over(self, total: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of the columns, if this is the sum of the weights."""
        sums, squares = self.sums
        offset = sums / total
        return self.shift + offset, np.maximum(squares / total - offset**2, 0)


def _some(weights: NDArray[np.float64] | None, begin: int, end: int) -> NDArray[np.float64] | None:
    return None if weights is None else weights[begin:end]
