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

    from quickmeans.comparison import Result
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
@option("--max-iter", type=COUNT, default=10, help="Number of iterations of every method.  [default: 10]")
@option("--seed", type=SEED, default=0, help="Seed of the random choice of the first centroids.  [default: 0]")
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
    its own, on all rows in float32, for the same number of iterations, and from the same first centroids (but
    SuperKMeans chooses its own). The objective is computed in the same way for all, with the exact nearest centroids.
    If all methods together take less than a minute, they run twice and the shorter times are shown.
    """
    if output is not None:
        need_matplotlib()
    X = _read(rows, sample, seed)
    if len(X) < n_clusters:
        raise ValueError(f"-k must not exceed the {len(X)} rows of {rows.name}, got {n_clusters}.")
    results = _run(X, n_clusters, max_iter, seed, threads)
    failures = [f"{result.method} failed: {result.error}" for result in results if result.error is not None]
    if results[0].error is not None:
        raise click.ClickException(failures[0])
    if output is not None:
        _draw(results, output, f"{len(X)} x {X.shape[1]}, {n_clusters} clusters, {max_iter} iterations")
    if as_json:
        _print_json(results, X.shape, n_clusters, max_iter)
    else:
        _print(results, failures, 4 * X.size, output)


def _read(rows: "RowSource", sample: int | None, seed: int) -> "NDArray[Any]":
    import numpy as np

    if sample is None:
        return read_all(rows)
    X = rows.sample(sample, np.random.default_rng(seed))
    if not np.isfinite(X).all():
        raise ValueError(f"The sample of {rows.name} contains NaN or infinity; every entry must be finite.")
    return X


def _run(X: "NDArray[Any]", n_clusters: int, max_iter: int, seed: int, threads: int | None) -> "list[Result]":
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


def _draw(results: "list[Result]", output: Path, title: str) -> None:
    from quickmeans.atomic import replacing
    from quickmeans.comparison.plot import plot

    with replacing(output) as temporary:
        plot(results, temporary, title)


def _print_json(results: "list[Result]", shape: tuple[int, ...], n_clusters: int, max_iter: int) -> None:
    from quickmeans.cli.terminal import print_json

    methods = [asdict(result) for result in results]
    task = {"rows": shape[0], "features": shape[1], "clusters": n_clusters, "iterations": max_iter}
    print_json(task | {"methods": methods})


def _print(results: "list[Result]", failures: list[str], data_bytes: int, output: Path | None) -> None:
    from quickmeans.cli.terminal import Grid, console, seconds, size
    from quickmeans.comparison.runner import missing_packages

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
    terminal.print(Grid(["method", "fit", "assign", "objective", "peak memory", "model"], lines))
    terminal.print(
        f"(2.0x): twice as fast as {base.method}. Objective: relative to {base.method}, whose objective is "
        f"{base.objective:.6g}. Peak memory: of the whole process, {size(data_bytes)} of it for the rows."
    )
    terminal.print("With shortlist 0 the centroids are the rows of a sparse product, which has a tenth of the numbers.")
    if missing := missing_packages():
        terminal.print(f"Not installed: {', '.join(missing)}.")
    for line in failures:
        terminal.print(line)
    if output is not None:
        terminal.print(f"The plot is in {output}.", soft_wrap=True)
