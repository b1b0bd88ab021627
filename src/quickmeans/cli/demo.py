"""``quickmeans demo``: image patches clustered by scikit-learn and by QKMeans from the same start."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from quickmeans import QKMeans
from quickmeans.cli.command import Command
from quickmeans.cli.outputs import check_output
from quickmeans.cli.terminal import Grid, console
from quickmeans.report import write_report
from quickmeans.report.cost import n_numbers
from quickmeans.report.page import is_report
from quickmeans.report.patches import patches
from quickmeans.timing import timed

SIDE, N_CLUSTERS = 20, 256
NOTES = (
    "(2.0x): twice as fast as scikit-learn. Objective: relative to scikit-learn. Numbers: stored for the centroids.",
    "A sparse product (compression=20) takes longer to fit; it pays if many more rows are assigned.",
)


@click.command(cls=Command, examples=["demo", "demo -o page.html"])
@click.option("-o", "--output", metavar="FILE", default="quickmeans-demo.html", show_default=True, help="The page.")
@click.option("--force", is_flag=True, help="Replace the file even if it is not an earlier page.")
def demo(output: str, force: bool) -> None:
    """See it work: cluster patches of two photographs with scikit-learn and with QKMeans.

    Prints a table of the times, the objectives and the sizes of the models, each fitted by one call from its own start
    to its end, says which of scikit-learn and QKMeans is better, and writes a report page on one model.
    """
    page = check_output(output, (".html", ".htm"), force=force or is_report(Path(output)))
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, terminal = patches((SIDE, SIDE), colour=True), console()
    terminal.print(f"{len(X):,} patches of {SIDE} x {SIDE} pixels, {N_CLUSTERS} clusters ...")
    models = candidates()
    with terminal.status("") as status:
        found = measure(models, X, status.update)
        status.update("writing the page ...")
        shape, title = (SIDE, SIDE, 3), "Patches of two photographs"
        write_report(models["with compression=20"], page, X, image_shape=shape, title=title)
    terminal.print(table(found))
    for note in (verdict(found["scikit-learn"], found["QKMeans"]), *NOTES):
        terminal.print(note)
    terminal.print(f"\nOpen {page.resolve()} in a browser to see the clusters.", soft_wrap=True)


def candidates() -> dict[str, Any]:
    """Return the models of the table: default calls, and the paper's model after ten iterations."""
    return {
        "scikit-learn": KMeans(N_CLUSTERS, random_state=0),
        "QKMeans": QKMeans(N_CLUSTERS, random_state=0),
        "with compression=20": QKMeans(N_CLUSTERS, compression=20, random_state=0),
        "the same, shortlist=0": QKMeans(N_CLUSTERS, compression=20, shortlist=0, max_iter=10, random_state=0),
    }


class Measured(NamedTuple):
    """Seconds of a fit and of an assignment of all rows, the objective, and the numbers of the model."""

    fit: float
    assign: float
    inertia: float
    numbers: int


def measure(models: dict[str, Any], X: Any, progress: Callable[[str], None]) -> dict[str, Measured]:
    """Fit every model and assign the rows with it."""
    found = {}
    for name, model in models.items():
        progress(f"{name} ...")
        (_, fit), (_, assign) = timed(partial(model.fit, X), rounds=0), timed(partial(model.predict, X))
        numbers = n_numbers(model) if isinstance(model, QKMeans) else model.cluster_centers_.size
        found[name] = Measured(fit, assign, model.inertia_, numbers)
    return found


def table(found: dict[str, Measured]) -> Grid:
    """Return one line per model, relative to the first."""
    base = next(iter(found.values()))
    lines = [
        [
            name,
            f"{own.fit:.2f} s ({base.fit / own.fit:.1f}x)",
            f"{1e3 * own.assign:.0f} ms ({base.assign / own.assign:.1f}x)",
            f"{own.inertia / base.inertia:.4f}",
            f"{own.numbers:,}",
        ]
        for name, own in found.items()
    ]
    return Grid(("model", "fit", "assign", "objective", "numbers"), lines, "One call of each, start included")


def verdict(peer: Measured, own: Measured) -> str:
    """Return a sentence on time and objective of the default calls."""
    faster = peer.fit / own.fit
    time = f"{faster:.1f} times as fast as" if faster > 1 else f"slower ({1 / faster:.1f} times the time) than"
    change = 100 * (own.inertia / peer.inertia - 1)
    objective = f"{abs(change):.1f} % {'lower (better)' if change < 0 else 'higher (worse)'}"
    return f"The default call of QKMeans is {time} that of scikit-learn, and its objective {objective}."
