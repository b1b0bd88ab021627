"""The nearest rows in lists of rows that are kept elsewhere, and the lists that are nearest to queries."""

from collections.abc import Sequence

import numpy as np

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, INT64, Array, Ints, packed
from quickmeans.threads import instruction_set


class RowLists:
    """Lists of rows in float32, read where they are; native/kernels/scan.hpp says how they are compared.

    Parameters
    ----------
    n_lists, n_columns : int
    similarity : bool
        Whether rows are compared by inner products, and not by squared distances.
    with_codes : bool, default=False
        Whether rows rounded to a byte per number are kept, which exclude most rows from being read; they change no bit
        of a result (native/kernels/codes.hpp). Baseline processors do without.
    """

    __slots__ = ("native",)

    def __init__(self, n_lists: int, n_columns: int, *, similarity: bool, with_codes: bool = False) -> None:
        self.native = _native.RowLists(n_lists, n_columns, similarity, with_codes, instruction_set())

    def set(self, labels: Ints, rows: Ints, ids: Ints, sizes: Ints, n_threads: int = 1) -> None:
        """The lists with these labels have so many rows and ids at these addresses from now on.

        The caller keeps this memory alive and as it is while any search runs.
        """
        labels, rows, ids, sizes = (packed(a, INT64) for a in (labels, rows, ids, sizes))
        self.native.set(labels, rows, ids, sizes, n_threads)

    def search(self, queries: Array, lists: Ints, k: int, n_threads: int) -> tuple[Array, Ints]:
        """The k nearest rows of every query in its lists, nearest first: squared distances or products, and ids.

        A list of -1 is none. Where there are fewer than k rows, the rest of the ids is -1.
        """
        values, ids = np.empty((len(queries), k), FLOAT32), np.empty((len(queries), k), INT64)
        self.native.search(packed(queries, FLOAT32), packed(lists, INT64), values, ids, n_threads)
        return values, ids


class Coarse:
    """The lists whose centers are nearest to queries; native/coarse.hpp says by which steps.

    Parameters
    ----------
    levels : sequence of RowLists
        The first is one list, and each names lists of the next one as ids. Their memory must stay as it is.
    directions : array of shape (r, n_columns), optional
        Queries are compared by their coordinates along these, with a zero after them.
    n_columns : int
        Of queries.
    """

    __slots__ = ("levels", "native")

    def __init__(self, levels: Sequence[RowLists], directions: Array | None, n_columns: int) -> None:
        self.levels = levels  # kept alive, with what they may keep
        directions = None if directions is None else packed(directions, FLOAT32)
        self.native = _native.Coarse([level.native for level in levels], directions, n_columns, instruction_set())

    def find(self, queries: Array, counts: list[int], n_threads: int) -> Ints:
        """The lists nearest to every query, nearest first: as many as the last count; -1 where there are fewer.

        The counts say how many are kept on every level.
        """
        lists = np.empty((len(queries), counts[-1]), INT64)
        self.native.find(packed(queries, FLOAT32), counts, lists, n_threads)
        return lists

    def search(
        self, queries: Array, counts: list[int], rows: RowLists, k: int, limit: float, n_threads: int
    ) -> tuple[Array, Ints, int]:
        """The k nearest rows in the lists that :meth:`find` finds.

        The last result is -1, or a query whose square is not below the limit; then the others mean nothing.
        """
        values, ids = np.empty((len(queries), k), FLOAT32), np.empty((len(queries), k), INT64)
        bad = self.native.search(packed(queries, FLOAT32), counts, rows.native, limit, values, ids, n_threads)
        return values, ids, bad
