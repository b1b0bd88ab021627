"""Sums of rows, and starting points."""

import numpy as np

from quickmeans import _native
from quickmeans.kernels.arrays import (
    FLOAT32,
    INT32,
    INT64,
    Array,
    Floats,
    Ints,
    floats,
    ints,
    packed,
    readable,
    writable,
)
from quickmeans.threads import instruction_set


def group_by_label(labels: Array, n_labels: int) -> tuple[Ints, Ints]:
    """Positions in ascending order of their labels, ties in their order, and where in it each label begins.

    The positions of label k are ``order[starts[k] : starts[k + 1]]``. A label outside [0, n_labels) is a ValueError.
    """
    tight = packed(labels, INT32 if labels.dtype == INT32 else INT64)
    order, starts = np.empty(len(tight), np.int64), np.empty(n_labels + 1, np.int64)
    _native.group_by_label(tight, n_labels, order, starts)
    return order, starts


def add_members(x: Array, members: Ints, starts: Ints, weights: Floats | None, sums: Floats, n_threads: int) -> None:
    """Add to row k of ``sums`` the rows ``members[starts[k] : starts[k + 1]]`` of x times their weights, in float64.

    There is a weight for every member; None stands for ones.
    """
    out = writable(sums, "sums")
    groups = ints(members), ints(starts)
    _native.add_members(readable(x), *groups, floats(weights), out, n_threads, instruction_set())


def moments(x: Array, weights: Floats | None, shift: Floats, sums: Floats, squares: Floats, n_threads: int) -> None:
    """Add the weighted sums of d = x - shift and of d^2 over the rows of x to ``sums`` and ``squares``.

    The rows are divided into as many blocks as both have rows, one block for each. None stands for weights of one.
    """
    out = writable(sums, "sums"), writable(squares, "squares")
    _native.moments(readable(x), floats(weights), floats(shift), *out, n_threads, instruction_set())


def center_rows(x: Array, origin: Floats | None, scale: float, out: Array, n_threads: int) -> None:
    """Write the rows of x about an origin, times the scale, to ``out`` in float32.

    Without an origin the directions of the rows are written; a row of zeros stays zero.
    """
    _native.center_rows(readable(x), floats(origin), scale, writable(out, "out", FLOAT32), n_threads, instruction_set())


def seed(rows: Array, weights: Floats, first: int, uniforms: Floats, n_threads: int) -> Ints:
    """Starting rows by greedy k-means++: a row of ``uniforms``, numbers in [0, 1), has the draws for one center.

    The rows are float32; ``first`` is the first center. There are fewer centers than rows of ``uniforms`` if no more
    rows with weight are away from them.
    """
    chosen = np.empty(len(uniforms), np.int64)
    weighted = packed(rows, FLOAT32), floats(weights)
    n = _native.seed(*weighted, first, floats(uniforms), chosen, n_threads, instruction_set())
    return chosen[:n]
