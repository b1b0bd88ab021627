"""A plot of time against objective."""

from pathlib import Path
from typing import Any

from quickmeans.comparison.methods import METHODS
from quickmeans.comparison.runner import Result

# marker and colour of every method, in the order of METHODS; ours are red
_STYLES = (("s", "#4c5b6b"), ("D", "#8a97a3"), ("^", "#3d7ea6"), ("v", "#6aa67a"), ("o", "#c8102e"), ("P", "#e8743b"))


def plot(results: list[Result], path: Path, title: str) -> None:
    """Draw two panels, for the time to fit and the time to assign; lower left is better."""
    from matplotlib.figure import Figure

    styles = dict(zip(METHODS, _STYLES, strict=True))
    measured = [result for result in results if result.error is None]
    base: Any = measured[0].objective
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels: Any = figure.subplots(1, 2, sharey=True)
    for axes, what, label in zip(panels, ("fit_seconds", "assign_seconds"), ("fit", "assign all rows"), strict=True):
        for result in measured:
            at: Any = getattr(result, what), result.objective
            marker, colour = styles[result.method]
            axes.plot(at[0], at[1] / base, marker, color=colour, markersize=9, label=result.method)
        _decorate(axes, f"seconds to {label}")
    panels[0].set_ylabel(f"objective over that of\n{measured[0].method}")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _decorate(axes: Any, label: str) -> None:
    """Make the time axis logarithmic with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(0.2, 0.15)
    axes.set_xlabel(label)
    axes.grid(alpha=0.3)
