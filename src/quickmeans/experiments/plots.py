"""Panels, lines and bars of the figures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.experiments.results import Results

_MARKERS = "osD^vPX*"


def panels(rows: int, columns: int, *, title: str, heights: list[float] | None = None) -> tuple[Any, Any]:
    """Return a figure and its axes, row by row, with these heights in inches."""
    from matplotlib.figure import Figure

    heights = heights or [3.6] * rows
    figure = Figure(figsize=(max(6.4, 5.2 * columns), sum(heights)), layout="constrained")
    figure.suptitle(title)
    return figure, figure.subplots(rows, columns, squeeze=False, height_ratios=heights)


def tiles(rows: NDArray[Any], per_row: int, gap: int = 2) -> NDArray[Any]:
    """Return one image of all rows as square images, with white gaps between them."""
    side = int(rows.shape[1] ** 0.5)
    step, n_lines = side + gap, -(-len(rows) // per_row)
    canvas = np.full((n_lines * step - gap, per_row * step - gap), np.nan)
    for i, row in enumerate(rows):
        y, x = (step * place for place in divmod(i, per_row))
        canvas[y : y + side, x : x + side] = row.reshape(side, side)
    return canvas


def spread_lines(axis: Any, results: Results, x: str, y: str, methods: list[str], **where: Any) -> None:
    """Draw one line per method, with the deviation over the seeds as error bars.

    The values of x are equally far apart, and every method is a little to the right of the one before, so that no line
    hides another.
    """
    places = {value: place for place, value in enumerate(results.values(x, **where)) if not isinstance(value, str)}
    first, shown = min(places.values(), default=0), [m for m in methods if results.select(method=m, **where)]
    for i, method in enumerate(shown):
        spreads = {value: results.spread(y, method=method, **where, **{x: value}) for value in places}
        known = {places[value] - first: spread for value, spread in spreads.items() if spread}
        shift = 0.3 * ((i + 0.5) / len(shown) - 0.5)
        means, deviations = ([getattr(spread, name) for spread in known.values()] for name in ("mean", "deviation"))
        style = {"marker": _MARKERS[i % len(_MARKERS)], "ls": ("-", "--")[i % 2], "ms": 4, "lw": 1.2, "capsize": 2}
        axis.errorbar([place + shift for place in known], means, deviations, label=method, **style)
    axis.set(xlabel=x, ylabel=y, xticks=range(len(places)), xticklabels=list(places))
    axis.grid(alpha=0.3)


def spread_bars(axis: Any, results: Results, y: str, methods: list[str], sizes: list[Any], *, numbers: str) -> None:
    """Draw a group of bars per K with one bar per method; the column `numbers` is written above each bar."""
    width = 0.8 / len(methods)
    for i, method in enumerate(methods):
        for j, K in enumerate(sizes):
            spread = results.spread(y, method=method, K=K)
            if spread is None:
                continue
            place = j + (i - (len(methods) - 1) / 2) * width
            axis.bar(
                place, spread.mean, 0.95 * width, yerr=spread.deviation, color=f"C{i}", label=None if j else method
            )
            count = results.spread(numbers, method=method, K=K)
            if count:
                axis.text(place, spread.mean + spread.deviation, f" {count.mean:.0f}", rotation=90, ha="center",
                          va="bottom", fontsize=7)  # fmt: skip
    axis.set(xticks=range(len(sizes)), xticklabels=[f"K = {K}" for K in sizes], ylabel=y)
    axis.margins(y=0.2)
    axis.legend(fontsize=7)
