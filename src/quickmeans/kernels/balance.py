"""Sizes of clusters within bounds."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, INT32, Array, Floats, packed
from quickmeans.threads import instruction_set


class CandidateLists:
    """The nearest centers of rows that have a label: among all centers if there are few, else among those near it.

    Parameters
    ----------
    centers : array of shape (n_centers, n_features)
        Compared in float32; rows are given about the same point.
    n_threads : int
    """

    __slots__ = ("_native",)

    def __init__(self, centers: Array, n_threads: int) -> None:
        self._native = _native.CandidateLists(packed(centers, FLOAT32), n_threads, instruction_set())

    def list(self, rows: Array, labels: Array, m: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The m nearest centers of every row and the squared distances, in ascending order.

        A list that has fewer is filled up with -1 and infinity.
        """
        candidates, squares = np.empty((len(rows), m), INT32), np.empty((len(rows), m), FLOAT32)
        self._native.list(packed(rows, FLOAT32), packed(labels, INT32), candidates, squares)
        return candidates, squares


class Balanced(IntEnum):
    """How `balance` ended: done, or some rows need candidates outside, or inside, the clusters that it has reached."""

    ALL = 0
    NEEDS_MORE_OUTSIDE = 1
    NEEDS_MORE_INSIDE = 2


def balance(
    candidates: NDArray[np.int32], squares: NDArray[np.float32], least: int, most: int, prices: Floats
) -> tuple[NDArray[np.int32], Balanced, NDArray[np.bool_]]:
    """Labels among the candidates of rows with the least sum of squares and `least` to `most` rows in every cluster.

    `prices`, one per cluster, are overwritten: what a row's place in each is worth, above zero in those that are full.
    Returns the labels, whether that was possible, and, if not, the clusters that the last search has reached.
    """
    labels, reached = np.empty(len(candidates), INT32), np.zeros(len(prices), np.bool_)
    lists = packed(candidates, INT32), packed(squares, FLOAT32)
    return labels, Balanced(_native.balance(*lists, least, most, prices, labels, reached)), reached
