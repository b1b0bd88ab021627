"""``quickmeans report``: an HTML page on a model."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import model_and_data
from quickmeans.cli.outputs import output_option

if TYPE_CHECKING:
    from quickmeans import QKMeans
    from quickmeans.data import RowSource


def _shape(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Return height, width and, if given, the number of colours."""
    if value is None:
        return None
    parts = value.split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts):
        raise click.UsageError(
            f"--image-shape must be a height and a width like 28x28, or 32x32x3 for colours, got {value!r}.", ctx
        )
    return tuple(map(int, parts))


@click.command(
    cls=Command,
    examples=[
        "report model.safetensors -o report.html",
        "report model.safetensors rows.npy -o report.html",
        "report model.safetensors table.parquet --columns embedding --text title -o report.html",
        "report model.safetensors photos.npy -o report.html --image-shape 32x32x3",
    ],
)
@output_option("The page", (".html", ".htm"), required=True)
@model_and_data("QKMeans", required=False)
@option(
    "--image-shape",
    metavar="HxW[x3]",
    callback=_shape,
    help="Shape of the images that the rows are.  [default: no images]",
)
@option("--text", metavar="NAME", help="Column of a table with texts, shown as examples of the clusters.")
@option("--images", metavar="NAME", help="Column of a table with images: the bytes of PNG, JPEG, GIF or WebP files.")
@option("--title", metavar="TEXT", help="Title of the page.")
def report(
    model: "QKMeans", rows: "RowSource | None", output: Path, image_shape: tuple[int, ...] | None, **options: str | None
) -> None:
    """Write an HTML page on MODEL that needs no network.

    The page shows the centroids, a table of the clusters and a map of them, the objective during the fit, the factors,
    and time and size compared with dense centroids. With DATA, the rows are counted, drawn and used for the times, and
    those nearest to the centroids are shown; they are read once, block by block.
    """
    from quickmeans.report import write_report

    write_report(model, output, rows, image_shape=image_shape, **options)
    click.echo(f"{output} has been written; open it in a browser.")
