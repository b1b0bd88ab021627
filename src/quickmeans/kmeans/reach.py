r"""What rows need of a screen with groups: its reach and its margin, chosen so that few rows miss their centroids.

A row with the coordinates a, whose best centroid in its nearest group is at the distance d, looks into the group of its
nearest centroid, whose middle is g, if the reach is at least

.. math:: (\|a - g\|^2 - \min_h \|a - h\|^2) / (d \sqrt s),

see ``groups.py``. With better centroids that it finds near by, d shrinks and the row needs a somewhat larger reach. So
this is where to begin: searches of a sample tell what rows lose, and the reach grows until they lose little. Where
clusters are far apart such a loss is so large that hardly any row may have it, fewer than one of the sample: the
largest reaches that rows need are taken to have an exponential tail. The margin is the least with which rows lose no
more than the target, those included that the reach does not suffice for.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.cost import cost_per_row
from quickmeans.kmeans.geometry import squared_norms
from quickmeans.kmeans.screen import CERTAIN, Screen

Assign = Callable[[Screen, NDArray[Any]], Assignment]  # assigns rows by a screen

TARGET = 3.5e-4  # of what the error of the objective hardly exceeds; 5e-4 are promised, and new rows lose more
MARGINS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.085, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, CERTAIN)
_REACH_SHARE = 0.75  # of the error is left to the reach, which costs more than the margin
_LARGE_MARGINS = 0.2, 0.5  # with the one or the other hardly any row misses a centroid in the groups it looks into
_STEP = 0.05  # a reach with which the sample loses more is made larger by this share at least, then by twice that, ...
_EVERYWHERE = 1e9  # a reach within which all groups are
_ENOUGH = 4.0  # times the largest reach that a row needs: then all look into the groups of their centroids
_ROUNDINGS = 4.0  # of the squared norm of a row: that a score may be wrong by
_TAIL, _LEAST_TAIL = 0.02, 32  # the share of the rows, and their number at least, that tell the tail of the reaches


def with_reach(screen: Screen, rows: NDArray[Any], exact: Assignment, assigned: Assign) -> Screen:
    """The screen with the least reach that meets its share of the target on these rows; `exact` is the assignment
    without a screen. Its margin is so large that hardly any row misses a centroid in the groups that it looks into.
    """
    assert screen.groups is not None
    groups, distances = screen.groups, _squares(exact, screen)
    target, rounding = TARGET * float(distances.sum()), _rounding(exact, screen)
    most = max(_REACH_SHARE * target, rounding)

    def squares_with(reach: float) -> NDArray[np.float64]:
        return _squares(assigned(screen.with_groups(replace(groups, reach=reach)), rows), screen)

    def lost_with(reach: float) -> float:
        lost = np.maximum(squares_with(reach) - distances, 0.0)
        return max(float(lost.sum()), float(np.finfo(np.float64).tiny))

    screen = screen.with_margin(_LARGE_MARGINS[0])
    if lost_with(_EVERYWHERE) > max((1 - _REACH_SHARE) * target, rounding):
        screen = screen.with_margin(_LARGE_MARGINS[1])

    needed = needed_reaches(screen, rows, exact.labels, squares_with(0.0))
    tail = _tail(needed)
    reach = _least_reach(needed, tail, lost_with(tail[0]) / len(tail), most)
    step = _STEP * max(reach, float(tail[0]), _STEP)
    while (lost := lost_with(reach)) > most and reach < _ENOUGH * needed.max():
        reach += max(float((tail - tail[0]).mean()) * np.log(lost / most), step)
        step *= 2
    return screen.with_groups(replace(groups, reach=reach))


def with_least_margin(screen: Screen, rows: NDArray[Any], exact: Assignment, assigned: Assign) -> tuple[Screen, float]:
    """The screen with the least margin, at most its own, that meets the target on these rows, and its cost per row."""
    distances = _squares(exact, screen)
    most = max(TARGET * float(distances.sum()), _rounding(exact, screen))
    tried: dict[int, tuple[Screen, float]] = {}

    def meets_target(i: int) -> bool:
        other = screen.with_margin(MARGINS[i])
        assignment = assigned(other, rows)
        tried[i] = other, cost_per_row(other, assignment)
        return likely_sum(np.maximum(_squares(assignment, screen) - distances, 0.0)) <= most

    largest = MARGINS.index(screen.margin)
    i = bisect_left(range(largest), True, key=meets_target)
    if i not in tried:
        meets_target(i)
    return tried[i]


def _squares(assignment: Assignment, screen: Screen) -> NDArray[np.float64]:
    return assignment.squared_distances(screen.geometry).astype(np.float64)


def _rounding(assignment: Assignment, screen: Screen) -> float:
    """What sums of squared distances from scores may differ by although the centroids are the same."""
    norms = assignment.norms
    size = float(len(norms)) if screen.geometry.spherical else float(norms.sum(dtype=np.float64))
    return max(_ROUNDINGS * float(np.finfo(screen.dtype).eps) * size, np.finfo(np.float64).tiny)


def likely_sum(lost: NDArray[np.float64]) -> float:
    """What the sum seldom exceeds on as many new rows: that of the sample plus its standard error.

    Few rows miss their centroids, some of them by much.
    """
    return float(lost.sum() + np.linalg.norm(lost))


def needed_reaches(
    screen: Screen, rows: NDArray[Any], labels: NDArray[np.int32], in_nearest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The least reach with which each row looks into the group of the centroid with its label.

    `in_nearest` are the squared distances from the best centroids of the nearest groups. A row at a distance of zero
    needs no reach.
    """
    assert screen.groups is not None
    of_group, narrow = screen.groups.labels, screen.points[:, : screen.n_narrow]
    sums = np.zeros((screen.groups.count, screen.n_narrow))
    np.add.at(sums, of_group, narrow)
    middles = sums / np.bincount(of_group)[:, None]
    scale = float(squared_norms(narrow - middles[of_group]).mean())
    coordinates = screen.geometry.centered(rows) @ screen.directions[: screen.n_narrow].T
    distances = squared_norms(middles) - 2 * (coordinates @ middles.T)
    own = np.take_along_axis(distances, of_group[labels][:, None].astype(np.int64), axis=1)[:, 0]
    unit = np.sqrt(scale * in_nearest)
    return np.asarray(np.divide(own - distances.min(axis=1), unit, out=np.zeros(len(rows)), where=unit > 0))


def _tail(needed: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest of the reaches that rows need, in ascending order."""
    return np.maximum(np.sort(needed)[-max(_LEAST_TAIL, int(_TAIL * len(needed))) :], 0.0)


def _least_reach(needed: NDArray[np.float64], tail: NDArray[np.float64], lost: float, most: float) -> float:
    """The reach with which rows seldom lose more than `most` in all, if one that needs a larger reach loses `lost`."""
    n_lost = ((np.sqrt(1 + 4 * most / lost) - 1) / 2) ** 2  # n + sqrt(n), with a standard error, lose the most
    if n_lost >= len(tail):
        return float(max(np.sort(needed)[-min(int(n_lost) + 1, len(needed))], 0.0))
    return float(tail[0] + (tail - tail[0]).mean() * np.log(len(tail) / n_lost))
