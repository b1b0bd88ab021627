"""``quickmeans predict``: the cluster of every row of a file."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import data_argument, load_model
from quickmeans.cli.numbers import COUNT
from quickmeans.cli.outputs import json_option, output_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quickmeans.data import RowSource

_SHOWN = 10  # clusters


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
@option("--exact", is_flag=True, help="The labels of plain k-means to the last, more slowly.")
@option("--threads", type=COUNT, help="At most so many threads.  [all]")
@output_option("Labels", (".npy", ".parquet"))
@json_option
def predict(
    model: str, rows: "RowSource", exact: bool, threads: int | None, output: Path | None, as_json: bool
) -> None:
    """Find for every row of DATA the nearest centroid of MODEL.

    Rows are read some at a time, and labels are written as they are found. Without -o only the sizes of the clusters
    are shown.
    """
    import numpy as np

    from quickmeans.cli.progress import RowMeter
    from quickmeans.data import write_labels
    from quickmeans.data.counted import CountedRows

    fitted = load_model(model, "QKMeans")
    fitted.n_threads = threads
    sizes = np.zeros(len(fitted.cluster_centers_), np.int64)
    start = time.perf_counter()
    with RowMeter("predict", rows.n_rows) as meter:
        labels = _labels(fitted, CountedRows(rows, meter), exact, sizes)
        if output is not None:
            write_labels(output, labels)
        else:
            for _ in labels:
                pass
    _tell(sizes, time.perf_counter() - start, output, as_json=as_json)


def _labels(model: Any, rows: "RowSource", exact: bool, sizes: "NDArray[np.int64]") -> Iterator["NDArray[np.int32]"]:
    """Labels chunk by chunk, counted as they pass."""
    import numpy as np

    for _, found in model._assigned(model._rows_to_place(rows), exact=exact, settle_all=False):
        sizes += np.bincount(found.labels, minlength=len(sizes))
        yield found.labels


def _tell(sizes: "NDArray[np.int64]", elapsed: float, output: Path | None, *, as_json: bool) -> None:
    from quickmeans.cli.terminal import Grid, console, count, print_facts, print_json, seconds, sparkline

    n_rows = int(sizes.sum())
    if as_json:
        written = None if output is None else str(output)
        print_json({"rows": n_rows, "seconds": elapsed, "sizes": sizes.tolist(), "output": written})
        return
    screen, order = console(), (-sizes).argsort(kind="stable")
    shown = [
        ("rows", f"{n_rows} in {seconds(elapsed)}, {count(n_rows / max(elapsed, 1e-9))} rows/s"),
        ("clusters", f"{(sizes > 0).sum()} of {len(sizes)} have rows; the largest has {sizes.max()}"),
        ("sizes", f"{sparkline(sizes[order].tolist())} from the largest to the smallest"),
    ]
    if output is not None:
        shown.append(("written to", str(output)))
    print_facts(shown)
    if output is None:
        rows = [[str(k), str(sizes[k]), f"{100 * sizes[k] / n_rows:.2f} %"] for k in order[:_SHOWN]]
        screen.print(Grid(["cluster", "rows", "share"], rows))
        if len(sizes) > _SHOWN:
            screen.print(f"... and {len(sizes) - _SHOWN} more; -o FILE writes the label of every row.")
