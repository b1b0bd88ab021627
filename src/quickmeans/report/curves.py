"""The objective during the fit, and the sizes of the clusters."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quickmeans.report.svg import Axes, drawing, number, polyline, short

_MOST_DOTS = 60
_FLAT = 1e-6  # per cent: less is rounding


def objective_curve(history: NDArray[np.float64], n_iter: int) -> tuple[str, str]:
    """Return the objective in per cent above its last value, and a caption."""
    both = len(history) == 2 * n_iter  # a value after every assignment and one after every update
    steps = (np.arange(len(history)) + 1) / (2 if both else 1)
    end = float(history[-1])
    values = 100 * (history / end - 1) if end > 0 else history
    span = float(np.ptp(values))
    limits = (float(values.min()) - 0.02 * span, float(values.max()) + 0.06 * span) if span > _FLAT else (0.0, 1.0)
    axes = Axes((0, float(steps[-1])), limits)
    points = list(zip(axes.x(steps), axes.y(values), strict=True))
    dots = [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, y in points if len(points) <= _MOST_DOTS]
    marks = [
        *axes.marks(
            "iteration" if both else "step",
            "above the last value" if end > 0 else "objective",
            (lambda value: f"{value:.3g} %") if end > 0 else None,
        ),
        polyline(points, "line"),
        *dots,
    ]
    description = f"Objective from {history[0]:.6g} to {end:.6g} in {n_iter} iterations"
    share = 100 * (1 - end / history[0]) if history[0] > 0 else 0.0
    fall = f", {share:.2g} % lower than at first" if share > _FLAT else ""
    note = f"The last value is {number(end)}{fall}." + (
        " Each assignment and each update of the centroids has a dot." if both and dots else ""
    )
    return drawing(marks, description), note


def size_curve(sizes: NDArray[np.int64]) -> tuple[str, str]:
    """Return the sizes of the clusters in descending order, and a caption."""
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
        *axes.marks("clusters, the largest first", "rows"),
        polyline(corners, "area"),
        polyline([(axes.x(0), level), (axes.x(K), level)], "mark"),
    ]
    empty = int((order == 0).sum())
    description = f"Sizes of {K} clusters, from {order[0]:,} down to {order[-1]:,} rows, {short(mean)} on average"
    note = (
        f"The largest cluster has {order[0]:,} rows, the smallest {order[-1]:,}. The median is "
        f"{int(np.median(order)):,}, the mean {mean:,.1f} (dashed)."
        + (f" {empty:,} clusters are empty." if empty else "")
    )
    return drawing(marks, description), note
