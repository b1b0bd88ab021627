"""Panels, lines and bars of the figures."""

from typing import Any

from quickmeans.experiments.results import Results

_MARKS, _DASHES = "osD^v<>", ("-", "--", "-.", ":")


def panels(rows: int, columns: int, *, title: str, heights: list[float] | None = None) -> tuple[Any, Any]:
    """Return a figure and its axes, row by row, with these heights in inches."""
    from matplotlib.figure import Figure

    heights = heights or [3.6] * rows
    figure = Figure(figsize=(max(6.4, 5.2 * columns), sum(heights)), layout="constrained")
    figure.suptitle(title)
    return figure, figure.subplots(rows, columns, squeeze=False, height_ratios=heights)


def spread_lines(axis: Any, results: Results, x: str, y: str, methods: list[str], **where: Any) -> None:
    """Draw one line per method, with the deviation over the seeds as error bars.

    Lines have different dashes and marks, so that one is seen below another.
    """
    for i, method in enumerate(methods):
        points = [(value, results.spread(y, method=method, **where, **{x: value}))
                  for value in results.values(x, method=method, **where)]  # fmt: skip
        known = [(value, spread) for value, spread in points if spread]
        if known:
            means, deviations = ([getattr(spread, name) for _, spread in known] for name in ("mean", "deviation"))
            style = _MARKS[i % len(_MARKS)] + _DASHES[i % len(_DASHES)]
            axis.errorbar(
                [value for value, _ in known],
                means,
                deviations,
                fmt=style,
                ms=8 - i % 7,
                mfc="none",
                capsize=3,
                label=method,
            )
    axis.set(xlabel=x, ylabel=y)
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
