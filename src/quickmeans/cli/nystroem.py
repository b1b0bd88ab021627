"""``quickmeans nystroem``: features whose inner products approximate a kernel."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Commands, option
from quickmeans.cli.data import check_enough, data_argument, load_model, whole
from quickmeans.cli.numbers import COUNT, NUMBER_OR_AUTO, SEED, NumberOr
from quickmeans.cli.outputs import json_option, output_option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quickmeans.data import RowSource

_KERNELS = ["rbf", "polynomial", "sigmoid", "linear", "cosine"]
_LANDMARKS = ["qkmeans", "kmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard"]


@click.group(cls=Commands)
def nystroem() -> None:
    """Kernel features: learn landmarks from the rows of a file, then turn rows into features."""


@nystroem.command(
    short_help="Learn K landmarks from the rows of DATA.",
    examples=[
        "nystroem fit rows.npy -k 512 --gamma scale -o kernel.safetensors",
        "nystroem fit rows.npy -k 512 --kernel polynomial --degree 2 -o kernel.safetensors",
    ],
)
@data_argument
@option("-k", "--landmarks", "n_components", type=COUNT, required=True, help="How many landmarks, and features.")
@option("--kernel", type=click.Choice(_KERNELS), help="[rbf]")
@option("--gamma", type=NumberOr(float, "scale", "mean-distance"), help="[one over the number of columns]")
@option("--degree", type=COUNT, help="Of the polynomial kernel.  [3]")
@option("--coef0", type=float, help="Of the polynomial and sigmoid kernels.  [1]")
@option("--choose", "landmarks", type=click.Choice(_LANDMARKS), help="What landmarks are.  [qkmeans]")
@option("--compression", type=NUMBER_OR_AUTO, help="How many times fewer numbers the landmarks have.  [auto]")
@option("--seed", "random_state", type=SEED, help="Makes it repeatable.")
@option("--threads", "n_threads", type=COUNT, help="At most so many threads.  [all]")
@output_option("The model", required=True)
@json_option
def fit(rows: "RowSource", output: Path, as_json: bool, **options: Any) -> None:
    """Learn K landmarks from the rows of DATA and write the model to a file."""
    from rich.text import Text

    from quickmeans import QKNystroem
    from quickmeans.cli.describe import describe, lines
    from quickmeans.cli.terminal import console, print_facts, print_json, seconds
    from quickmeans.data.features import check_features

    check_enough(rows, options["n_components"])
    start = time.perf_counter()
    model = QKNystroem(**{name: value for name, value in options.items() if value is not None})
    with console(stderr=True).status(Text(f"learning landmarks from {rows.name}")):
        model.fit(whole(rows))
        check_features(model, rows, reset=True)
        model.save(output)
    elapsed = time.perf_counter() - start
    found = describe(model, output)
    if as_json:
        print_json(found | {"seconds": elapsed})
        return
    print_facts([*lines(found), ("time", seconds(elapsed)), ("written to", str(output))])


@nystroem.command(examples=["nystroem transform kernel.safetensors rows.npy -o features.npy"])
@click.argument("model", type=click.Path())
@data_argument
@option("--threads", type=COUNT, help="At most so many threads.  [all]")
@output_option("The features, one row for every row of DATA", (".npy",), required=True)
@json_option
def transform(model: str, rows: "RowSource", threads: int | None, output: Path, as_json: bool) -> None:
    """Write the features of every row of DATA, some rows at a time."""
    from quickmeans.cli.progress import RowMeter
    from quickmeans.cli.terminal import count, print_facts, print_json, seconds
    from quickmeans.data.counted import CountedRows
    from quickmeans.data.output import write_rows

    fitted = load_model(model, "QKNystroem")
    fitted.n_threads = threads
    start = time.perf_counter()
    with RowMeter("transform", rows.n_rows) as meter:
        n, k = write_rows(output, _features(fitted, CountedRows(rows, meter)))
    elapsed = time.perf_counter() - start
    if as_json:
        print_json({"rows": n, "features": k, "seconds": elapsed, "output": str(output)})
        return
    shown = [("features", f"{n} x {k} in {seconds(elapsed)}, {count(n / max(elapsed, 1e-9))} rows/s")]
    print_facts([*shown, ("written to", str(output))])


def _features(model: Any, rows: "RowSource") -> Iterator["NDArray[Any]"]:
    from quickmeans.data.features import check_features
    from quickmeans.data.stream import SourceStream
    from quickmeans.kmeans.rows import refuse_not_finite as refuse_bad_rows

    check_features(model, rows, reset=False)
    model.__dict__.pop("feature_names_in_", None)  # which arrays have not
    stream = SourceStream(rows)
    for part, chunk in stream.blocks():
        refuse_bad_rows(stream, part.start, chunk)
        yield model.transform(chunk)
