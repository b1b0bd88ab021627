"""The tables of docs/neighbours.md and docs/nystroem.md, and those of both subjects in docs/benchmarks.md."""

from typing import Any

import numpy as np

from benchmarks.harness import load
from benchmarks.markdown import DATA, rows

BATCHES = [(recall, batch) for recall in (0.9, 0.99) for batch in (2000, 10000)]


def section(name: str, part: str) -> list[dict[str, Any]]:
    """Return the records of a section of results, or nothing."""
    found = load(name).get(part, [])
    return list(found["records"] if isinstance(found, dict) else found)


def sections(kind: str) -> dict[str, Any]:
    """Return the sections of benchmarks.search of one kind, by their data."""
    return {key.split(":")[1]: found for key, found in load("search").items() if key.startswith(f"{kind}:")}


# ---- search ---------------------------------------------------------------------------------------------------------


def searching() -> str:
    """Queries per second over those of faiss with as many lists, and the medians of single queries."""
    head = ["data", "lists", *(f"recall {recall}, {batch} queries" for recall, batch in BATCHES),
            "one query, µs", "faiss, µs", "coarse step, scan, Python"]  # fmt: skip
    cells = []
    for name, found in sections("rates").items():
        for one in found["one_query"]:
            n, kept = one["n_lists"], found["at_recall"]
            lines = [[r for r in kept if (r["n_lists"], r["recall"], r["batch"]) == (n, *pair)] for pair in BATCHES]
            rates = [f"{line[0]['times_faiss']:.2f}" if line else "" for line in lines]
            medians = [f"{one['microseconds'][m]['median']:.0f}" for m in ("QKNeighbors", "faiss IVFFlat")]
            shares = next((line[0]["shares"] for line in lines if line), {}).values()
            text = ", ".join(f"{100 * max(share, 0):.0f} %" for share in shares)
            cells.append((DATA[name], n, *rates, *medians, text))
    return rows(head, cells)


def rates() -> str:
    """Queries per second, in one batch of ten thousand."""
    cells = []
    for name, found in sections("rates").items():
        for r in (r for r in found["at_recall"] if r["batch"] == BATCHES[1][1]):
            speed = f"{r['queries_per_second']:.0f}"
            cells.append((DATA[name], r["recall"], r["n_lists"], speed, f"{r['times_faiss']:.2f}"))
    return rows(["data", "recall@10", "lists", "QKNeighbors, queries/s", "times faiss IVFFlat"], cells)


def coarse_graph() -> str:
    """Many lists, beside faiss with a graph over the centroids."""
    cells = []
    for r in section("search", "graph"):
        ours, peer = (r["recall@10"][method] for method in ("QKNeighbors", "faiss IVFFlat"))
        cells.append((r["nprobe"], f"{r['times_faster']:.2f}", f"{ours:.3f}", f"{peer:.3f}"))
    return rows(["probes", "times faiss, HNSW coarse", "recall@10", "faiss's"], cells)


def building() -> str:
    """Training and adding."""
    cells = []
    for name, r in sections("build").items():
        seconds = [f"{r['seconds'][method]:.2f}" for method in ("QKNeighbors", "faiss")]
        recalls = [f"{r['recall@10'][method]:.3f}" for method in ("QKNeighbors", "faiss")]
        cells.append((DATA[name], r["n_lists"], *seconds, f"{r['times_faster']:.1f}", *recalls))
    head = ["data", "lists", "seconds", "faiss", "times faster", "recall@10, as many probes", "faiss's"]
    return rows(head, cells)


def single_queries() -> str:
    """One query at a time."""
    cells = []
    for name, found in sections("rates").items():
        for r in found["one_query"]:
            times = [f"{r['microseconds'][method][what]:.0f}" for method in ("QKNeighbors", "faiss IVFFlat")
                     for what in ("median", "p99")]  # fmt: skip
            cells.append((DATA[name], f"{r['n_lists']}, {r['nprobe']}", *times))
    return rows(["data", "lists, probes", "median", "99 %", "faiss, median", "99 %"], cells)


# What the paper reports: data and K -> K-means / QK-means.
PAPER_ACCURACY = {("blobs", 128): "0.96 / 0.74", ("blobs", 256): "0.97 / 0.66", ("blobs", 512): "0.99 / 0.66"}
PAPER_ACCURACY |= {("mnist", K): "0.96 / 0.96" for K in (10, 16, 30)}
PAPER_ACCURACY |= {("fashion-mnist", K): "0.84 / 0.84" for K in (10, 16, 30)}


def paper_neighbours() -> str:
    """The paper's tables: accuracy of the nearest neighbour, and microseconds per query."""
    methods = ("K-means, one cluster", "QKNeighbors, one cluster", "QKNeighbors, two clusters")
    cells = []
    for name, found in sections("paper").items():
        for K in dict.fromkeys(r["K"] for r in found if r["K"]):
            own = [[r for r in found if (r["K"], r["method"]) == (K, method)] for method in methods]
            accuracy = [f"{np.mean([r['accuracy'] for r in group]):.3f}" for group in own]
            times = [f"{np.mean([r['microseconds_per_query'] for r in group]):.0f}" for group in own]
            cells.append((DATA[name], K, *accuracy, *times, PAPER_ACCURACY[name, K]))
    head = ["data", "K", "K-means, one cluster", "QKNeighbors, one", "QKNeighbors, two", "K-means, us", "one, us",
            "two, us", "paper: K-means / QK-means"]  # fmt: skip
    return rows(head, cells)


