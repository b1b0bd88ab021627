r"""Sums and squares of the columns about a shift, in float64.

Rows are summed in blocks of a fixed length that does not depend on the chunks in which they come, and the blocks one
after the other: any division into chunks, and any number of threads, gives the same bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels

_ROWS = 1024  # of a block: its sums in float64 lose less than 1e-13, and a block is work enough for a thread


class Moments:
    r""":math:`\sum_i w_i (x_i - s)` and :math:`\sum_i w_i (x_i - s)^2` of all rows added so far."""

    def __init__(self, shift: NDArray[np.float64], n_threads: int) -> None:
        self.shift, self.n_threads = shift, n_threads
        self._complete = np.zeros((2, len(shift)))  # of complete blocks
        self._last = np.zeros((2, 1, len(shift)))  # of the last, incomplete block
        self._n_last = 0

    def add(self, rows: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
        """Add rows with their weights; None stands for ones."""
        head = min(len(rows), _ROWS - self._n_last) if self._n_last else 0
        body = head + (len(rows) - head) // _ROWS * _ROWS
        self._fill(rows[:head], _part(weights, 0, head))
        if body > head:
            blocks = np.zeros((2, (body - head) // _ROWS, len(self.shift)))
            self._sum(rows[head:body], _part(weights, head, body), blocks)
            for block in blocks.transpose(1, 0, 2):
                self._complete += block
        self._fill(rows[body:], _part(weights, body, len(rows)))

    def _fill(self, rows: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
        if not len(rows):
            return
        self._sum(rows, weights, self._last)
        self._n_last += len(rows)
        if self._n_last == _ROWS:
            self._complete += self._last[:, 0]
            self._last[:], self._n_last = 0, 0

    def _sum(self, rows: NDArray[Any], weights: NDArray[np.float64] | None, out: NDArray[np.float64]) -> None:
        kernels.moments(rows, weights, self.shift, out[0], out[1], self.n_threads)

    @property
    def sums(self) -> NDArray[np.float64]:
        """Both sums, an array of shape (2, n_columns)."""
        return np.asarray(self._complete + self._last[:, 0])

    def are_finite(self) -> bool:
        """Whether no sum has overflowed and no row held NaN or infinity."""
        sums, squares = self.sums
        return bool(np.isfinite(sums).all() and np.isfinite(squares.sum()))


def mean_and_variances(
    shift: NDArray[np.float64], sums: NDArray[np.float64], total: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of the columns from both sums about a shift and the sum of the weights."""
    offset = sums[0] / total
    return shift + offset, np.maximum(sums[1] / total - offset**2, 0)


def _part(weights: NDArray[np.float64] | None, begin: int, end: int) -> NDArray[np.float64] | None:
    return None if weights is None else weights[begin:end]
