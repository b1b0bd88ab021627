"""``quickmeans demo``: image patches clustered by scikit-learn and by QKMeans, from the same start."""

import time
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
from quickmeans.report.page import is_report
from quickmeans.report.patches import patches

SIDE, N_CLUSTERS, N_ITERATIONS = 20, 512, 10
NOTES = (
    "In brackets: times faster. Objective: over that of scikit-learn. Numbers: that make up the centroids.",
    "A sparse product (compression=20) takes time to learn and pays when many more rows are to be assigned.",
)


@click.command(cls=Command, examples=["demo", "demo -o /tmp/page.html"])
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="quickmeans-demo.html",
    show_default=True,
    help="The page that is written.",
)
@click.option("--force", is_flag=True, help="Replace the page even if it is no report.")
def demo(output: str, force: bool) -> None:
    """See it work: cluster patches of two photographs, and show the result.

    Prints one line per model: how long it took to fit and to assign, how good and how large it is. Then writes a page
    on one of them. An earlier page is replaced. Takes about half a minute.
    """
    page = check_output(output, (".html", ".htm"), force=force or is_report(Path(output)))
    warnings.simplefilter("ignore", ConvergenceWarning)  # ten iterations are what was asked for
    X, screen = patches(SIDE, colour=True), console()
    screen.print(f"{len(X):,} patches of {SIDE} x {SIDE} pixels, {N_CLUSTERS} clusters, {N_ITERATIONS} iterations ...")
    models = candidates(X)
    with screen.status("") as status:
        lines = compared(models, X, status.update)
        status.update("the page ...")
        shape, title = (SIDE, SIDE, 3), "Patches of two photographs"
        write_report(models["with compression=20"], page, X, image_shape=shape, title=title)
    screen.print(Grid(("model", "fit", "assign", "objective", "numbers"), lines, "The same rows to start from"))
    for note in NOTES:
        screen.print(note)
    screen.print(f"\nOpen {page.resolve()} in a browser to see the clusters.", soft_wrap=True)


def candidates(X: Any) -> dict[str, Any]:
    """What is compared, all from the same rows."""
    same: dict[str, Any] = {"init": X[:: len(X) // N_CLUSTERS][:N_CLUSTERS], "max_iter": N_ITERATIONS}
    same |= {"tol": 0, "random_state": 0}
    return {
        "scikit-learn": KMeans(N_CLUSTERS, n_init=1, **same),
        "QKMeans": QKMeans(N_CLUSTERS, **same),
        "with compression=20": QKMeans(N_CLUSTERS, compression=20, **same),
        "the same, shortlist=0": QKMeans(N_CLUSTERS, compression=20, shortlist=0, **same),
    }


def compared(models: dict[str, Any], X: Any, say: Callable[[str], None]) -> list[list[str]]:
    """Fit every model and let it assign the rows; one line each, against the first."""
    lines: list[list[str]] = []
    base: tuple[float, float, float] | None = None
    for name, model in models.items():
        say(f"{name} ...")
        fit, assign = seconds(partial(model.fit, X), 1), seconds(partial(model.predict, X), 3)
        base = base or (fit, assign, model.inertia_)
        times = f"{fit:.2f} s ({base[0] / fit:.1f}x)", f"{1e3 * assign:.0f} ms ({base[1] / assign:.1f}x)"
        lines.append([name, *times, f"{model.inertia_ / base[2]:.4f}", f"{size(model):,}"])
    return lines


def size(model: Any) -> int:
    """How many numbers the model's centroids take."""
    if getattr(model, "shortlist", None) == 0:
        return int(model.product_.nnz)
    return int(model.cluster_centers_.size)


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The shortest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