def exact_neighbours() -> str:
    """scikit-learn's exact search, microseconds per query."""
    cells = []
    for name, found in sections("paper").items():
        times = {r["method"]: r["microseconds_per_query"] for r in found if not r["K"]}
        cells.append((DATA[name], *(f"{times[f'sklearn {a}']:.0f}" for a in ("brute", "kd_tree", "ball_tree"))))
    return rows(["scikit-learn, exact, us", "brute", "kd_tree", "ball_tree"], cells)


# ---- kernel features ------------------------------------------------------------------------------------------------

KINDS = ("kmeans", "qkmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard", "RBFSampler")


def features() -> str:
    """The time of kernel features by scikit-learn over ours."""
    found = section("nystroem", "time")
    head = ["landmarks", *(f"{DATA[r['data']]}, K = {r['K']}, D = {r['D']}" for r in found)]
    cells = [(f'`"{kind}"`', *(f"{r['times_sklearn'][kind]:.1f}" for r in found)) for kind in KINDS[:2]]
    return rows(head, cells)


def feature_times() -> str:
    """Microseconds per row of products, kernel rows and features."""
    cells: list[tuple[Any, ...]] = []
    for r in section("nystroem", "time"):
        took, dense = r["microseconds_per_row"], r["K"] * r["D"]
        cells.append((f"**{DATA[r['data']]}, K = {r['K']}, D = {r['D']}, N = {r['N']}**", "", "", "", "", ""))
        peer = took["sklearn Nystroem"]
        kernel = f"{took['sklearn rbf_kernel']:.1f}"
        first = ("scikit-learn `Nystroem` on k-means landmarks", dense, f"{took['dense product']:.1f} (BLAS)", kernel)
        sampler = took["sklearn RBFSampler"]
        cells.append((*first, f"{peer:.1f}", 1))
        cells.append(("scikit-learn `RBFSampler`", dense, "", "", f"{sampler:.1f}", f"{peer / sampler:.1f}"))
        for kind, times in r["times_sklearn"].items():
            name, _, size = kind.partition(", compression ")
            text = f'`landmarks="{name}"' + (f", compression={size}`" if size else "`")
            parts = [f"{took[f'{what}, {kind}']:.1f}" for what in ("product", "kernel rows", "features")]
            cells.append((text, r["multiply_adds"][kind], *parts, f"{times:.1f}"))
    head = ["", "multiply-adds of the product", "product", "kernel rows C", "features", "features, times scikit-learn"]
    return rows(head, cells)


def means(r: dict[str, Any]) -> dict[str, float]:
    """Return the mean errors of all kinds of landmarks."""
    return {kind: value["mean"] for kind, value in r["error"].items()}


def kernel_errors() -> str:
    """The error of the kernel matrix with compressed and uniform landmarks over that with k-means landmarks."""
    cells = []
    for r in section("nystroem", "error"):
        own = means(r)
        ratios = (f"{own[kind] / own['kmeans']:.3f}" for kind in KINDS[1:3])
        cells.append((DATA[r["data"]], r["K"], f"{own['kmeans']:.4f}", *ratios))
    return rows(["data", "K", "error, `kmeans`", "`qkmeans` over it", "`uniform` over it"], cells)


def all_errors() -> str:
    """The error of the kernel matrix of 1000 test rows, for all landmarks."""
    cells = []
    for r in section("nystroem", "error"):
        own = means(r)
        cells.append((DATA[r["data"]], r["K"], *(f"{own[kind]:.4f}" for kind in KINDS),
                      f"{own['qkmeans'] / own['kmeans']:.3f}"))  # fmt: skip
    return rows(["data", "K", *(f"`{kind}`" for kind in KINDS), "`qkmeans` over `kmeans`"], cells)


# The paper's Table 4: data and K -> K-means, QK-means.
PAPER_SVM = {("mnist", 10): ("0.74", "0.74"), ("mnist", 16): ("0.83", "0.82"), ("mnist", 30): ("0.88", "0.88"),
             ("fashion-mnist", 10): ("0.71", "0.71"), ("fashion-mnist", 16): ("0.75", "0.74"),
             ("fashion-mnist", 30): ("0.78", "0.77")}  # fmt: skip


def machines() -> str:
    """Linear support vector machines on the features, beside the paper's Table 4."""
    cells = []
    for r in section("nystroem", "svm"):
        if (r["data"], r["K"]) in PAPER_SVM:
            found = [r["accuracy"][kind] for kind in KINDS[:3]]
            text = [f"{value['mean']:.3f} ± {value['deviation']:.3f}" for value in found]
            cells.append((DATA[r["data"]], r["K"], *text, *PAPER_SVM[r["data"], r["K"]]))
    return rows(["data", "K", *(f"`{kind}`" for kind in KINDS[:3]), "paper, K-means", "paper, QK-means"], cells)
