"""``quickmeans index``: nearest neighbours by inverted lists."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quickmeans.cli.command import Commands, option
from quickmeans.cli.data import data_argument, load_model, whole
from quickmeans.cli.numbers import COUNT, SEED, WHOLE_OR_AUTO
from quickmeans.cli.outputs import json_option, output_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from quickmeans.data import RowSource

    Found = tuple[NDArray[np.float32], NDArray[np.int64]]

_SHOWN = 10  # queries


@click.group(cls=Commands)
def index() -> None:
    """Nearest neighbours: build an index of the rows of a file, ask it, look at it. Needs faiss."""


@index.command(
    short_help="Make an index of the rows of DATA.",
    examples=[
        "index build rows.npy -o rows.index",
        "index build embeddings.parquet --columns embedding --metric cosine --recall 0.99 -o rows.index",
    ],
)
@data_argument
@option("--metric", type=click.Choice(["euclidean", "inner_product", "cosine"]), help="[euclidean]")
@option("-k", "--neighbours", "n_neighbors", type=COUNT, default=10, show_default=True, help="Usual question.")
@option("--recall", type=float, help="The share of the true neighbours to be found.  [0.95]")
@option("--n-lists", type=WHOLE_OR_AUTO, help="Lists that rows are kept in.  [auto]")
@option("--nprobe", type=WHOLE_OR_AUTO, help="Lists that a query looks at; auto: as --recall needs.  [auto]")
@option("--payload", help="What is kept of a row: flat (all), sq8 (a byte per number), pqM (M bytes).  [flat]")
@option("--seed", "random_state", type=SEED, help="Makes it repeatable.")
@option("--threads", "n_threads", type=COUNT, help="At most so many threads.  [all]")
@output_option("The index", required=True)
@json_option
def build(rows: "RowSource", output: Path, as_json: bool, **options: Any) -> None:
    """Make an index of the rows of DATA: FILE, and beside it FILE.*.lists with the rows."""
    from rich.text import Text

    from quickmeans import QKNeighbors
    from quickmeans.cli.terminal import console
    from quickmeans.data.features import check_features

    start = time.perf_counter()
    model = QKNeighbors(**{name: value for name, value in options.items() if value is not None})
    with console(stderr=True).status(Text(f"building an index of {rows.name}")):
        model.fit(whole(rows))
        check_features(model, rows, reset=True)
        model.save(output)
    _show(model, output, as_json, time.perf_counter() - start)


@index.command("info", examples=["index info rows.index", "index info rows.index --json"])
@click.argument("index", type=click.Path())
@json_option
def show(index: str, as_json: bool) -> None:
    """Show what INDEX, a file that 'index build' has written, is made of."""
    _show(load_model(index, "QKNeighbors"), Path(index), as_json)


def _show(model: Any, path: Path, as_json: bool, elapsed: float | None = None) -> None:
    from quickmeans.cli.describe import describe, lines
    from quickmeans.cli.terminal import print_facts, print_json, seconds

    found = describe(model, path)
    if as_json:
        print_json(found if elapsed is None else found | {"seconds": elapsed})
        return
    built = [] if elapsed is None else [("time", seconds(elapsed)), ("written to", str(path))]
    print_facts([*lines(found), *built])


@index.command(
    examples=[
        "index query rows.index queries.npy -k 10 -o neighbours.npz",
        "index query rows.index queries.npy -k 3 --json",
    ]
)
@click.argument("index", type=click.Path())
@data_argument
@option("-k", "--neighbours", type=COUNT, help="Neighbours of a row.  [as the index was built for]")
@option("--nprobe", type=int, help="Lists to look at, if not as many as the index was built for.")
@option("--threads", type=COUNT, help="At most so many threads.  [all]")
@output_option("Arrays 'ids' and 'distances', one row per query", (".npz",))
@json_option
def query(
    index: str,
    rows: "RowSource",
    neighbours: int | None,
    nprobe: int | None,
    threads: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find for every row of DATA its nearest rows in INDEX. Without -o the first few are shown; --json shows all."""
    import numpy as np

    from quickmeans.atomic import replacing
    from quickmeans.cli.progress import RowMeter
    from quickmeans.data.counted import CountedRows

    model = load_model(index, "QKNeighbors")
    model.n_threads = threads
    start = time.perf_counter()
    with RowMeter("query", rows.n_rows) as meter:
        parts = list(_found(model, CountedRows(rows, meter), neighbours, nprobe))
    elapsed = time.perf_counter() - start
    distances, ids = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    if output is not None:
        with replacing(output) as temporary, open(temporary, "xb") as file:  # to a path .npz would be added
            np.savez(file, ids=ids, distances=distances)
    _tell(distances, ids, elapsed, output, as_json=as_json)


def _found(model: Any, rows: "RowSource", k: int | None, nprobe: int | None) -> Iterator["Found"]:
    from quickmeans.data.features import check_features
    from quickmeans.data.stream import SourceStream
    from quickmeans.kmeans.rows import refuse_not_finite as refuse_bad_rows

    check_features(model, rows, reset=False)
    model.__dict__.pop("feature_names_in_", None)  # which arrays have not
    stream = SourceStream(rows)
    for part, chunk in stream.blocks():
        refuse_bad_rows(stream, part.start, chunk)
        yield model.kneighbors(chunk, k, nprobe=nprobe)


def _tell(
    distances: "NDArray[np.float32]", ids: "NDArray[np.int64]", elapsed: float, output: Path | None, *, as_json: bool
) -> None:
    from quickmeans.cli.terminal import Grid, console, count, print_facts, print_json, seconds

    n, k = ids.shape
    if as_json:
        answer = {"ids": ids.tolist(), "distances": distances.tolist()} if output is None else {"output": str(output)}
        print_json({"queries": n, "neighbours": k, "seconds": elapsed} | answer)
        return
    screen = console()
    shown = [
        ("queries", f"{n}, {k} neighbours each, in {seconds(elapsed)}: {count(n / max(elapsed, 1e-9))} per second")
    ]
    if output is not None:
        shown.append(("written to", str(output)))
    print_facts(shown)
    if output is None:
        first = [[str(i), " ".join(map(str, ids[i])), f"{distances[i, 0]:.4g}"] for i in range(min(n, _SHOWN))]
        screen.print(Grid(["query", "nearest rows", "distance of the first"], first))
        if n > _SHOWN:
            screen.print(f"... and {n - _SHOWN} more; -o FILE writes all.")
