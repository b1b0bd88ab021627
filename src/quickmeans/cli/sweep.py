"""``quickmeans sweep``: which number of clusters."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import check_enough_rows, data_argument, read_if_small
from quickmeans.cli.outputs import json_option, need_matplotlib, output_option
from quickmeans.cli.values import COUNT, SEED, Name

if TYPE_CHECKING:
    from quickmeans.data import RowSource


@click.command(
    cls=Command,
    examples=[
        "sweep rows.npy -k 10,20,40,80",
        "sweep rows.npy -k 10,20,40,80 --seed 0 -o sweep.png",
        "sweep table.parquet --columns x,y,z -k 2,4,8,16 --json",
    ],
)
@data_argument
@option("-k", "--clusters", "ks", metavar="N,N,...", required=True, help="Numbers of clusters to try.")
@option(
    "--metric",
    type=Name("quickmeans.kmeans.settings", "METRICS"),
    default="euclidean",
    help="cosine compares directions (spherical k-means).  [default: euclidean]",
)
@option("--standardize", is_flag=True, help="Divide every column by its standard deviation.")
@option("--seed", "random_state", type=SEED, help="Seed of the random numbers, for repeatable results.")
@option("--threads", "n_threads", type=COUNT, help="Threads; the result does not depend on it.  [default: all]")
@output_option("A plot of inertia and indices", (".png", ".svg"))
@json_option
def sweep(rows: "RowSource", ks: str, output: Path | None, as_json: bool, **parameters: Any) -> None:
    """Cluster the rows of DATA with several numbers of clusters, and suggest one.

    Each fit begins with the clusters of the one before it. Inertia falls with every cluster; the silhouette and the
    Calinski-Harabasz index are large, and the Davies-Bouldin index is small, where clusters are separate.
    """
    from quickmeans import sweep as sweep_rows

    if output is not None:
        need_matplotlib()
    numbers = _numbers(ks)
    check_enough_rows(rows, max(numbers))
    X = read_if_small(rows)
    if X is not None:
        check_enough_rows(rows, max(numbers), len(X))
    result = sweep_rows(rows if X is None else X, numbers, **parameters)
    if output is not None:
        result.plot(output)
    if as_json:
        found = {"fits": result.records(), "suggestion": result.suggestion, "reason": result.reason}
        click.echo(json.dumps(_without_nan(found)))
        return
    click.echo(str(result))
    if output is not None:
        click.echo(f"written to  {output}")


def _numbers(ks: str) -> list[int]:
    """Return the numbers of a list such as 10,20,40."""
    try:
        numbers = [COUNT.parse("-k", part.strip()) for part in ks.split(",")]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if len(set(numbers)) < len(numbers):
        raise click.UsageError(f"-k must be different numbers, got {ks}.")
    return numbers


def _without_nan(value: Any) -> Any:
    """Return the value with None for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and value != value else value
