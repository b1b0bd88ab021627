"""The nearest center of every row by way of groups of centers."""

from quickmeans import _native
from quickmeans.kernels.arrays import FLOAT32, FLOAT64, INT32, Array, Floats, Ints, floats, ints, packed, readable
from quickmeans.kernels.screen import Assignment
from quickmeans.threads import instruction_set


class Groups:
    """Centers c_k in groups, bound once for many calls; native/kernels/groups.hpp has the mathematics.

    Parameters
    ----------
    centers : array of shape (K, D)
        Its type, float32 or float64, is that of all arithmetic. It must not be changed afterwards.
    center_offset : array of shape (K,)
        To be added to <x, c_k>, which makes it a score.
    mean : array of shape (D,)
        Norms of rows are taken about it.
    directions : array of shape (r, D)
        Orthonormal rows.
    points : array of shape (K, r + 1)
        The products of each center with the directions, and its distance from their span times a margin: the share up
        to which what lies outside may count. 1 gives bounds that always hold.
    labels : array of shape (K,)
        The group of every center, below `n_groups`.
    n_groups : int
    n_narrow : int
        How many of the first coordinates say how near a group is.
    spherical : bool, default=False
        Whether only directions of rows count.
    """

    __slots__ = ("_native", "dtype")

    def __init__(
        self,
        centers: Array,
        center_offset: Floats,
        mean: Floats,
        directions: Array,
        points: Array,
        labels: Array,
        n_groups: int,
        n_narrow: int,
        *,
        spherical: bool = False,
    ) -> None:
        self.dtype = FLOAT32 if centers.dtype == FLOAT32 else FLOAT64
        bind = _native.Groups32.bind if self.dtype == FLOAT32 else _native.Groups64.bind
        self._native: _native.Groups32 | _native.Groups64 = bind(
            packed(centers, self.dtype),
            floats(center_offset),
            floats(mean),
            packed(directions, self.dtype),
            packed(points, self.dtype),
            packed(labels, INT32),
            n_groups,
            n_narrow,
            spherical,
            instruction_set(),
        )

    def assign(
        self,
        x: Array,
        assignment: Assignment,
        *,
        reach: float,
        index: Ints | None = None,
        known: bool = False,
        n_threads: int = 1,
    ) -> tuple[int, int]:
        """Find the nearest centers of the rows of x, or of those that the index, ascending, names.

        The assignment, of these rows and of the type of the centers, is changed; if it is ``known``, its labels and
        scores are those of some center, and the nearest one is found for certain if the margin of the points is 1. Else
        rows look at groups whose squared distance exceeds that of the nearest one by at most ``reach`` times the
        distance of the best center there, times the root of the mean squared distance of points from the middles of
        their groups. Returns -1 or a bad row as :meth:`quickmeans.kernels.Screen.assign`, and the number of comparisons
        with points.
        """
        return self._native.assign(readable(x), assignment, 0, ints(index), reach, known, n_threads)
