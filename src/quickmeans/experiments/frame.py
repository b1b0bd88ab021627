"""What all experiments share: where results go, the cases one by one, paper against ours, figures."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from quickmeans.experiments.data import IMAGES, Split, load, missing
from quickmeans.experiments.results import Results, Row, Spread

SEEDS, QUICK_SEEDS = 5, 2
MANY = {False: (128, 256, 512), True: (32, 64, 128)}  # clusters of a full run and of a quick one
FEW = {False: (10, 16, 30), True: (10, 30)}  # of images


@dataclass(eq=False)
class Run:
    """Where results go, where the data are, and how much is done."""

    directory: Path
    data: Path | None = None
    quick: bool = False
    force: bool = False
    console: Console = field(default_factory=Console)

    @property
    def seeds(self) -> range:
        """One for every repetition."""
        return range(QUICK_SEEDS if self.quick else SEEDS)

    def split(self, name: str) -> Split:
        """A data set; the last one stays in memory."""
        return _loaded(name, self.data, self.quick)

    def images(self) -> list[str]:
        """The image data sets that are there; if none is, scikit-learn's digits."""
        return [name for name in IMAGES if not missing(name, self.data)] or ["digits"]

    def seeded(self, cases: list[Row]) -> list[Row]:
        """Each case with every seed."""
        return [{**case, "seed": seed} for case in cases for seed in self.seeds]

    def blob_cases(self) -> list[Row]:
        """Blobs with every number of clusters and every seed."""
        return self.seeded([{"data": "blobs", "K": K} for K in MANY[self.quick]])

    def image_cases(self) -> list[Row]:
        """Every image data set with every number of clusters and every seed."""
        return self.seeded([{"data": name, "K": K} for name in self.images() for K in FEW[self.quick]])


@lru_cache(maxsize=1)
def _loaded(name: str, folder: Path | None, quick: bool) -> Split:
    return load(name, folder, quick=quick)


class Line(NamedTuple):
    """A number that the paper states, and ours."""

    what: str
    paper: str
    ours: str


def line(what: str, paper: object, ours: Spread | str | float | None) -> list[Line]:
    """One line, or none if ours was not measured."""
    return [] if ours is None else [Line(what, str(paper), f"{ours:.3g}" if isinstance(ours, float) else str(ours))]


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what is measured case by case, what the paper says of it, how it is drawn."""

    title: str
    about: str  # how it was done
    cases: Callable[[Run], list[Row]]
    measure: Callable[..., Iterable[Row]]  # measure(run, **case)
    compare: Callable[[Results], list[Line]]
    draw: Callable[[Run, Results], Any] | None = None  # a matplotlib figure
    differs: str = ""  # where a full run differs from the paper, and why


def results_of(name: str, run: Run) -> Results:
    """What there is so far."""
    return Results(run.directory / f"{name}.csv")


def perform(name: str, experiment: Experiment, run: Run) -> None:
    """Measure the cases that are not there yet, then write the figure and print the comparison."""
    results = results_of(name, run)
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
        save_figure(experiment.draw(run, results), run.directory / name)
    for what, paper, ours in experiment.compare(results):
        run.console.print(f"  {what}: paper {paper} / ours {ours}", soft_wrap=True)


def save_figure(figure: Any, path: Path) -> None:
    """As PNG and SVG."""
    for ending in ("png", "svg"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=110)
