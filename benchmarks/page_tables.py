"""The tables of the pages of docs/, each a function of the results."""

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.harness import load
from benchmarks.long_runs import long_runs
from benchmarks.markdown import DATA, find, rows, seconds, times
from benchmarks.search_tables import (
    all_errors,
    building,
    coarse_graph,
    exact_neighbours,
    feature_times,
    features,
    kernel_errors,
    machines,
    paper_neighbours,
    rates,
    searching,
    single_queries,
)

MB, GB = 1e6, 1e9


def records(name: str, section: str) -> list[dict[str, Any]]:
    """Return the records of a section of results."""
    found = load(name)[section]
    return list(found["records"] if isinstance(found, dict) else found)


# ---- where ----------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "default_fits": "one default call of each library",
    "quality": "whole fits, many seeds",
    "never_slower": "every call beside its peers",
    "many_clusters": "many clusters",
    "clustering": "iterations and `predict`",
    "operator": "the operator",
    "factorization": "the factors",
    "palm": "palm4MSA and that of pyfaust",
    "balanced": "balanced clusters, sweeps",
    "search": "search",
    "nystroem": "kernel features",
    "scale": "files, Dask, mini-batches",
    "estimate": "a million clusters on Dask, estimated",
    "knobs": "one parameter at a time ([page](parameters.md))",
}


def named(content: Any, key: str) -> Iterable[Any]:
    """Yield what results keep under a key, at any depth."""
    if isinstance(content, dict) and key in content:
        yield content[key]
    for inner in content.values() if isinstance(content, dict) else content:
        if isinstance(inner, dict | list):
            yield from named(inner, key)


def distinct(values: Iterable[str]) -> str:
    """Return the different values, in order of appearance."""
    return ", ".join(dict.fromkeys(values))


def where() -> str:
    """What was measured, on which machine and commit."""
    cells = []
    for name, what in PROGRAMS.items():
        content = load(name)
        if not content:
            continue
        inner = [value for key, value in content.items() if key != "commit"]  # which is that of the last part
        commits = distinct(c for c in named(inner, "commit") if c) or content.get("commit", "")
        cpus = distinct(" ".join(f"{m['cores']} cores of {m['cpu']}, {m.get('isa', '')}".split()).rstrip(",")
                        for m in named(content, "machine"))  # fmt: skip
        cells.append((what, cpus, commits, f"[{name}](../benchmarks/results/{name}.json)"))
    return rows(["what", "machine", "commit", "results"], cells)


# ---- clustering -----------------------------------------------------------------------------------------------------


def iterations() -> str:
    """Ten iterations from the same rows."""
    head = ["data", "K, D, N", "seconds", "times scikit-learn", "times SuperKMeans", "times faiss", "objective",
            "SuperKMeans' objective"]  # fmt: skip
    cells = []
    for r in records("clustering", "fit"):
        over, size, took = r["objective_over_sklearn"], f"{r['K']}, {r['D']}, {r['N']}", r["seconds"]
        objectives = (f"{over[method]:.4f}" for method in ("QKMeans", "SuperKMeans"))
        cells.append((DATA[r["data"]], size, f"{took['QKMeans']:.2f}", f"{r['times_sklearn']:.1f}",
                      f"{r['times_SuperKMeans']:.1f}", f"{took['faiss.Kmeans'] / took['QKMeans']:.1f}",
                      *objectives))  # fmt: skip
    return rows(head, cells)


def assignment() -> str:
    """`predict` on all rows."""
    head = ["data", "K", "milliseconds", "times the faster of scikit-learn and SuperKMeans", "objective over exact",
            "equal labels", "exact distances per point"]  # fmt: skip
    cells = []
    for r in records("clustering", "predict"):
        name = DATA[r["data"]] + ("" if r["method"] == "QKMeans" else ", sparse product")
        faster, equal = f"{r['times_the_faster_peer']:.1f}", f"{100 * r['equal_labels']:.1f} %"
        cells.append((name, r["K"], f"{1e3 * r['seconds']:.0f}", faster, f"{r['objective_ratio']:.5f}",
                      equal, f"{r['candidates']:.1f}"))  # fmt: skip
    return rows(head, cells)


