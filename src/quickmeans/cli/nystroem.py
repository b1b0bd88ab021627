"""``quickmeans nystroem``: features whose inner products approximate a kernel."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Commands, option
from quickmeans.cli.data import blocks_for, check_enough_rows, data_argument, model_and_data, read_if_small
from quickmeans.cli.outputs import json_option, output_option
from quickmeans.cli.values import COUNT, NUMBER, NUMBER_OR_AUTO, SEED, Name, Number

if TYPE_CHECKING:
    from quickmeans import QKNystroem
    from quickmeans.data import RowSource

_LANDMARKS = Name("quickmeans.nystroem.choice", "CHOICES")
_GAMMA = Number("scale", "mean-distance")


@click.group(cls=Commands)
def nystroem() -> None:
    """Approximate a kernel: learn landmarks from the rows of a file, then turn rows into features."""


@nystroem.command(
    short_help="Learn K landmarks from the rows of DATA.",
    examples=[
        "nystroem fit rows.npy -k 512 --gamma scale -o kernel.safetensors",
        "nystroem fit rows.npy -k 512 --kernel polynomial --degree 2 -o kernel.safetensors",
    ],
)
@data_argument
@option("-k", "--landmarks", "n_components", type=COUNT, required=True, help="Number of landmarks and features.")
@option("--kernel", type=Name("quickmeans.nystroem.kernels", "NAMES"), help="The kernel.  [default: rbf]")
@option("--gamma", type=_GAMMA, help="Coefficient of the kernel.  [default: one over the number of columns]")
@option("--degree", type=COUNT, help="Degree of the polynomial kernel.  [default: 3]")
@option("--coef0", type=NUMBER, help="Constant of the polynomial and sigmoid kernels.  [default: 1]")
@option("--choose", "landmarks", type=_LANDMARKS, help="How landmarks are chosen.  [default: qkmeans]")
@option(
    "--compression", type=NUMBER_OR_AUTO, help="Size of dense landmarks over size of their product.  [default: auto]"
)
@option("--seed", "random_state", type=SEED, help="Seed of the random numbers, for repeatable results.")
@option("--threads", "n_threads", type=COUNT, help="Number of threads.  [default: all]")
@output_option("The model", required=True)
@json_option
def fit(rows: "RowSource", output: Path, as_json: bool, **options: Any) -> None:
    """Learn K landmarks from the rows of DATA and write the model to a file.

    Files of more than 1 GiB are read block by block, but for '--choose leverage'.
    """
    from rich.text import Text

    from quickmeans import QKNystroem
    from quickmeans.cli.describe import print_model
    from quickmeans.cli.terminal import console
    from quickmeans.data.features import check_features

    check_enough_rows(rows, options["n_components"])
    start = time.perf_counter()
    model = QKNystroem(**{name: value for name, value in options.items() if value is not None})
    with console(stderr=True).status(Text(f"learning landmarks from {rows.name}")):
        X = read_if_small(rows)
        model.fit(rows if X is None else X)
        check_features(model, rows, reset=True)
        model.save(output)
    print_model(model, output, as_json=as_json, seconds=time.perf_counter() - start, output=str(output))


@nystroem.command(examples=["nystroem transform kernel.safetensors rows.npy -o features.npy"])
@output_option("The features, one row for every row of DATA", (".npy",), required=True)
@model_and_data("QKNystroem")
@option("--threads", type=COUNT, help="Number of threads.  [default: all]")
@json_option
def transform(model: "QKNystroem", rows: "RowSource", threads: int | None, output: Path, as_json: bool) -> None:
    """Write the features of the rows of DATA block by block."""
    from quickmeans.cli.progress import RowMeter
    from quickmeans.cli.terminal import print_facts, print_json, rate
    from quickmeans.data.counted import CountedRows
    from quickmeans.data.output import write_rows

    model.n_threads = threads
    start = time.perf_counter()
    with RowMeter("transform", rows.n_rows) as meter:
        n, k = write_rows(output, map(model.transform, blocks_for(model, CountedRows(rows, meter))))
    elapsed = time.perf_counter() - start
    if as_json:
        print_json({"rows": n, "features": k, "seconds": elapsed, "output": str(output)})
    else:
        print_facts([("features", f"{n} x {k} in {rate(n, elapsed)}"), ("written to", str(output))])
