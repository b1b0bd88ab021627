"""The objective during the fit, and the sizes of the clusters."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quickmeans.report.svg import Axes, drawing, number, polyline, short

_MOST_DOTS = 60


def objective_curve(history: NDArray[np.float64], n_iter: int) -> tuple[str, str]:
    """How the objective fell, in per cent above its end, and a word on it."""
    both = len(history) == 2 * n_iter  # after every assignment and every update
    steps = (np.arange(len(history)) + 1) / (2 if both else 1)
    end = float(history[-1])
    values = 100 * (history / end - 1) if end > 0 else history
    span = float(np.ptp(values)) or 1.0
    axes = Axes((0, float(steps[-1])), (float(values.min()) - 0.02 * span, float(values.max()) + 0.06 * span))
    points = list(zip(axes.x(steps), axes.y(values), strict=True))
    dots = [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, y in points if len(points) <= _MOST_DOTS]
    marks = [
        *axes.frame(
            "iteration" if both else "step",
            "above the end" if end > 0 else "objective",
            (lambda value: f"{value:.3g} %") if end > 0 else None,
        ),
        polyline(points, "line"),
        *dots,
    ]
    description = f"Objective from {history[0]:.6g} to {end:.6g} in {n_iter} iterations"
    fall = f", {100 * (1 - end / history[0]):.1f} % lower than after the first assignment" if history[0] > 0 else ""
    note = f"It ended at {number(end)}{fall}." + (
        " Dots: after every assignment and every update." if both and dots else ""
    )
    return drawing(marks, description), note


def size_curve(sizes: NDArray[np.int64]) -> tuple[str, str]:
    """Clusters from the largest to the smallest, and a word on them."""
    order = np.sort(sizes)[::-1]
    K, mean = len(order), float(order.mean())
    axes = Axes((0, K), (0, 1.04 * max(1.0, float(order[0]))))
    corners = [(axes.x(0), axes.y(0))]
    edges = np.unique(np.r_[0, np.flatnonzero(np.diff(order)) + 1, K])
    for begin, end in pairwise(edges):
        y = axes.y(float(order[begin]))
        corners += [(axes.x(float(begin)), y), (axes.x(float(end)), y)]
    corners.append((axes.x(K), axes.y(0)))
    level = axes.y(mean)
    marks = [
        *axes.frame("clusters, the largest first", "rows"),
        polyline(corners, "area"),
        polyline([(axes.x(0), level), (axes.x(K), level)], "mark"),
    ]
    empty = int((order == 0).sum())
    description = f"Sizes of {K} clusters, from {order[0]:,} down to {order[-1]:,} rows, {short(mean)} in the mean"
    note = (
        f"The largest has {order[0]:,} rows, the median {int(np.median(order)):,}, the smallest {order[-1]:,}; "
        f"the dashed line is the mean, {mean:,.1f}." + (f" {empty:,} have none." if empty else "")
    )
    return drawing(marks, description), note
