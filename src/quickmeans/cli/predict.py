"""``quickmeans predict``: the cluster of every row of a file."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import kept_blocks, model_and_data, names_in
from quickmeans.cli.outputs import json_option, output_option
from quickmeans.cli.values import COUNT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quickmeans import QKMeans
    from quickmeans.data import RowSource

_SHOWN = 10  # clusters in the table
_written = partial(option, section="Output")


@click.command(
    cls=Command,
    examples=[
        "predict model.safetensors rows.npy -o labels.npy",
        "predict model.safetensors table.csv --keep id,text --distance -o clusters.csv",
        "predict model.safetensors rows.npy --json",
    ],
)
@output_option("The labels", (".npy", ".parquet", ".csv"))
@model_and_data("QKMeans")
@option("--exact", is_flag=True, help="Give every row the label of plain k-means; slower.")
@option("--threads", type=COUNT, help="Number of threads.  [default: all]")
@_written("--keep", metavar="A,B,...", multiple=True, help="Columns of DATA to write beside the labels.")
@_written("--distance", is_flag=True, help="Write the distance of every row from its centroid, too.")
@_written("--second", is_flag=True, help="Write the second nearest cluster of every row, too.")
@json_option
def predict(
    model: "QKMeans",
    rows: "RowSource",
    exact: bool,
    threads: int | None,
    output: Path | None,
    keep: tuple[str, ...],
    distance: bool,
    second: bool,
    as_json: bool,
) -> None:
    """Find the nearest centroid of MODEL for every row of DATA.

    Of a table, the columns that MODEL was fitted to are read. Rows are read and labels are written block by block.
    Without -o only the sizes of the clusters are shown. With --keep, --distance or --second the output is a table, in
    which every row has its label.
    """
    import numpy as np

    from quickmeans.cli.progress import RowMeter
    from quickmeans.data import write_labels
    from quickmeans.data.counted import CountedRows
    from quickmeans.data.output import write_tables

    more = bool(keep or distance or second)
    if more and (output is None or output.suffix == ".npy"):
        raise click.UsageError("--keep, --distance and --second need -o FILE, which ends in .parquet or .csv.")
    model.n_threads = threads
    sizes = np.zeros(len(model.cluster_centers_), np.int64)
    start = time.perf_counter()
    with RowMeter("predict", rows.n_rows) as meter:
        counted = CountedRows(rows, meter)
        if more:
            assert output is not None
            write_tables(output, _tables(model, counted, names_in(keep), distance, second, exact, sizes))
        elif output is not None:
            write_labels(output, _labels(model, counted, exact, sizes))
        else:
            for _ in _labels(model, counted, exact, sizes):
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


def _tables(
    model: "QKMeans",
    rows: "RowSource",
    keep: list[str],
    distance: bool,
    second: bool,
    exact: bool,
    sizes: "NDArray[np.int64]",
) -> Iterator[Any]:
    """Return tables of the kept columns, the labels and what else is wanted, and count the labels in `sizes`."""
    import numpy as np
    import pyarrow as pa

    for kept, block in kept_blocks(model, rows, keep):
        ((_, labels, squares, *others),) = model.assign(block, exact=exact, second=second)
        sizes += np.bincount(labels, minlength=len(sizes))
        columns = {} if kept is None else {name: kept[name] for name in kept.schema.names}
        columns["label"] = pa.array(labels)
        if distance:
            columns["distance"] = pa.array(np.sqrt(squares))
        if second:
            columns["second"] = pa.array(others[0])
            if distance:
                columns["second_distance"] = pa.array(np.sqrt(others[1]))
        yield pa.table(columns)


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
