"""Tables of README and docs/benchmarks.md, written from benchmarks/results: no number in them is typed.

    python -m benchmarks.tables

A table stands between two lines ``<!-- name -->`` and ``<!-- end of name -->``; tests/test_benchmark_tables.py compares
each with the results.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import many_clusters, never_slower, quality
from benchmarks.harness import DOCS, load

README = DOCS.parent / "README.md"
NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "words": "word vectors", "blobs": "Blobs",
         "convnet": "made-up activations", "resampled": "rows like word vectors"}  # fmt: skip


def rows(head: list[str], cells: list[tuple[Any, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *cells]
    return "".join(f"| {' | '.join(map(str, line))} |\n".replace(" --- ", "---") for line in lines)


def times(ratio: float) -> str:
    """Return a ratio of times with the digits that mean something."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def find(records: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """Return the one record that has these values."""
    (found,) = (r for r in records if all(r[name] == value for name, value in wanted.items()))
    return found


def iterations() -> str:
    """Ten iterations from the same rows."""
    head = [
        "data",
        "K, D, N",
        "seconds",
        "times scikit-learn",
        "times SuperKMeans",
        "objective",
        "SuperKMeans' objective",
    ]
    cells = []
    for r in load("clustering")["fit"]["records"]:
        over, size = r["objective_over_sklearn"], f"{r['K']}, {r['D']}, {r['N']}"
        objectives = (f"{over[method]:.4f}" for method in ("QKMeans", "SuperKMeans"))
        cells.append((NAMES[r["data"]], size, f"{r['seconds']['QKMeans']:.2f}", f"{r['times_sklearn']:.1f}",
                      f"{r['times_SuperKMeans']:.1f}", *objectives))  # fmt: skip
    return rows(head, cells)


def assignment() -> str:
    """`predict` on all rows."""
    head = ["data", "K", "milliseconds", "times the faster of scikit-learn and SuperKMeans", "objective over exact",
            "equal labels", "exact distances per point"]  # fmt: skip
    cells = []
    for r in load("clustering")["predict"]["records"]:
        name = NAMES[r["data"]] + ("" if r["method"] == "QKMeans" else ", sparse product")
        faster, equal = f"{r['times_the_faster_peer']:.1f}", f"{100 * r['equal_labels']:.1f} %"
        cells.append((name, r["K"], f"{1e3 * r['seconds']:.0f}", faster, f"{r['objective_ratio']:.5f}",
                      equal, f"{r['candidates']:.1f}"))  # fmt: skip
    return rows(head, cells)


def searching() -> str:
    """Queries per second over those of faiss with as many lists, and the medians of single queries."""
    batches = [(recall, batch) for recall in (0.9, 0.99) for batch in (2000, 10000)]
    head = ["data", "lists", *(f"recall {recall}, {batch} queries" for recall, batch in batches),
            "one query, µs", "faiss, µs", "coarse step, scan, Python"]  # fmt: skip
    cells = []
    for section, found in load("search").items():
        if not section.startswith("rates:"):
            continue
        for one in found["one_query"]:
            n = one["n_lists"]
            rates = [find(found["at_recall"], n_lists=n, recall=recall, batch=batch) for recall, batch in batches]
            medians = [f"{one['microseconds'][m]['median']:.0f}" for m in ("QKNeighbors", "faiss IVFFlat")]
            shares = ", ".join(f"{100 * max(share, 0):.0f} %" for share in rates[1]["shares"].values())
            name = NAMES[section.removeprefix("rates:")]
            cells.append((name, n, *(f"{r['times_faiss']:.2f}" for r in rates), *medians, shares))
    return rows(head, cells)


def errors_over_kmeans() -> str:
    """Errors of kernel matrices over those with k-means landmarks."""
    head = ["data", "K", "`qkmeans`, 1000 test rows", "`qkmeans`, all training rows", "`uniform`, 1000 test rows"]
    cells = []
    for r in load("nystroem")["error"]["records"]:

        def over(part: str, kind: str, record: dict[str, Any] = r) -> str:
            errors = record.get(part)
            return f"{errors[kind]['mean'] / errors['kmeans']['mean']:.3f}" if errors else ""

        parts = over("error", "qkmeans"), over("all_rows_error", "qkmeans"), over("error", "uniform")
        cells.append((NAMES[r["data"]], r["K"], *parts))
    return rows(head, cells)


def kernel_errors() -> str:
    """Relative errors of kernel matrices of test rows, for all kinds of landmarks."""
    records = load("nystroem")["error"]["records"]
    kinds = list(records[0]["error"])
    cells = [(NAMES[r["data"]], r["K"], *(f"{r['error'][kind]['mean']:.4f}" for kind in kinds)) for r in records]
    return rows(["data", "K", *(f"`{kind}`" for kind in kinds)], cells)


# The paper's accuracies, K-means / QK-means.
PAPER = {
    "blobs": {128: "0.96 / 0.74", 256: "0.97 / 0.66", 512: "0.99 / 0.66"},
    "mnist": dict.fromkeys((10, 16, 30), "0.96 / 0.96"),
    "fashion-mnist": dict.fromkeys((10, 16, 30), "0.84 / 0.84"),
}


def paper_searching() -> str:
    """One nearest neighbour in one cluster and in two, and of all rows by scikit-learn."""
    methods = ["K-means, one cluster", "QKNeighbors, one cluster", "QKNeighbors, two clusters"]
    head = ["data", "K", *methods, *(f"{method}, µs" for method in methods), "paper"]
    cells: list[tuple[Any, ...]] = []
    for data, own in PAPER.items():
        records = load("search")[f"paper:{data}"]

        def mean(key: str, records: list[dict[str, Any]] = records, **wanted: Any) -> float:
            found = [r[key] for r in records if all(r.get(name) == value for name, value in wanted.items())]
            return float(sum(found) / len(found))

        for K, accuracies in own.items():
            shares = (f"{mean('accuracy', K=K, method=method):.3f}" for method in methods)
            micros = (f"{mean('microseconds_per_query', K=K, method=method):.0f}" for method in methods)
            cells.append((NAMES[data], K, *shares, *micros, accuracies))
        for r in records:
            if r["K"] is None:
                name = r["method"].replace("sklearn", "scikit-learn, all rows by")
                cells.append((NAMES[data], name, "", "", "", f"{r['microseconds_per_query']:.0f}", "", "", ""))
    return rows(head, cells)


def whole_fits() -> list[tuple[str, ...]]:
    """Default calls, for the README."""
    lines = {
        ("Fashion-MNIST", 300): "one default call, Fashion-MNIST, K = 300 (20000 rows, start included)",
        ("word vectors", 500): "the same, word vectors, K = 500, D = 300",
        ("300 blobs, 128 features", 300): "the same, 300 separated clusters, D = 128",
    }
    cells = []
    for (data, K), text in lines.items():
        r = find(load("quality")["records"], data=data, K=K)
        agreement = r.get("least adjusted Rand index", {}).get("QKMeans", 0.0)
        found = ": all clusters found, every seed" if agreement > 0.999 else ""
        score = f"{r['objective']['QKMeans']:.3f}"
        cells.append((text, "scikit-learn `KMeans`", times(r["times faster"]),
                      f"objective {score} of its" if not cells else score + found))  # fmt: skip
    for K, n, text in (
        (16384, 8, "search and 20 iterations, 400000 rows like word vectors, K = 16384"),
        (4096, 25, "the same, K = 4096"),
    ):
        own = find(load("many_clusters")["records"], part="fits", K=K, method="QKMeans, max_iter=20")
        peer = find(load("many_clusters")["records"], part="fits", K=K, method=f"SuperKMeans, {n} iterations")
        over = f"{own['objective'] / peer['objective']:.3f}"
        cells.append((text, f"SuperKMeans, {n} iterations", times(peer["seconds"] / own["seconds"]),
                      f"objective {over} of its" if K == 16384 else over))  # fmt: skip
    return cells


def from_the_same_rows() -> list[tuple[str, ...]]:
    """Ten iterations and `predict`, for the README."""
    fits, sklearn = load("clustering")["fit"]["records"], "scikit-learn `KMeans`"

    def line(text: str, data: str, K: int, peer: str = "sklearn lloyd") -> tuple[str, ...]:
        r = find(fits, data=data, K=K)
        faster = r["times_sklearn" if peer == "sklearn lloyd" else "times_SuperKMeans"]
        over = r["objective_over_sklearn"]
        score = f"{over['QKMeans'] / over[peer]:.4f}"
        return text, sklearn if peer == "sklearn lloyd" else peer, times(faster), score

    first = line("ten iterations, MNIST, K = 1024, D = 784", "mnist", 1024)
    predicted = find(load("clustering")["predict"]["records"], data="mnist", K=1024, method="QKMeans")
    return [
        (*first[:3], f"objective {first[3]} of its"),
        line("the same", "mnist", 1024, "SuperKMeans"),
        line("the same, word vectors, K = 512, D = 300", "words", 512),
        line("the same, Blobs, K = 1024, D = 2000: little to compress", "blobs", 1024),
        ("`predict`, MNIST, K = 1024", "the faster of scikit-learn and SuperKMeans",
         times(predicted["times_the_faster_peer"]), f"{100 * predicted['equal_labels']:.1f} % of labels equal"),
    ]  # fmt: skip


def beyond() -> list[tuple[str, ...]]:
    """Search, kernel features and Dask, for the README."""
    speed = find(load("search")["rates:mnist"]["at_recall"], n_lists=1024, recall=0.99, batch=2000)["times_faiss"]
    features = load("nystroem")
    faster = find(features["time"]["records"], data="mnist", K=512)["times_sklearn"]["qkmeans"]
    errors = find(features["error"]["records"], data="mnist", K=512)["error"]
    error = errors["qkmeans"]["mean"] / errors["kmeans"]["mean"]
    dask = load("scale")["dask"]
    dask = dask.get("records", dask)
    return [
        ("search, MNIST, 1024 lists, recall@10 of 0.99", "faiss `IndexIVFFlat`", times(speed), "the same recall"),
        ("kernel features, MNIST, K = 512", "scikit-learn `Nystroem`", times(faster),
         f"kernel error {error:.4f} of its"),
        (f"iterations on Dask, K = {dask['K']}, D = {dask['D']}", "`dask_ml`", times(dask["times_faster"]),
         f"objective {dask['objective_over_dask_ml']:.4f} of its"),
    ]  # fmt: skip


def how_fast() -> str:
    """The table of the README."""
    head = ["what", "compared with", "times faster", "quality"]
    return rows(head, whole_fits() + from_the_same_rows() + beyond())


TABLES: dict[str, tuple[Path, Callable[[], str]]] = {
    "quality": (DOCS / "benchmarks.md", lambda: quality.table(load("quality")["records"])),
    "never slower": (DOCS / "benchmarks.md", lambda: never_slower.table(load("never_slower")["records"])),
    "many clusters": (DOCS / "benchmarks.md", lambda: many_clusters.table(load("many_clusters")["records"])),
    "iterations": (DOCS / "benchmarks.md", iterations),
    "assignment": (DOCS / "benchmarks.md", assignment),
    "searching": (DOCS / "benchmarks.md", searching),
    "the paper's search": (DOCS / "neighbours.md", paper_searching),
    "errors over k-means": (DOCS / "nystroem.md", errors_over_kmeans),
    "kernel errors": (DOCS / "nystroem.md", kernel_errors),
    "how fast": (README, how_fast),
}


def parts(name: str) -> tuple[str, str, str]:
    """Return the page of a table before it, the table, and the page after it."""
    before, rest = TABLES[name][0].read_text("utf-8").split(f"<!-- {name} -->\n")
    table, after = rest.split(f"<!-- end of {name} -->\n")
    return before + f"<!-- {name} -->\n", table, f"<!-- end of {name} -->\n" + after


def main() -> None:
    """Write all tables."""
    for name, (page, make) in TABLES.items():
        before, _, after = parts(name)
        page.write_text(before + make() + after, "utf-8")


if __name__ == "__main__":
    main()
