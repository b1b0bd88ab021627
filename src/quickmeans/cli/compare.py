"""``quickmeans compare``: k-means libraries side by side on the user's own rows."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import SECTION, data_argument, read_all
from quickmeans.cli.outputs import json_option, need_matplotlib, output_option
from quickmeans.cli.values import COUNT, SEED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quickmeans.comparison import Comparison, Result
    from quickmeans.data import RowSource


@click.command(
    cls=Command,
    examples=[
        "compare rows.npy -k 256",
        "compare rows.npy -k 256 -o comparison.png",
        "compare large.parquet -k 1000 --sample 100000 --json",
    ],
)
@data_argument
@option("--sample", section=SECTION, type=COUNT, help="Use so many rows, drawn at random.  [default: all]")
@option("-k", "--clusters", "n_clusters", type=COUNT, required=True, help="Number of clusters.")
@option("--max-iter", type=COUNT, default=10, help="Number of passes from the same rows.  [default: 10]")
@option("--seed", type=SEED, default=0, help="Seed of the first centroids and of every method.  [default: 0]")
@option("--threads", type=COUNT, help="Number of threads of every method.  [default: all]")
@output_option("A plot of time against objective", (".png", ".svg"))
@json_option
def compare(
    rows: "RowSource",
    n_clusters: int,
    sample: int | None,
    max_iter: int,
    seed: int,
    threads: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare QKMeans with the other k-means libraries that are installed, on the rows of DATA.

    The others are scikit-learn's KMeans and MiniBatchKMeans, faiss and SuperKMeans. Each method runs in a process of
    its own, in float32: first from the same rows as centroids (but SuperKMeans chooses its own), for the same number
    of passes over all rows; then by its own default call, which gets the number of clusters and the seed only. The
    objective is computed in the same way for all, over all rows and with the exact nearest centroids. If one of the two
    parts takes less than a minute, it runs twice and the shorter times are shown.
    """
    if output is not None:
        need_matplotlib()
    X = _read(rows, sample, seed)
    if len(X) < n_clusters:
        raise ValueError(f"-k must not exceed the {len(X)} rows of {rows.name}, got {n_clusters}.")
    results = _run(X, n_clusters, max_iter, seed, threads)
    for base in (results.methods[0], results.defaults[0]):
        if base.error is not None:
            raise click.ClickException(f"{base.method} failed: {base.error}")
    if output is not None:
        title = f"{len(X)} x {X.shape[1]}, {n_clusters} clusters; from the same rows: {max_iter} passes"
        _draw(results, output, title)
    if as_json:
        task = {"rows": len(X), "features": X.shape[1], "clusters": n_clusters, "iterations": max_iter}
        _print_json(task, results)
    else:
        _print(results, max_iter, 4 * X.size, output)


def _read(rows: "RowSource", sample: int | None, seed: int) -> "NDArray[Any]":
    import numpy as np

    if sample is None:
        return read_all(rows)
    X = rows.sample(sample, np.random.default_rng(seed))
    if not np.isfinite(X).all():
        raise ValueError(f"The sample of {rows.name} contains NaN or infinity; every entry must be finite.")
    return X


def _run(X: "NDArray[Any]", n_clusters: int, max_iter: int, seed: int, threads: int | None) -> "Comparison":
    from quickmeans.cli.terminal import console
    from quickmeans.comparison import compare

    terminal = console(stderr=True)
    with terminal.status("") as status:

        def progress(name: str) -> None:
            if terminal.is_terminal:
                status.update(f"{name} ...")
            else:
                click.echo(f"{name} ...", err=True)

        return compare(X, n_clusters, n_iter=max_iter, seed=seed, n_threads=threads, progress=progress)


def _draw(results: "Comparison", output: Path, title: str) -> None:
    from quickmeans.atomic import replacing
    from quickmeans.comparison.plot import plot

    with replacing(output) as temporary:
        plot(results, temporary, title)


def _print_json(task: dict[str, int], results: "Comparison") -> None:
    from quickmeans.cli.terminal import print_json

    print_json(task | asdict(results))


def _print(results: "Comparison", max_iter: int, data_bytes: int, output: Path | None) -> None:
    from quickmeans.cli.terminal import console, size
    from quickmeans.comparison.runner import missing_packages

    same: Any = results.methods[0]
    own: Any = results.defaults[0]
    _print_table(f"From the same rows, {max_iter} passes", results.methods)
    _print_table("Its own default call, start included", results.defaults)
    terminal = console()
    terminal.print(
        f"(2.0x): twice as fast as {same.method} of the same table. Objective: relative to {same.method} of the same "
        f"table, whose objective is {same.objective:.6g} from the same rows and {own.objective:.6g} after its default "
        f"call. Peak memory: of the whole process, {size(data_bytes)} of it for the rows."
    )
    terminal.print("SuperKMeans always chooses its own start.")
    terminal.print("With shortlist 0 the centroids are the rows of a sparse product, which has a tenth of the numbers.")
    if missing := missing_packages():
        terminal.print(f"Not installed: {', '.join(missing)}.")
    if output is not None:
        terminal.print(f"The plot is in {output}.", soft_wrap=True)


def _print_table(caption: str, results: "list[Result]") -> None:
    """Print the results of one part, relative to those of the first method; then the methods that failed."""
    from quickmeans.cli.terminal import Grid, console, seconds, size

    base: Any = results[0]
    lines = []
    for result in results:
        if result.error is None:
            r: Any = result
            lines.append((
                r.method,
                f"{seconds(r.fit_seconds)} ({base.fit_seconds / r.fit_seconds:.1f}x)",
                f"{seconds(r.assign_seconds)} ({base.assign_seconds / r.assign_seconds:.1f}x)",
                f"{r.objective / base.objective:.4f}",
                size(r.peak_bytes),
                size(r.model_bytes),
            ))  # fmt: skip
    terminal = console()
    terminal.print(caption, style="bold")
    terminal.print(Grid(["method", "fit", "assign", "objective", "peak memory", "model"], lines))
    for result in results:
        if result.error is not None:
            terminal.print(f"{result.method} failed: {result.error}")
