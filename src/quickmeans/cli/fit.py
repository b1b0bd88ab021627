"""``quickmeans fit``: cluster the rows of a file."""

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Command, on_interrupt, option
from quickmeans.cli.data import check_enough_rows, data_argument, load_model, read_all, read_if_small
from quickmeans.cli.outputs import check_folder, check_labels, json_option, output_note, output_option
from quickmeans.cli.values import COUNT, COUNT_OR_AUTO, NUMBER, NUMBER_OR_AUTO, SEED, Name, Size, Whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quickmeans import QKMeans
    from quickmeans.data import RowSource

PAPER: dict[str, Any] = {"solver": "palm4msa", "n_factors": "paper", "sparsity_level": 5, "shortlist": 0}
_STARTS = ("k-means++", "random")
_SOLVER = Name("quickmeans.transform.solvers", "SOLVERS")
_METRIC = Name("quickmeans.kmeans.settings", "METRICS")
_N_FACTORS = Whole(1, "auto", "paper", "journal")
_LOOKED_AT, _NEARLY_ALL = 10_000, 0.99  # rows that variances are taken from; the share of one column that is noted
_SEARCH = Name("quickmeans.kmeans.settings", "SEARCHES")
_model, _run = partial(option, section="Model"), partial(option, section="Run")


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
@_model("-k", "--clusters", "n_clusters", type=COUNT, required=True, help="Number of clusters.")
@_model(
    "--shortlist", type=Whole(0, "auto"), help="Exact distances per row; 0: the product is the model.  [default: auto]"
)
@_model("--compression", type=NUMBER_OR_AUTO, help="Size of dense centroids over size of the product.  [default: auto]")
@_model("--solver", type=_SOLVER, help="Algorithm that learns the product.  [default: als]")
@_model("--sparsity-level", type=COUNT, help="Non-zeros per row and column of a factor (not als).  [default: 5]")
@_model("--n-factors", type=_N_FACTORS, help="Number of factors of the product (not als).  [default: auto]")
@_model("--paper", is_flag=True, help="Same as --solver palm4msa --n-factors paper --sparsity-level 5 --shortlist 0.")
@_model("--metric", type=_METRIC, help="cosine compares directions (spherical k-means).  [default: euclidean]")
@_model("--standardize", is_flag=True, help="Divide every column by its standard deviation.")
@_model("--max-cluster-size", type=Size(), help="Most rows of a cluster; 1.2: so many times the mean.")
@_model("--min-cluster-size", type=Size(), help="Least rows of a cluster; 0.5: so many times the mean.")
@_run("--init", metavar="START", help="k-means++, random, a file with K rows, or a model.  [default: k-means++]")
@_run("--n-init", type=COUNT_OR_AUTO, help="Runs from different starts; the best is kept.  [default: auto]")
@_run("--search", type=_SEARCH, help="How long to look for better clusters.  [default: auto]")
@_run("--max-iter", type=COUNT, help="Largest number of iterations.  [default: 300]")
@_run("--tol", type=NUMBER, help="Stop when the centroids move less than this.  [default: 0.0001]")
@_run("--batch-size", type=COUNT, help="Mini-batch k-means with so many rows per batch.")
@_run("--seed", "random_state", type=SEED, help="Seed of the random numbers, for repeatable results.")
@_run("--threads", "n_threads", type=COUNT, help="Threads; the result does not depend on it.  [default: all]")
@_run("--checkpoint", metavar="FILE", help="Saved after every iteration; the fit continues from it if it exists.")
@output_option("The model", required=True)
@option("--with-labels", section="Output", is_flag=True, help="Store the label of every row in the model.")
@option("--labels", section="Output", metavar="FILE", help="Write the labels, too (.npy, .parquet, .csv).")
@json_option
def fit(
    rows: "RowSource",
    output: Path,
    as_json: bool,
    paper: bool,
    with_labels: bool,
    labels: str | None,
    **options: Any,
) -> None:
    """Cluster the rows of DATA into K clusters and write the model to a file.

    The ending of DATA selects its format: .npy, .npz, .parquet (or a directory of Parquet files), .arrow, .feather,
    .csv, .tsv, .txt, .hdf5, .fvecs, .bvecs, .ivecs, or IDX; text and IDX also .gz; - is standard input. Files of up to
    1 GiB are read into memory; larger ones are read again in every pass. With --shortlist 0 the centroids are the rows
    of the product, as in the paper.
    """
    import numpy as np

    from quickmeans import QKMeans
    from quickmeans.cli.describe import print_model
    from quickmeans.data import write_labels

    labels_file = check_labels(labels)
    parameters = {name: value for name, value in options.items() if value is not None}
    checkpoint = parameters.get("checkpoint")
    if checkpoint is not None:
        check_folder(Path(checkpoint))
    if "init" in parameters:
        parameters["init"] = _start(parameters["init"])
    check_enough_rows(rows, parameters["n_clusters"])
    model = QKMeans(**(PAPER if paper else {}) | parameters)
    resumed = checkpoint is not None and os.path.exists(checkpoint)
    on_interrupt(output_note(output, partial(_continuation, checkpoint)))
    start = time.perf_counter()
    _fit(model, rows)
    model.save(output, labels=with_labels)
    elapsed = time.perf_counter() - start
    if labels_file is not None:
        write_labels(labels_file, iter([model.labels_]))
    sizes = np.bincount(model.labels_, minlength=len(model.cluster_centers_))
    run = {"rows": len(model.labels_), "smallest": int(sizes.min()), "largest": int(sizes.max())}
    times = {"seconds": elapsed, "resumed": resumed, "output": str(output), "labels": labels}
    print_model(model, output, as_json=as_json, **run, **times)


