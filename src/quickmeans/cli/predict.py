"""``quickmeans predict``: the cluster of every row of a file."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import data_argument, load_model
from quickmeans.cli.outputs import json_option, output_option
from quickmeans.cli.values import COUNT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quickmeans import QKMeans
    from quickmeans.data import RowSource

_SHOWN = 10  # clusters in the table


@click.command(
    cls=Command,
    examples=[
        "predict model.safetensors rows.npy -o labels.npy",
        "predict model.safetensors table.parquet -o labels.parquet",
        "predict model.safetensors rows.npy --json",
    ],
)
@click.argument("model", type=click.Path())
@data_argument
@option("--exact", is_flag=True, help="Give every row the label of plain k-means; slower.")
@option("--threads", type=COUNT, help="Number of threads.  [default: all]")
@output_option("The labels", (".npy", ".parquet"))
@json_option
def predict(
    model: str, rows: "RowSource", exact: bool, threads: int | None, output: Path | None, as_json: bool
) -> None:
    """Find the nearest centroid of MODEL for every row of DATA.

    Rows are read and labels are written block by block. Without -o only the sizes of the clusters are shown.
    """
    import numpy as np

    from quickmeans import QKMeans
    from quickmeans.cli.progress import RowMeter
    from quickmeans.data import write_labels
    from quickmeans.data.counted import CountedRows

    clustering = load_model(model, QKMeans)
    clustering.n_threads = threads
    sizes = np.zeros(len(clustering.cluster_centers_), np.int64)
    start = time.perf_counter()
    with RowMeter("predict", rows.n_rows) as meter:
        labels = _labels(clustering, CountedRows(rows, meter), exact, sizes)
        if output is not None:
            write_labels(output, labels)
        else:
            for _ in labels:
                pass
    _print(sizes, time.perf_counter() - start, output, as_json=as_json)


def _labels(
    model: "QKMeans", rows: "RowSource", exact: bool, sizes: "NDArray[np.int64]"
) -> Iterator["NDArray[np.int32]"]:
    """Return the labels block by block, and count them in `sizes`."""
    import numpy as np

    for labels in model.iter_labels(rows, exact=exact):
        sizes += np.bincount(labels, minlength=len(sizes))
        yield labels


def _print(sizes: "NDArray[np.int64]", elapsed: float, output: Path | None, *, as_json: bool) -> None:
    from quickmeans.cli.terminal import Grid, console, print_facts, print_json, rate, sparkline

    n_rows = int(sizes.sum())
    if as_json:
        written = None if output is None else str(output)
        print_json({"rows": n_rows, "seconds": elapsed, "sizes": sizes.tolist(), "output": written})
        return
    order = (-sizes).argsort(kind="stable")
    facts = [
        ("rows", f"{n_rows} in {rate(n_rows, elapsed)}"),
        ("clusters", f"{(sizes > 0).sum()} of {len(sizes)} have rows; the largest has {sizes.max()}"),
        ("sizes", f"{sparkline(sizes[order].tolist())} from the largest to the smallest"),
    ]
    if output is not None:
        print_facts([*facts, ("written to", str(output))])
        return
    print_facts(facts)
    table = [[str(k), str(sizes[k]), f"{100 * sizes[k] / n_rows:.2f} %"] for k in order[:_SHOWN]]
    console().print(Grid(["cluster", "rows", "share"], table))
    if len(sizes) > _SHOWN:
        console().print(f"... and {len(sizes) - _SHOWN} more; -o FILE writes the label of every row.")