def paper_model() -> str:
    """The paper's model on MNIST."""
    cells = [(r["method"], r["parameters"], f"{r['objective_ratio']:.4f}", f"{r['seconds']:.1f}")
             for r in records("clustering", "paper")]  # fmt: skip
    return rows(["MNIST, K = 30", "numbers", "objective over k-means", "seconds"], cells)


def one_row() -> str:
    """The time of one row, and the memory of fits."""
    (r,) = records("clustering", "latency")
    parts = r["microseconds"]
    cells: list[tuple[Any, ...]] = [(f"`predict` of one row, K = {r['K']}, D = {r['D']}", f"{parts['predict']:.0f} µs"),
                                    ("of that, validation of the row", f"{parts['validation']:.0f} µs"),
                                    ("of that, the kernel", f"{parts['beyond validation']:.0f} µs")]  # fmt: skip
    cells += [(f"peak memory of a fit above X, {DATA[m['data']]}, K = {m['K']}, D = {m['D']}",
               f"{m['bytes'] / MB:.0f} MB") for m in records("clustering", "memory")]  # fmt: skip
    return rows(["what", "measured"], cells)


# ---- sizes ----------------------------------------------------------------------------------------------------------

KINDS = {"normal": "normal", "skewed": "log-normal, skewed", "60 uneven blobs": "60 uneven blobs"}


def balanced() -> str:
    """Clusters of bounded sizes beside k-means-constrained."""
    head = ["rows", "largest size", "no bounds, s", "QKMeans, s", "k-means-constrained, s", "times faster",
            "objective over its"]  # fmt: skip
    cells, found = [], load("balanced")["small"]
    for data, text in KINDS.items():
        free, own, peer = (find(found, data=data, method=m) for m in ("no bounds", "QKMeans", "k-means-constrained"))
        cells.append((text, own["bound"], seconds(free["seconds"]), seconds(own["seconds"]), seconds(peer["seconds"]),
                      times(peer["seconds"] / own["seconds"]),
                      f"{own['objective'] / peer['objective']:.4f}"))  # fmt: skip
    return rows(head, cells)


def bounded_many() -> str:
    """Clusters of bounded sizes at many clusters, beside a fit without bounds."""
    free, own = (find(load("balanced")["large"], method=m) for m in ("no bounds", "QKMeans"))
    cell = (own["data"], seconds(free["seconds"]), seconds(own["seconds"]), f"{own['seconds'] / free['seconds']:.2f}",
            f"{own['objective'] / free['objective']:.4f}")  # fmt: skip
    return rows(["rows", "no bounds, s", "at most 1.2 times the mean size, s", "time over it", "objective over it"],
                [cell])  # fmt: skip


def sweeps() -> str:
    """Sweeps over eight numbers of clusters."""
    found = load("balanced")["sweep"]
    cells = []
    for largest, swept in zip(found[::2], found[1::2], strict=True):
        cells.append((KINDS.get(swept["data"], swept["data"]), ", ".join(map(str, swept["clusters"])),
                      seconds(largest["seconds"]), f"{swept['seconds'] / largest['seconds']:.2f}",
                      f"{swept['objective'] / largest['objective']:.4f}"))  # fmt: skip
    return rows(["rows", "clusters", "largest fit, s", "sweep over it", "objective of the last"], cells)


# ---- the operator and the factors -----------------------------------------------------------------------------------


def nearest_rows() -> str:
    """The nearest row of a product, beside dense peers."""
    peers = {"sklearn predict": "scikit-learn `predict`", "BLAS + argmin": "BLAS + argmin",
             "faiss IndexFlatL2": "faiss `IndexFlatL2`", "SuperKMeans.assign": "`SuperKMeans.assign`"}  # fmt: skip
    cells = []
    for r in load("operator")["assignments"]:
        ms = r["milliseconds"]
        own = ms["quickmeans"]
        cells.append((f"{r['K']}, {r['D']}, {r['N']}", *(f"{ms[peer] / own:.1f}" for peer in peers),
                      f"{own / ms['X.sum()']:.2f}"))  # fmt: skip
    return rows(["K, D, N", *peers.values(), "time over `X.sum()`"], cells)


def one_vector() -> str:
    """`V @ x` against NumPy's `U @ x`."""
    found = [r for r in load("operator")["single_vectors"] if r["D"] > 8]
    ratios = [f"{r['microseconds']['numpy U @ x'] / r['microseconds']['V @ x']:.2f}" for r in found]
    return rows(["K, D", *(f"{r['K']}, {r['D']}" for r in found)], [("times faster", *ratios)])