def _start(init: str) -> Any:
    """Return the name of a start, the rows of a file, or a model."""
    if init in _STARTS:
        return init
    if not os.path.exists(init):
        raise ValueError(f"--init must be {', '.join(_STARTS)} or a file with one row per cluster, got {init!r}.")
    from quickmeans.data import open_rows

    if init.endswith(".safetensors"):
        from quickmeans import QKMeans

        return load_model(init, QKMeans)
    return read_all(open_rows(init))


def _fit(model: "QKMeans", rows: "RowSource") -> None:
    from quickmeans.cli.progress import FitMeter
    from quickmeans.data.counted import CountedRows
    from quickmeans.data.features import check_features
    from quickmeans.kmeans.settings import n_runs

    with FitMeter(rows.n_rows, model.max_iter, n_runs(model.n_init, model.init)) as meter:
        counted = CountedRows(rows, meter.rows)
        X = read_if_small(counted)
        meter.begin(rows.n_rows if X is None else len(X))
        if X is not None:
            check_enough_rows(rows, model.n_clusters, len(X))
            _note_of_units(model, rows, X)
        model.callback = meter.iteration
        model.fit(counted if X is None else X)
    check_features(model, rows, reset=True)  # an array has no names of columns


def _note_of_units(model: "QKMeans", rows: "RowSource", X: "NDArray[Any]") -> None:
    """Note that one column decides nearly all distances, as happens where units differ."""
    import numpy as np

    from quickmeans.callers import warn
    from quickmeans.data.reading import Note

    if model.standardize or model.metric == "cosine" or X.shape[1] < 2:
        return
    some = X[:: max(1, len(X) // _LOOKED_AT)].astype(np.float64)
    variances = some.var(axis=0)
    j, total = int(variances.argmax()), float(variances.sum())
    if variances[j] > _NEARLY_ALL * total:
        name = j if rows.columns is None else repr(rows.columns[j])
        warn(
            f"column {name} of {rows.name} has {100 * variances[j] / total:.3g} % of the variance, so that the others "
            "hardly count; --standardize gives all the same weight.",
            Note,
        )


def _continuation(checkpoint: str | None) -> str:
    """Return how an interrupted fit can be continued."""
    if checkpoint is None:
        return "; with --checkpoint FILE a fit can be continued"
    if not os.path.exists(checkpoint):
        return "; there is no checkpoint yet"
    return f"; the same command continues from {checkpoint}"
