"""An experiment: what it measures case by case, what the paper states, how it is drawn."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.text import Text

from quickmeans.experiments.results import Results, Row, Spread
from quickmeans.experiments.run import Run


class Line(NamedTuple):
    """A number in the paper, and ours."""

    what: str
    paper: str
    ours: str


def line(what: str, paper: object, ours: Spread | str | float | None) -> list[Line]:
    """Return one line, or none if ours was not measured."""
    return [] if ours is None else [Line(what, str(paper), f"{ours:.3g}" if isinstance(ours, float) else str(ours))]


@dataclass(frozen=True)
class Experiment:
    """One table or figure."""

    title: str
    about: str  # how it was done
    cases: Callable[[Run], list[Row]]
    measure: Callable[..., Iterable[Row]]  # measure(run, **case)
    compare: Callable[[Results], list[Line]]
    draw: Callable[[Run, Results], Any] | None = None  # returns a matplotlib figure
    differs: str = ""  # where a full run differs from the paper, and why


def perform(name: str, experiment: Experiment, run: Run) -> None:
    """Measure the cases that have not been measured, draw the figure, and print the comparison with the paper."""
    results = run.results(name)
    run.console.print(Text.assemble((name, "bold"), f": {experiment.title}"))
    for case in experiment.cases(run):
        label = ", ".join(f"{key} {value}" for key, value in case.items())
        if results.has(case) and not run.force:
            run.console.print(f"  {label}: already in {results.path}")
            continue
        start = time.perf_counter()
        results.put(case, experiment.measure(run, **case))
        run.console.print(f"  {label}: {time.perf_counter() - start:.1f} s")
    if experiment.draw is not None and results.rows:
        figure = experiment.draw(run, results)
        for ending in ("png", "svg"):
            figure.savefig(run.directory / f"{name}.{ending}", dpi=110)
    for what, paper, ours in experiment.compare(results):
        run.console.print(f"  {what}: paper {paper} / ours {ours}", soft_wrap=True)
