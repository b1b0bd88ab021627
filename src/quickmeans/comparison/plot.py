"""A plot of time against objective."""

from pathlib import Path
from typing import Any

from quickmeans.comparison.methods import METHODS
from quickmeans.comparison.runner import Comparison

# marker and colour of every method, in the order of METHODS; ours are red
_STYLES = (("s", "#4c5b6b"), ("D", "#8a97a3"), ("^", "#3d7ea6"), ("v", "#6aa67a"), ("o", "#c8102e"), ("P", "#e8743b"))
_SAME, _OWN = "full", "none"  # how marks are filled: from the same rows, and after the default call


def plot(comparison: Comparison, path: Path, title: str) -> None:
    """Draw two panels, for the time to fit and the time to assign; lower left is better.

    Objectives are relative to the first method from the same rows. Marks of default calls are hollow.
    """
    from matplotlib.figure import Figure

    styles = dict(zip(METHODS, _STYLES, strict=True))
    parts = ((comparison.methods, _SAME), (comparison.defaults, _OWN))
    measured = [(result, fill) for results, fill in parts for result in results if result.error is None]
    base: Any = comparison.methods[0]
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels: Any = figure.subplots(1, 2, sharey=True)
    for axes, what, label in zip(panels, ("fit_seconds", "assign_seconds"), ("fit", "assign all rows"), strict=True):
        for result, fill in measured:
            at: Any = getattr(result, what), result.objective
            marker, colour = styles[result.method]
            axes.plot(at[0], at[1] / base.objective, marker, color=colour, markersize=9, fillstyle=fill)
        _decorate(axes, f"seconds to {label}")
    panels[0].set_ylabel(f"objective over that of\n{base.method}\nfrom the same rows")
    shown = [(name, *styles[name], _SAME) for name in dict.fromkeys(result.method for result, _ in measured)]
    shown += [("from the same rows", "o", "black", _SAME), ("default call", "o", "black", _OWN)]
    figure.legend(handles=_handles(shown), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _handles(shown: list[tuple[str, str, str, Any]]) -> list[Any]:
    """Return marks for the legend, from names, markers, colours and fills."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], linestyle="", marker=marker, color=colour, fillstyle=fill, markersize=9, label=name)
        for name, marker, colour, fill in shown
    ]


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
