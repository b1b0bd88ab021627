"""``quickmeans compare``: k-means libraries side by side on the user's own rows."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import data_argument, whole
from quickmeans.cli.numbers import COUNT, SEED
from quickmeans.cli.outputs import json_option, need_matplotlib, output_option

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
@option("--sample", type=COUNT, help="Take so many rows, drawn at random.  [all]")
@option("-k", "--clusters", "n_clusters", type=COUNT, required=True, help="How many clusters.")
@option("--max-iter", type=COUNT, default=10, help="Iterations of every method.  [10]")
@option("--seed", type=SEED, default=0, help="Draws the rows to start from.  [0]")
@option("--threads", type=COUNT, help="Threads of every method.  [all]")
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
    """Measure QKMeans beside the k-means libraries that are installed here, on the rows of DATA.

    scikit-learn's KMeans and MiniBatchKMeans, faiss and SuperKMeans take part if they are there, each in a process of
    its own, with all rows in float32, from the same rows to start with (SuperKMeans chooses its own) and for as many
    iterations. Objectives are computed alike for all, to the exact nearest centroid. Unless that takes a minute all
    run twice, and the shorter times count.
    """
    if output is not None:
        need_matplotlib()
    X = _rows(rows, sample, seed)
    if len(X) < n_clusters:
        raise ValueError(f"{rows.name} gives {len(X)} rows; -k must not be larger, got {n_clusters}.")
    results = _measured(X, n_clusters, max_iter, seed, threads)
    failed = [f"{result.method} failed: {result.error}" for result in results if result.error is not None]
    if results[0].error is not None:
        raise click.ClickException(failed[0])
    if output is not None:
        _draw(results, output, f"{len(X)} x {X.shape[1]}, {n_clusters} clusters, {max_iter} iterations")
    if as_json:
        _print_json(results, X.shape, n_clusters, max_iter)
    else:
        _print(results, failed, 4 * X.size, output)


def _rows(rows: "RowSource", sample: int | None, seed: int) -> "NDArray[Any]":
    import numpy as np

    from quickmeans.kmeans.rows import refuse_not_finite as refuse_bad_rows

    X = whole(rows) if sample is None else rows.sample(sample, np.random.default_rng(seed))
    refuse_bad_rows(X, 0, X)
    return X


def _measured(X: "NDArray[Any]", n_clusters: int, max_iter: int, seed: int, threads: int | None) -> "list[Result]":
    from quickmeans.cli.terminal import console
    from quickmeans.comparison import compare

    screen = console(stderr=True)
    with screen.status("") as status:

        def tell(name: str) -> None:
            if screen.is_terminal:
                status.update(f"{name} ...")
            else:
                click.echo(f"{name} ...", err=True)

        return compare(X, n_clusters, n_iter=max_iter, seed=seed, n_threads=threads, tell=tell)


def _draw(results: "list[Result]", output: Path, title: str) -> None:
    from quickmeans.atomic import replacing
    from quickmeans.comparison.plot import plot

    with replacing(output) as temporary:
        plot(results, temporary, title)


def _print_json(results: "list[Result]", shape: tuple[int, ...], n_clusters: int, max_iter: int) -> None:
    from quickmeans.cli.terminal import print_json

    methods = [asdict(result) for result in results]
    given = {"rows": shape[0], "features": shape[1], "clusters": n_clusters, "iterations": max_iter}
    print_json(given | {"methods": methods})


def _print(results: "list[Result]", failed: list[str], data_bytes: int, output: Path | None) -> None:
    from quickmeans.cli.terminal import Grid, console, seconds, size
    from quickmeans.comparison.contest import absent

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
    screen = console()
    screen.print(Grid(["method", "fit", "assign", "objective", "peak memory", "model"], lines))
    screen.print(
        f"In brackets: times faster than {base.method}. Objective: over its, {base.objective:.6g}. Memory: of the "
        f"whole process, {size(data_bytes)} of it the rows."
    )
    screen.print("With shortlist 0 the centroids are the rows of a product of sparse matrices, a tenth of the numbers.")
    if missing := absent():
        screen.print(f"Not installed: {', '.join(missing)}.")
    for line in failed:
        screen.print(line)
    if output is not None:
        screen.print(f"The plot is in {output}.", soft_wrap=True)
