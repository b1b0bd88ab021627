"""The floors of the paper, of sizes and sweeps, of search and kernel features."""

from collections.abc import Callable

from benchmarks.floor import Floor, Values, records
from benchmarks.harness import load
from benchmarks.markdown import DATA

# ---- the paper ------------------------------------------------------------------------------------------------------


def over_faust(data: str, own: str, *peers: str) -> Callable[[], Values]:
    """Return the time of the faster run of pyfaust over ours."""

    def values() -> Values:
        found = {r["method"]: r["seconds"] for r in records("palm") if r["data"] == data}
        if own in found:
            yield min(found[p] for p in peers) / found[own], ""

    return values


def paper(method: str, what: str) -> Callable[[], Values]:
    """Return a number of the paper's model on MNIST."""

    def values() -> Values:
        yield from ((r[what], "") for r in records("clustering", "paper") if r["method"] == method)

    return values


def excess(*names: str) -> Callable[[], Values]:
    """Return the excess objective of sparse ALS over that of a truncated SVD with as many multiply-adds."""

    def values() -> Values:
        found = [r for r in records("factorization") if r["data"] in names and "macs" in r]
        for r in (r for r in found if r["method"] == "sparse ALS"):
            near = [s for s in found if (s["data"], s["K"], s["method"]) == (r["data"], r["K"], "truncated SVD")]
            svd = min(near, key=lambda s: abs(s["macs"] - r["macs"]))
            yield (r["ratio"] - 1) / (svd["ratio"] - 1), f"{DATA[r['data']]}, {r['K']}, {r['macs']}"

    return values


PAPER = [
    Floor("the paper", "a sweep of palm4MSA over pyfaust's, 128 x 512", ">= 12",
          over_faust("Gaussian", "palm4MSA", "pyfaust palm4MSA", "pyfaust palm4MSA, right to left")),
    Floor("the paper", "hierarchical palm4MSA over pyfaust's", ">= 8",
          over_faust("Gaussian", "hierarchical", "pyfaust hierarchical")),
    Floor("the paper", "MNIST, K = 30, `solver=\"palm4msa\"`, 20 iterations: seconds", "<= 4",
          paper("palm4MSA, sparsity 5", "seconds")),
    Floor("the paper", "MNIST, K = 30, `als`: objective at 4.7k numbers", "<= 1.007",
          paper("als, 4.7k", "objective_ratio")),
    Floor("the paper", "the same at 1.9k numbers", "<= 1.03", paper("als, 1.9k", "objective_ratio")),
    Floor("the paper", "excess of `als` over that of a truncated SVD, images", "<= 0.2",
          excess("mnist", "fashion-mnist")),
    Floor("the paper", "the same, word vectors", "<= 0.45", excess("words")),
]  # fmt: skip

# ---- sizes, search, kernels -----------------------------------------------------------------------------------------


def bounded(section: str, peer: str, what: str) -> Callable[[], Values]:
    """Return ratios of a number with bounds on sizes; times are those of the peer over ours in "small"."""

    def values() -> Values:
        found = {(r["data"], r["method"]): r[what] for r in records("balanced", section)}
        for (data, method), value in found.items():
            if method == "QKMeans" and (data, peer) in found:
                other = found[data, peer]
                yield other / value if section == "small" and what == "seconds" else value / other, data

    return values


def swept() -> Values:
    """The time of a sweep over that of its largest fit."""
    found = records("balanced", "sweep")
    for largest, sweep in zip(found[::2], found[1::2], strict=True):
        yield (
            sweep["seconds"] / largest["seconds"],
            f"{sweep['data']}, {sweep['clusters'][0]} to {sweep['clusters'][-1]}",
        )


SIZES = [
    Floor("sizes and sweeps", "objective over k-means-constrained", "<= 1.005",
          bounded("small", "k-means-constrained", "objective")),
    Floor("sizes and sweeps", "times faster than k-means-constrained", ">= 50",
          bounded("small", "k-means-constrained", "seconds")),
    Floor("sizes and sweeps", "400000 rows, K = 4096: time over that without bounds", "<= 2",
          bounded("large", "no bounds", "seconds")),
    Floor("sizes and sweeps", "sweep over eight K: time over the largest fit", "<= 2", swept),
]  # fmt: skip


def searched(*only: str, besides: str = "") -> Callable[[], Values]:
    """Return queries per second over those of faiss."""

    def values() -> Values:
        for section, found in load("search").items():
            name = section.removeprefix("rates:")
            if section.startswith("rates:") and name != besides and (not only or name in only):
                for r in found["at_recall"]:
                    yield r["times_faiss"], f"{DATA[name]}, {r['n_lists']} lists, recall {r['recall']}"

    return values


def single() -> Values:
    """The median time of one query of faiss over ours."""
    for section, found in load("search").items():
        if section.startswith("rates:"):
            for r in found["one_query"]:
                median = {method: value["median"] for method, value in r["microseconds"].items()}
                at = f"{DATA[section.removeprefix('rates:')]}, {r['n_lists']} lists"
                yield median["faiss IVFFlat"] / median["QKNeighbors"], at


def built() -> Values:
    """The time of building by faiss over ours."""
    for section, found in load("search").items():
        if section.startswith("build:"):
            yield found["times_faster"], DATA[section.removeprefix("build:")]


def graph() -> Values:
    """The time of faiss with a graph over the centroids over ours."""
    yield from ((r["times_faster"], f"{r['nprobe']} probes") for r in load("search").get("graph", []))


def features(*cases: tuple[str, int]) -> Callable[[], Values]:
    """Return the time of kernel features by scikit-learn over ours."""

    def values() -> Values:
        yield from ((r["times_sklearn"]["qkmeans"], f"{DATA[r['data']]}, {r['K']}") for r in records("nystroem", "time")
                    if (r["data"], r["K"]) in cases)  # fmt: skip

    return values


def errors(other: str) -> Callable[[], Values]:
    """Return the error with compressed landmarks over that with others."""

    def values() -> Values:
        for r in records("nystroem", "error"):
            mean = {kind: value["mean"] for kind, value in r["error"].items()}
            yield mean["qkmeans"] / mean[other], f"{DATA[r['data']]}, {r['K']}"

    return values


SEARCH = [
    Floor("search", "queries per second over faiss `IndexIVFFlat`, but MNIST", ">= 1.3", searched(besides="mnist")),
    Floor("search", "the same, MNIST", ">= 2.5", searched("mnist")),
    Floor("search", "one query, median, over faiss", ">= 1.0", single),
    Floor("search", "16384 lists, over faiss with an HNSW coarse quantizer", ">= 1.5", graph),
    Floor("search", "building, over faiss", ">= 2", built),
    Floor("kernel features", "time over scikit-learn's, MNIST and Blobs", ">= 2.5",
          features(("mnist", 512), ("blobs", 512))),
    Floor("kernel features", "the same, made-up activations", ">= 2", features(("convnet", 256))),
    Floor("kernel features", "error over that of k-means landmarks", "<= 1.03", errors("kmeans")),
    Floor("kernel features", "error over that of uniform landmarks", "<= 1.0", errors("uniform")),
]  # fmt: skip
