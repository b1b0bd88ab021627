"""``quickmeans fit``: cluster the rows of a file."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, Interrupted, option
from quickmeans.cli.data import check_enough, data_argument, in_memory
from quickmeans.cli.numbers import COUNT, NUMBER_OR_AUTO, SEED, WHOLE_OR_AUTO
from quickmeans.cli.outputs import check_folder, json_option, output_option

if TYPE_CHECKING:
    from quickmeans.data import RowSource

PAPER: dict[str, Any] = {"solver": "palm4msa", "sparsity_level": 5, "shortlist": 0}
_STARTS = ("k-means++", "random")
_model_option, _run_option = partial(option, section="The model"), partial(option, section="The run")


class SolverName(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """The name of a solver. The names are read when they are needed, because that imports NumPy."""

    name = "solver"

    @property
    def _choice(self) -> "click.Choice[str]":
        from quickmeans.transform.solvers import SOLVERS

        return click.Choice(list(SOLVERS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        return self._choice.convert(value, param, ctx)

    def get_metavar(self, *args: Any, **kwargs: Any) -> str | None:
        """Return the names for the help."""
        return self._choice.get_metavar(*args, **kwargs)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        """Return the names that a shell offers."""
        return self._choice.shell_complete(ctx, param, incomplete)


@click.command(
    cls=Command,
    examples=[
        "fit rows.npy -k 256 -o model.safetensors",
        "fit table.parquet --columns x,y,z -k 20 --seed 0 -o model.safetensors",
        "fit large.npy -k 4096 --checkpoint fit.checkpoint -o model.safetensors",
        "fit train-images-idx3-ubyte.gz -k 30 --paper -o paper.safetensors",
    ],
)
@data_argument
@_model_option("-k", "--clusters", "n_clusters", type=COUNT, required=True, help="How many clusters.")
@_model_option(
    "--paper", is_flag=True, help="The paper's algorithm: --solver palm4msa --sparsity-level 5 --shortlist 0."
)
@_model_option("--shortlist", type=WHOLE_OR_AUTO, help="Exact distances per row; 0: the product is the model.  [auto]")
@_model_option("--compression", type=NUMBER_OR_AUTO, help="How many times fewer numbers the product has.  [auto]")
@_model_option("--solver", type=SolverName(), help="How it is learned.  [als]")
@_model_option("--sparsity-level", type=COUNT, help="Entries per row and column of a factor (not als).  [5]")
@_model_option("--n-factors", type=WHOLE_OR_AUTO, help="Factors of the product (not als).  [auto]")
@_model_option("--spherical", is_flag=True, help="Compare directions (cosines).")
@_run_option("--init", help="k-means++, random, or a file with one row per cluster.  [k-means++]")
@_run_option("--n-init", type=WHOLE_OR_AUTO, help="Runs from different starts; the best is kept.  [auto]")
@_run_option("--max-iter", type=COUNT, help="The most iterations.  [100]")
@_run_option("--tol", type=float, help="Stop when centroids move less than this.  [0.0001]")
@_run_option("--batch-size", type=COUNT, help="Mini-batches of so many rows, for data that do not fit in memory.")
@_run_option("--seed", "random_state", type=SEED, help="Makes the run repeatable.")
@_run_option("--threads", "n_threads", type=COUNT, help="At most so many threads; results do not depend on it.  [all]")
@_run_option("--checkpoint", metavar="FILE", help="Written after every iteration; if it is there, go on from it.")
@_run_option("--with-labels", is_flag=True, help="Store the label of every row in the model too.")
@output_option("The model", required=True)
@json_option
def fit(rows: "RowSource", output: Path, as_json: bool, paper: bool, with_labels: bool, **options: Any) -> None:
    """Cluster the rows of DATA into K clusters and write the model to a file.

    DATA is a file of numbers, told by its ending: .npy, .npz, .parquet (or a directory of them), .arrow, .feather,
    .csv, .hdf5, .fvecs, .bvecs, .ivecs or IDX (this also as .gz). Up to 1 GiB is read into memory; larger files are
    read again in every pass.
    """
    from quickmeans import QKMeans
    from quickmeans.cli.describe import describe

    given = {name: value for name, value in options.items() if value is not None}
    checkpoint = given.get("checkpoint")
    if checkpoint is not None:
        check_folder(Path(checkpoint))
    if "init" in given:
        given["init"] = _start(given["init"])
    check_enough(rows, given["n_clusters"])
    model = QKMeans(**(PAPER if paper else {}) | given)
    resumed = checkpoint is not None and os.path.exists(checkpoint)
    start = time.perf_counter()
    with _stopped_at_once(checkpoint):
        _fit(model, rows)
        model.save(output, labels=with_labels)
    elapsed = time.perf_counter() - start
    found = {"output": str(output), "rows": len(model.labels_), "seconds": elapsed, "resumed": resumed}
    _tell(describe(model, output) | found, as_json=as_json)


def _start(init: str) -> Any:
    """The name of a start, or the rows of a file."""
    if init in _STARTS:
        return init
    if not os.path.exists(init):
        raise ValueError(f"--init must be {', '.join(_STARTS)} or a file with one row per cluster, got {init!r}.")
    from quickmeans.cli.data import whole
    from quickmeans.data import open_rows

    return whole(open_rows(init))


def _fit(model: Any, rows: "RowSource") -> None:
    from quickmeans.cli.progress import FitMeter
    from quickmeans.data.counted import CountedRows
    from quickmeans.data.features import check_features
    from quickmeans.kmeans.settings import n_runs

    with FitMeter(rows.n_rows, model.max_iter, n_runs(model.n_init, model.init)) as meter:
        watched = CountedRows(rows, meter.rows)
        X = in_memory(watched)
        meter.begin(rows.n_rows if X is None else len(X))
        model.callback = meter.iteration
        model.fit(watched if X is None else X)
    check_features(model, rows, reset=True)  # names of columns, which an array has not


class _Stopped(BaseException):
    """Ctrl-C; a KeyboardInterrupt would make a fit finish its iterate, which nobody will see."""


@contextmanager
def _stopped_at_once(checkpoint: str | None) -> Iterator[None]:
    """Ctrl-C ends the block at once, and a line says what is left."""

    def stop(*_: Any) -> None:
        raise _Stopped

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    except _Stopped:
        if checkpoint is None:
            raise Interrupted("nothing was written; with --checkpoint FILE a fit can be continued.") from None
        kept = (
            f"the same command goes on from {checkpoint}"
            if os.path.exists(checkpoint)
            else "there is no checkpoint yet"
        )
        raise Interrupted(f"the model was not written; {kept}.") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(found: dict[str, Any], *, as_json: bool) -> None:
    from quickmeans.cli.describe import lines
    from quickmeans.cli.terminal import print_facts, print_json, seconds

    if as_json:
        print_json(found)
        return
    going_on = ", going on from the checkpoint" if found["resumed"] else ""
    shown = [*lines(found), ("time", f"{seconds(found['seconds'])} for {found['rows']} rows{going_on}")]
    print_facts([*shown, ("written to", found["output"])])
