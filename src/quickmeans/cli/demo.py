"""``quickmeans demo``: image patches clustered by scikit-learn and by QKMeans from the same start."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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

SIDE, N_CLUSTERS, N_ITERATIONS = 20, 512, 10
NOTES = (
    "(2.0x): twice as fast as scikit-learn. Objective: relative to scikit-learn. Numbers: stored for the centroids.",
    "A sparse product (compression=20) takes longer to fit; it pays if many more rows are assigned.",
)


@click.command(cls=Command, examples=["demo", "demo -o page.html"])
@click.option("-o", "--output", metavar="FILE", default="quickmeans-demo.html", show_default=True, help="The page.")
@click.option("--force", is_flag=True, help="Replace the file even if it is not an earlier page.")
def demo(output: str, force: bool) -> None:
    """See it work: cluster patches of two photographs with scikit-learn and with QKMeans.

    Prints a table of the times, the objectives and the sizes of the models, and writes a report page on one of them.
    Takes about half a minute.
    """
    page = check_output(output, (".html", ".htm"), force=force or is_report(Path(output)))
    warnings.simplefilter("ignore", ConvergenceWarning)  # ten iterations are enough here
    X, terminal = patches((SIDE, SIDE), colour=True), console()
    terminal.print(
        f"{len(X):,} patches of {SIDE} x {SIDE} pixels, {N_CLUSTERS} clusters, {N_ITERATIONS} iterations ..."
    )
    models = candidates(X)
    with terminal.status("") as status:
        lines = measure(models, X, status.update)
        status.update("writing the page ...")
        shape, title = (SIDE, SIDE, 3), "Patches of two photographs"
        write_report(models["with compression=20"], page, X, image_shape=shape, title=title)
    terminal.print(Grid(("model", "fit", "assign", "objective", "numbers"), lines, "All models from the same start"))
    for note in NOTES:
        terminal.print(note)
    terminal.print(f"\nOpen {page.resolve()} in a browser to see the clusters.", soft_wrap=True)


def candidates(X: Any) -> dict[str, Any]:
    """Return the models of the table, all with the same first centroids."""
    same: dict[str, Any] = {"init": X[:: len(X) // N_CLUSTERS][:N_CLUSTERS], "max_iter": N_ITERATIONS}
    same |= {"tol": 0, "random_state": 0}
    return {
        "scikit-learn": KMeans(N_CLUSTERS, n_init=1, **same),
        "QKMeans": QKMeans(N_CLUSTERS, **same),
        "with compression=20": QKMeans(N_CLUSTERS, compression=20, **same),
        "the same, shortlist=0": QKMeans(N_CLUSTERS, compression=20, shortlist=0, **same),
    }


def measure(models: dict[str, Any], X: Any, progress: Callable[[str], None]) -> list[list[str]]:
    """Fit every model and assign the rows with it; return one line per model, relative to the first."""
    lines: list[list[str]] = []
    base: tuple[float, float, float] | None = None
    for name, model in models.items():
        progress(f"{name} ...")
        (_, fit), (_, assign) = timed(partial(model.fit, X), rounds=0), timed(partial(model.predict, X))
        base = base or (fit, assign, model.inertia_)
        times = f"{fit:.2f} s ({base[0] / fit:.1f}x)", f"{1e3 * assign:.0f} ms ({base[1] / assign:.1f}x)"
        numbers = n_numbers(model) if isinstance(model, QKMeans) else model.cluster_centers_.size
        lines.append([name, *times, f"{model.inertia_ / base[2]:.4f}", f"{numbers:,}"])
    return lines