def figure_1() -> str:
    """The paper's Figure 1, on 100 vectors."""
    found = [r for r in load("operator")["figure_1"] if r["vectors"] == 100]
    names = {f"quickmeans {k}": f"sparsity {k}" for k in (2, 3, 5, 10)}
    names |= {"scipy 5": "SciPy CSR chain, sparsity 5", "pyfaust 5": "pyfaust, sparsity 5"}
    cells = [(text, *(f"{r['milliseconds']['numpy dense'] / r['milliseconds'][name]:.1f}" for r in found))
             for name, text in names.items()]  # fmt: skip
    return rows(["D", *(str(r["D"]) for r in found)], cells)


FACTORED = [("mnist", 30, 4700), ("mnist", 256, 11200), ("mnist", 256, 16600), ("mnist", 1024, 35000),
            ("fashion-mnist", 256, 16600), ("words", 512, 30720), ("blobs", 512, 40960),
            ("patches", 512, 13107)]  # fmt: skip


def factors() -> str:
    """The objective with factored centroids."""
    head = ["centroids", "multiply-adds", "of K D", "`sparse_als`", "truncated SVD", "largest entries of U", "seconds"]
    cells, found = [], load("factorization")["records"]
    for data, K, budget in FACTORED:
        near = [
            min(
                (r for r in found if (r["data"], r["K"], r["method"]) == (data, K, method) and "macs" in r),
                key=lambda r: abs(r["macs"] - budget),
            )
            for method in ("sparse ALS", "truncated SVD", "thresholded U")
        ]
        own = near[0]
        cells.append((f"{DATA[data]}, K = {K}", own["macs"], f"{100 * own['macs'] / (own['K'] * own['D']):.1f}%",
                      *(f"{r['ratio']:.3f}" for r in near), f"{own['seconds']:.2f}"))  # fmt: skip
    return rows(head, cells)


# ---- files, Dask, mini-batches --------------------------------------------------------------------------------------


def file_against_memory() -> str:
    """A file beside a part of its rows in memory."""
    disk = load("scale")["disk"]["records"]
    cells = [(text, f"{r['bytes'] / GB:.2f} GB", seconds(r["seconds"]), f"{r['peak_bytes'] / GB:.2f} GB",
              f"{1e9 * r['seconds'] / r['bytes']:.2f}")
             for text, r in (("a file", disk["file"]), ("in memory", disk["memory"]))]  # fmt: skip
    return rows(["rows", "bytes", "s", "peak memory", "ns per byte"], cells)


def one_pass() -> str:
    """One pass over a file that is not in the system's cache."""
    cells = [(f"{r['file']}, {r['bytes'] / GB:.2f} GB", *(f"{r[k]:.2f}" for k in (
              "reading", "computing", "both", "over_the_longer", "over_the_sum")))
             for r in records("scale", "overlap")]  # fmt: skip
    return rows(["file", "reading, s", "computing, s", "both, s", "over the longer", "over the sum"], cells)


def batches() -> str:
    """Mini-batches to the objective of scikit-learn's."""
    head = ["data", "K", "batch", "sklearn, s", "QKMeans, s", "times faster", "objective over sklearn's"]
    cells = [(DATA[r["data"]], r["K"], r["batch"], f"{r['sklearn']:.2f}", f"{r['ours']:.2f}",
              f"{r['times_faster']:.1f}", f"{r['objective_over_sklearn']:.4f}")
             for r in records("scale", "batches")]  # fmt: skip
    return rows(head, cells)


def many_in_files() -> str:
    """Default calls to files with many clusters."""
    cells = []
    for section, how in (("many", "read into memory"), ("chunks", "in chunks")):
        r = load("scale")[section]["records"]
        cells.append((f"{r['N'] / 1e6:.0f} million, {r['bytes'] / GB:.2f} GB", r["means"], r["K"], how,
                      seconds(r["seconds"]), r["n_iter"], f"{r['peak_bytes'] / GB:.2f} GB",
                      f"{r['objective_over_noise']:.2f}"))  # fmt: skip
    head = ["rows", "means", "K", "how", "s", "iterations", "peak memory, rows in memory included",
            "objective over noise"]  # fmt: skip
    return rows(head, cells)


