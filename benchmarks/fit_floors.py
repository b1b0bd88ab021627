"""The floors of fits: a start, never slower, many clusters."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import never_slower
from benchmarks.floor import Floor, Values, records
from benchmarks.harness import load
from benchmarks.markdown import DATA

# ---- a start --------------------------------------------------------------------------------------------------------


def whole(value: Callable[[dict[str, Any]], float | None], *only: tuple[str, int]) -> Callable[[], Values]:
    """Return the values of all cases of benchmarks.quality, or of some."""

    def values() -> Values:
        for r in records("quality"):
            found = value(r) if not only or (r["data"], r["K"]) in only else None
            if found is not None:
                yield found, f"{r['data']}, {r['K']}"

    return values


def over(method: str) -> Callable[[dict[str, Any]], float | None]:
    """Return our objective over that of a method, where it ran."""
    return lambda r: r["objective"]["QKMeans"] / r["objective"][method] if method in r["objective"] else None


def large_faster(r: dict[str, Any]) -> float | None:
    """Times faster than scikit-learn, for many clusters and features."""
    return float(r["times faster"]) if r["K"] >= 100 and r["features"] >= 50 else None


AIMS = {("word vectors", 500): 0.985, ("digits", 50): 0.990, ("50 blobs, 2 features", 50): 0.952,
        ("uneven blobs", 60): 0.87, ("Fashion-MNIST", 300): 0.996}  # fmt: skip
START = [
    Floor("a start", "objective over scikit-learn's, every case", "<= 1.000", whole(over("scikit-learn"))),
    *(Floor("a start", f"the same: {data}, K = {K}", f"<= {aim}", whole(over("scikit-learn"), (data, K)))
      for (data, K), aim in AIMS.items()),
    Floor("a start", "objective over that of the best of ten", "<= 1.002", whole(over("best of ten"))),
    Floor("a start", "objective over that of breathing k-means", "<= 1.003", whole(over("breathing"))),
    Floor("a start", "worst seed over the mean", "<= 1.01", whole(lambda r: r["worst over mean"])),
    Floor("a start", "least adjusted Rand index, separated blobs", ">= 0.999",
          whole(lambda r: r.get("least adjusted Rand index", {}).get("QKMeans"))),
    Floor("a start", "times faster than scikit-learn, every case", ">= 1", whole(lambda r: r["times faster"])),
    Floor("a start", "the same, K >= 100 and D >= 50", ">= 4", whole(large_faster)),
]  # fmt: skip

# ---- never slower ---------------------------------------------------------------------------------------------------


def cells(part: str, call: str, peer: str = "scikit-learn", what: str = "least") -> Callable[[], Values]:
    """Return the least or the median ratio of a call of benchmarks.never_slower."""

    def values() -> Values:
        for s in never_slower.summaries(records("never_slower")):
            if (s["part"], s["call"], s["peer"]) == (part, call, peer):
                at = s["worst"]
                yield s[what], f"{at['rows']} x {at['features']}, K = {at['K']}" if what == "least" else ""

    return values


def mean_objective() -> Values:
    """Our objective over scikit-learn's after default fits, the mean over the grid."""
    found = [r["objective"]["scikit-learn"] for r in records("never_slower")
             if (r["part"], r["call"]) == ("grid", "default fit")]  # fmt: skip
    if found:
        yield float(np.mean(found)), ""


SLOWER = [
    Floor("never slower", f"{call}, {'every cell' if what == 'least' else what}", bound, cells("grid", call, what=what))
    for call, what, bound in (
        ("fit, same start", "least", ">= 1.0"), ("fit, same start", "median", ">= 2"),
        ("default fit", "least", ">= 1.0"), ("default fit", "median", ">= 4"),
        ("predict", "least", ">= 1.0"), ("predict", "median", ">= 1.5"),
    )
] + [
    Floor("never slower", "objective of default fits over scikit-learn's, mean of the grid", "<= 1.000",
          mean_objective),
    Floor("never slower", "`transform`, every cell", ">= 1.0", cells("transform", "transform")),
    Floor("never slower", "200 default fits of 300 x 4", ">= 1.5", cells("small", "200 default fits")),
    Floor("never slower", "`predict` of one row: scikit-learn's validation alone over it", ">= 0.77",
          cells("one", "predict of one row", "check_array")),
    *(Floor("never slower", f"sparse rows: {call}", ">= 1.0", cells("sparse", call))
      for call in ("fit, same start", "default fit", "predict")),
    *(Floor("never slower", f"Blobs: {call}", ">= 1.2", cells("blobs", call))
      for call in ("fit, same start", "default fit", "predict")),
    *(Floor("never slower", f"Blobs, SuperKMeans: {call.removesuffix(', SuperKMeans')}", ">= 1.2",
            cells("blobs", call, "SuperKMeans"))
      for call in ("20 iterations", "default fit, SuperKMeans pinned", "predict, SuperKMeans")),
]  # fmt: skip

# ---- many clusters --------------------------------------------------------------------------------------------------


def many(part: str, K: int) -> dict[str, dict[str, Any]]:
    """Return the records of a part of benchmarks.many_clusters by their methods."""
    return {r["method"]: r for r in records("many_clusters") if (r["part"], r["K"]) == (part, K)}


