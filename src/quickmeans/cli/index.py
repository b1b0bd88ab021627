"""``quickmeans index``: nearest neighbours with inverted lists."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Commands, option
from quickmeans.cli.data import SECTION, blocks_for, data_argument, load_model, model_and_data, read_if_small
from quickmeans.cli.outputs import json_option, output_option
from quickmeans.cli.values import COUNT, COUNT_OR_AUTO, NUMBER, SEED, Name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quickmeans import QKNeighbors
    from quickmeans.data import RowSource

_SHOWN = 10  # queries in the table


@click.group(cls=Commands)
def index() -> None:
    """Build an index of the rows of a file and search it for nearest neighbours. Needs faiss."""


@index.command(
    short_help="Build an index of the rows of DATA.",
    examples=[
        "index build rows.npy -o rows.index",
        "index build embeddings.parquet --columns embedding --metric cosine --recall 0.99 -o rows.index",
        "index build embeddings.parquet --columns embedding --ids key -o rows.index",
    ],
)
@data_argument
@option(
    "--ids", section=SECTION, metavar="NAME", help="Column of a table with ids of the rows.  [default: row numbers]"
)
@option("--metric", type=Name("quickmeans.search.metrics", "METRICS"), help="What nearest means.  [default: euclidean]")
@option("-k", "--neighbours", "n_neighbors", type=COUNT, default=10, help="Neighbours per query.  [default: 10]")
@option("--recall", type=NUMBER, help="Share of the true neighbours that queries must find.  [default: 0.95]")
@option("--n-lists", type=COUNT_OR_AUTO, help="Number of inverted lists.  [default: auto]")
@option("--nprobe", type=COUNT_OR_AUTO, help="Lists searched per query; auto: as --recall needs.  [default: auto]")
@option(
    "--payload", metavar="CODE", help="Stored numbers: flat (float32), sq8 (bytes), pqM (M bytes).  [default: flat]"
)
@option("--seed", "random_state", type=SEED, help="Seed of the random numbers, for repeatable results.")
@option("--threads", "n_threads", type=COUNT, help="Number of threads.  [default: all]")
@output_option("The index", required=True)
@json_option
def build(rows: "RowSource", ids: str | None, output: Path, as_json: bool, **options: Any) -> None:
    """Build an index of the rows of DATA. The rows are in FILE.*.lists beside FILE; keep the two together.

    Files of more than 1 GiB are read block by block.
    """
    from rich.text import Text

    from quickmeans import QKNeighbors
    from quickmeans.cli.describe import print_model
    from quickmeans.cli.terminal import console
    from quickmeans.data.features import check_features
    from quickmeans.data.values import column_values

    start = time.perf_counter()
    model = QKNeighbors(**{name: value for name, value in options.items() if value is not None})
    with console(stderr=True).status(Text(f"building an index of {rows.name}")):
        own = None
        if ids is not None:
            own = column_values(rows, ids)
        X = read_if_small(rows)
        model.fit(rows if X is None else X, ids=own)
        check_features(model, rows, reset=True)
        model.save(output)
    print_model(model, output, as_json=as_json, seconds=time.perf_counter() - start, output=str(output))


@index.command("info", examples=["index info rows.index", "index info rows.index --json"])
@click.argument("index", type=click.Path())
@json_option
def show(index: str, as_json: bool) -> None:
    """Show the contents of INDEX, a file written by 'index build'."""
    from quickmeans import QKNeighbors
    from quickmeans.cli.describe import print_model

    print_model(load_model(index, QKNeighbors), index, as_json=as_json)


@index.command(examples=["index export rows.index -o rows.faiss"])
@click.argument("index", type=click.Path())
@output_option("The file for faiss.read_index", required=True)
def export(index: str, output: Path) -> None:
    """Write INDEX as a file for faiss alone.

    faiss then does the coarse step its own way. With the metric cosine, the file divides queries by their lengths.
    """
    from quickmeans import QKNeighbors
    from quickmeans.atomic import replacing
    from quickmeans.cli.terminal import print_facts, size
    from quickmeans.search.storage import write_lists

    model = load_model(index, QKNeighbors)
    copy = model.as_faiss_ivf()
    with replacing(output) as temporary, open(temporary, "xb") as file:
        write_lists(copy, file.write)
    facts = [
        (type(copy).__name__, f"{model.n_samples_fit_} rows, {model.nprobe_} lists searched per query"),
        ("ids", "row numbers: faiss has no strings" if model.has_string_ids else "as in the index"),
        ("scores", {"euclidean": "squared distances", "cosine": "cosines"}.get(model.metric_, "inner products")),
        ("file", size(output.stat().st_size)),
        ("written to", str(output)),
    ]
    print_facts(facts)


@index.command(
    examples=[
        "index query rows.index queries.npy -k 10 -o neighbours.npz",
        "index query rows.index queries.npy -k 3 --json",
    ]
)
@output_option("The arrays 'ids' and 'distances', one row per query", (".npz",))
@model_and_data("QKNeighbors", "index")
@option("-k", "--neighbours", type=COUNT, help="Neighbours per query.  [default: as in 'index build']")
@option("--nprobe", type=COUNT, help="Lists searched per query.  [default: as in 'index build']")
@option("--threads", type=COUNT, help="Number of threads.  [default: all]")
@json_option
def query(
    index: "QKNeighbors",
    rows: "RowSource",
    neighbours: int | None,
    nprobe: int | None,
    threads: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find the rows of INDEX that are nearest to each row of DATA.

    Without -o a table shows the first ten queries; --json prints all.
    """
    import numpy as np

    from quickmeans.atomic import replacing
    from quickmeans.cli.progress import RowMeter
    from quickmeans.data.counted import CountedRows

    index.n_threads = threads
    start = time.perf_counter()
    with RowMeter("query", rows.n_rows) as meter:
        queries = blocks_for(index, CountedRows(rows, meter))
        parts = [index.kneighbors(block, neighbours, nprobe=nprobe) for block in queries]
    elapsed = time.perf_counter() - start
    distances, ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if output is not None:
        with replacing(output) as temporary, open(temporary, "xb") as file:  # np.savez would add .npz to a path
            np.savez(file, ids=ids.astype(str) if index.has_string_ids else ids, distances=distances)
    _print(distances, ids, elapsed, output, as_json=as_json)


def _print(
    distances: "NDArray[np.float32]", ids: "NDArray[np.int64]", elapsed: float, output: Path | None, *, as_json: bool
) -> None:
    from quickmeans.cli.terminal import Grid, console, print_facts, print_json, rate

    n, k = ids.shape
    if as_json:
        answer = {"ids": ids.tolist(), "distances": distances.tolist()} if output is None else {"output": str(output)}
        print_json({"queries": n, "neighbours": k, "seconds": elapsed} | answer)
        return
    facts = [("queries", f"{n} with {k} neighbours each in {rate(n, elapsed, 'queries')}")]
    if output is not None:
        print_facts([*facts, ("written to", str(output))])
        return
    print_facts(facts)
    first = [[str(i), " ".join(map(str, ids[i])), f"{distances[i, 0]:.4g}"] for i in range(min(n, _SHOWN))]
    console().print(Grid(["query", "nearest rows", "distance to the first"], first))
    if n > _SHOWN:
        console().print(f"... and {n - _SHOWN} more; -o FILE writes all.")
