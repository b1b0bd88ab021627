r"""What rows need of a screen with groups: its margin and its reach, chosen so that few rows miss their centroids.

A row with the coordinates a looks into the group of its nearest centroid, whose middle is g, if the reach is at least

.. math:: (\|a - g\|^2 - \min_h \|a - h\|^2) / s,

see ``groups.py``. If it does not, it loses at most what it loses in the nearest group alone, which one search of a
sample tells. Where clusters are far apart such a loss is so large that hardly any row may have it, fewer than one of
the sample: the largest reaches that rows need are taken to have an exponential tail. The error that a margin causes is
measured by searches of the sample.
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

TARGET = 2.5e-4  # of what the error of the objective hardly exceeds, half of what is promised: new rows lose more
MARGINS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.085, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, CERTAIN)
_REACH_SHARE = 0.5  # of the error is left to the reach, the rest to the margin
_LARGE_MARGIN = 0.5  # with which hardly any row misses a centroid in the groups that it looks into
_TAIL, _LEAST_TAIL = 0.02, 32  # the share of the rows, and their number at least, that tell the tail of the reaches


def reaching(
    screen: Screen, rows: NDArray[Any], exact: Assignment, assigned: Callable[[Screen, NDArray[Any]], Assignment]
) -> tuple[Screen, float]:
    """The screen with the least reach and margin that meet the target on these rows, and its cost per row.

    ``assigned`` assigns rows by a screen, and ``exact`` is their exact assignment.
    """
    assert screen.groups is not None
    distances = exact.squared_distances(screen.geometry).astype(np.float64)
    total = max(float(distances.sum()), np.finfo(np.float64).tiny)
    in_nearest = assigned(screen.with_margin(_LARGE_MARGIN).with_groups(replace(screen.groups, reach=0.0)), rows)
    lost = np.maximum(in_nearest.squared_distances(screen.geometry) - distances, 0.0)
    reach = _least_reach(needed_reaches(screen, rows, exact.labels), lost, _REACH_SHARE * TARGET * total)
    screen = screen.with_groups(replace(screen.groups, reach=reach))
    tried: dict[int, tuple[Screen, float]] = {}

    def meets_target(i: int) -> bool:
        other = screen.with_margin(MARGINS[i])
        assignment = assigned(other, rows)
        tried[i] = other, cost_per_row(other, assignment)
        lost = np.maximum(assignment.squared_distances(screen.geometry) - distances, 0.0)
        return likely_sum(lost) <= TARGET * total

    most = len(MARGINS) - 1  # with this margin the nearest centroid is found for certain
    i = bisect_left(range(most), True, key=meets_target)
    if i not in tried:
        meets_target(i)
    return tried[i]


def likely_sum(lost: NDArray[np.float64]) -> float:
    """What the sum hardly exceeds on as many new rows: that of the sample plus two standard errors.

    Few rows miss their centroids, some of them by much.
    """
    return float(lost.sum() + 2 * np.linalg.norm(lost))


def needed_reaches(screen: Screen, rows: NDArray[Any], labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """The least reach with which each row looks into the group of the centroid with its label."""
    assert screen.groups is not None
    of_group, narrow = screen.groups.labels, screen.points[:, : screen.n_narrow]
    sums = np.zeros((screen.groups.count, screen.n_narrow))
    np.add.at(sums, of_group, narrow)
    middles = sums / np.bincount(of_group)[:, None]
    scale = max(float(squared_norms(narrow - middles[of_group]).mean()), np.finfo(np.float64).tiny)
    coordinates = screen.geometry.centered(rows) @ screen.directions[: screen.n_narrow].T
    distances = squared_norms(middles) - 2 * (coordinates @ middles.T)
    own = np.take_along_axis(distances, of_group[labels][:, None].astype(np.int64), axis=1)[:, 0]
    return np.asarray((own - distances.min(axis=1)) / scale)


def _least_reach(needed: NDArray[np.float64], lost: NDArray[np.float64], most: float) -> float:
    """The reach with which rows lose about this sum, if those that need a larger one lose so much each."""
    n, n_tail = len(needed), min(len(needed), max(_LEAST_TAIL, int(_TAIL * len(needed))))
    order = np.argsort(-needed, kind="stable")
    n_lost = most / max(float(lost[order[:n_tail]].mean()), np.finfo(np.float64).tiny)  # may be less than one
    if n_lost >= n_tail:
        return float(max(needed[order[min(int(n_lost), n - 1)]], 0.0))
    tail = np.maximum(needed[order[:n_tail]], 0.0)
    return float(tail[-1] + (tail - tail[-1]).mean() * np.log(n_tail / n_lost))
