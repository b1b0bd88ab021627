"""``quickmeans report``: a page that shows a model."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import data_argument, load_model
from quickmeans.cli.outputs import output_option

if TYPE_CHECKING:
    from quickmeans.data import RowSource


def _shape(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Height and width, perhaps and colours."""
    if value is None:
        return None
    parts = value.split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{value!r} should be a height and a width like 28x28, or 32x32x3 for colours.")
    return tuple(map(int, parts))


@click.command(
    cls=Command,
    examples=[
        "report model.safetensors -o report.html",
        "report model.safetensors rows.npy -o report.html",
        "report model.safetensors photos.npy -o report.html --image-shape 32x32x3",
    ],
)
@click.argument("model", type=click.Path())
@partial(data_argument, required=False)
@output_option("The page", (".html", ".htm"), required=True)
@option(
    "--image-shape",
    metavar="HxW",
    callback=_shape,
    help="Rows are images of this shape; by default square ones if they can be.",
)
@option("--title", help="What to write at the top.")
def report(
    model: str, rows: "RowSource | None", output: Path, image_shape: tuple[int, ...] | None, title: str | None
) -> None:
    """Show MODEL on one HTML page that needs no network.

    It has the centroids, a map of the clusters and their sizes, the objective during the fit, the factors, and time and
    size against dense centroids. The rows of DATA, if given, are counted, drawn and timed: they are read once, some at
    a time.
    """
    from quickmeans.report import write_report

    write_report(load_model(model, "QKMeans"), output, rows, image_shape=image_shape, title=title)
    click.echo(f"{output} has been written; open it in a browser.")