def growth() -> str:
    """Slopes of time and memory of a fit from a file."""
    cells = []
    for section, key in (("rows", "N"), ("clusters", "K"), ("columns", "D")):
        part = load("scale")[section]["records"]
        found = part["records"]
        first, last = found[0], found[-1]
        fixed = ", ".join(f"{name} = {first[name]}" for name in "NDK" if name != key)
        cells.append((f"{key} = {first[key]} .. {last[key]} ({fixed})", f"{part['slope']:.2f}",
                      f"{first['seconds']:.2f} to {last['seconds']:.1f} s", f"{part['memory_slope']:.2f}",
                      f"{first['peak_bytes'] / MB:.0f} MB to {last['peak_bytes'] / MB:.0f} MB"))  # fmt: skip
    return rows(["against", "slope of time", "time", "slope of peak memory", "peak memory"], cells)


def on_dask() -> str:
    """An iteration on Dask beside dask_ml."""
    r = load("scale")["dask"]["records"]
    took = r["seconds_per_iteration"]
    cells = [
        ("seconds per iteration", f"{took['QKMeans']:.2f}", f"{took['dask_ml']:.2f} ({r['times_faster']:.1f} times)"),
        ("objective after six", f"{r['objective_over_dask_ml']:.4f}", 1),
        ("message per iteration, bytes", r["bytes_screen"], f"dense float32 centroids: {r['bytes_dense_float32']}"),
        ("the same, `shortlist=0`, compression 20", r["bytes_product_rows"], ""),
    ]  # fmt: skip
    return rows(["", "QKMeans", "`dask_ml.cluster.KMeans`"], cells)


def million() -> str:
    """An iteration of 10^9 rows with a million clusters, estimated."""
    e = load("estimate")["estimate"]
    worker = 2 * 32768 * 4 * e["D"] + e["message_bytes"] + e["part_bytes_at_most"]
    cells = [
        ("data read, if not persisted", f"{e['read_bytes'] / 1e12:.1f} TB"),
        ("message, per worker: centroids in float32, coefficients, groups", f"{e['message_bytes'] / GB:.1f} GB"),
        ("time per row, which grows as K to the power of", f"{e['slope']:.2f}"),
        ("time per row", f"{1e6 * e['seconds_per_row']:.0f} microseconds"),
        ("core hours", f"{e['core_hours']:.1f}"),
        ("sums of a chunk of 32768 rows (100 MB), at most", f"{e['part_bytes_at_most'] / GB:.1f} GB"),
        ("memory per worker, at least: two chunks, message, sums", f"{worker / GB:.1f} GB"),
        ("memory of the client: sums, centroids, and copies", f"{e['client_bytes'] / GB:.0f} GB"),
    ]
    return rows(["per iteration", "estimate"], cells)


def knobs() -> str:
    """One parameter at a time."""
    cells = [("default" if r["knob"] == "default" else f"`{r['knob']}`", f"{r['fit']:.2f}", f"{1e3 * r['predict']:.0f}",
              f"{r['objective_ratio']:.4f}", f"{100 * r['equal_labels']:.1f} %", f"{r['bytes'] / 1e3:.0f}")
             for r in load("knobs")["records"]]  # fmt: skip
    return rows(["", "fit, s", "predict, ms", "objective", "labels as exact", "file, kB"], cells)


PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "benchmarks.md": {
        "where": where, "iterations": iterations, "assignment": assignment, "paper's model": paper_model,
        "one row": one_row, "balanced": balanced, "bounded, many": bounded_many, "sweeps": sweeps,
        "nearest rows": nearest_rows, "one vector": one_vector, "figure 1": figure_1, "factors": factors,
        "searching": searching, "features": features, "kernel errors": kernel_errors,
    },
    "large-data.md": {
        "file against memory": file_against_memory, "one pass": one_pass, "batches": batches,
        "many in files": many_in_files, "growth": growth,
    },
    "dask.md": {"on Dask": on_dask, "a million": million},
    "parameters.md": {"knobs": knobs},
    "neighbours.md": {
        "rates": rates, "coarse graph": coarse_graph, "building": building, "single queries": single_queries,
        "paper's neighbours": paper_neighbours, "exact neighbours": exact_neighbours,
    },
    "nystroem.md": {"feature times": feature_times, "all errors": all_errors, "machines": machines},
    "reliability.md": {"long runs": long_runs},
}  # fmt: skip