def settled(K: int, n: int) -> Callable[[], Values]:
    """Return the objective over that of flat SuperKMeans."""

    def values() -> Values:
        found = many("fits", K)
        own, peer = found.get("QKMeans, max_iter=20"), found.get(f"SuperKMeans, {n} iterations")
        if own and peer:
            yield own["objective"] / peer["objective"], ""

    return values


def until(K: int, n: int) -> Callable[[], Values]:
    """Return the time to the objective of flat SuperKMeans over its time."""

    def values() -> Values:
        found = many("fits", K)
        peer = found.get(f"SuperKMeans, {n} iterations")
        own = [r["seconds"] for m, r in found.items() if m.startswith("QKMeans") and peer
               and r["objective"] <= peer["objective"]]  # fmt: skip
        if peer:
            yield min(own, default=np.inf) / peer["seconds"], ""

    return values


def within(K: int, factor: float) -> Callable[[], Values]:
    """Return the objective over that of SuperKMeans' two levels of the best fit in so many times its time."""

    def values() -> Values:
        found = many("fits", K)
        peer = found.get("SuperKMeans, two levels")
        if peer:
            own = [r["objective"] for m, r in found.items()
                   if m.startswith("QKMeans") and r["seconds"] <= factor * peer["seconds"]]  # fmt: skip
            yield min(own, default=np.inf) / peer["objective"], ""

    return values


def slope() -> Values:
    """The slope of the time of a pass against K, both in logarithms."""
    found = [(r["K"], r["seconds"]) for r in records("many_clusters") if r["part"] == "passes"]
    if found:
        yield float(np.polyfit(*np.log(np.array(found)).T, 1)[0]), ""


def predicting(K: int, method: str = "QKMeans", peers: tuple[str, ...] = ("scikit-learn", "SuperKMeans")) -> Callable[
    [], Values]:  # fmt: skip
    """Return the time of the faster of the peers over ours."""

    def values() -> Values:
        found = many("predict", K)
        if {method, *peers} <= found.keys():
            yield min(found[p]["seconds"] for p in peers) / found[method]["seconds"], ""

    return values


def labelled() -> Values:
    """The objective of new rows over that of exact labels."""
    yield from ((r["ratio"], f"K = {r['K']}") for r in records("many_clusters")
                if (r["part"], r["method"]) == ("predict", "QKMeans"))  # fmt: skip
    yield from ((r["objective_ratio"], f"{DATA[r['data']]}, {r['K']}, its own rows")
                for r in records("clustering", "predict") if r["method"] == "QKMeans")  # fmt: skip


def images(K: int) -> Callable[[], Values]:
    """Return times faster than the faster peer in predicting MNIST."""

    def values() -> Values:
        yield from ((r["times_the_faster_peer"], "") for r in records("clustering", "predict")
                    if (r["data"], r["K"], r["method"]) == ("mnist", K, "QKMeans"))  # fmt: skip

    return values


def in_file(what: Callable[[dict[str, Any]], float]) -> Callable[[], Values]:
    """Return a number of the fit with a quarter of a million clusters."""

    def values() -> Values:
        found = load("scale").get("many")
        if found:
            yield what(found["records"]), ""

    return values


MANY = [
    *(Floor("many clusters", f"K = {K}: objective over {n} iterations of SuperKMeans", "<= 0.985", settled(K, n))
      for K, n in ((4096, 25), (16384, 8))),
    *(Floor("many clusters", f"K = {K}: time to the objective of {n} iterations of SuperKMeans, over theirs",
            f"<= {bound}", until(K, n)) for K, n, bound in ((4096, 8, 0.25), (16384, 3, 0.167))),
    *(Floor("many clusters", f"K = {K}: objective over two levels of SuperKMeans, in {factor} times their time",
            f"<= {bound}", within(K, factor)) for K in (4096, 16384) for factor, bound in ((1.2, 1.0), (2, 0.96))),
    Floor("many clusters", "slope of the time of a pass, K = 2^10 .. 2^18", "<= 0.35", slope),
    *(Floor("many clusters", f"`predict`, K = {K}, over the faster peer", f">= {bound}", predicting(K))
      for K, bound in ((16384, 20), (4096, 10))),
    Floor("many clusters", "`predict`, MNIST, K = 1024, over the faster peer", ">= 10", images(1024)),
    *(Floor("many clusters", f"`predict`, K = {K}, over faiss HNSW among the centroids, at the objective of `predict`",
            ">= 5", predicting(K, peers=("faiss HNSW",))) for K in (4096, 16384)),
    Floor("many clusters", "`predict`: objective over that of exact labels", "<= 1.0005", labelled),
    *(Floor("many clusters", f"`predict(exact=True)`, K = {K}, over scikit-learn's", ">= 2",
            predicting(K, "QKMeans, exact", ("scikit-learn",))) for K in (1024, 4096, 16384)),
    Floor("many clusters", "4 million rows in a file, K = 262144: minutes", "<= 15",
          in_file(lambda r: r["seconds"] / 60)),
    Floor("many clusters", "the same: memory beside the rows of the file, GB", "<= 4",
          in_file(lambda r: (r["peak_bytes"] - r["bytes"]) / 1e9)),
]  # fmt: skip
