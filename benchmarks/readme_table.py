"""The table of the README: one default call of each library, and what else is faster."""

from typing import Any

from benchmarks.harness import load
from benchmarks.markdown import find, rows, seconds, times

PEERS = ("scikit-learn", "SuperKMeans", "SuperKMeans, two levels", "faiss")


def default_calls() -> str:
    """One default call of each library, from few clusters to many."""
    cells = []
    for r in load("default_fits")["records"]:
        peers = [f"{times(r['times faster'][p])}, {r['objective over'][p]:.3f}" if p in r["times faster"] else ""
                 for p in PEERS]  # fmt: skip
        cells.append((r["K"], f"{r['data']}, {r['rows']} x {r['features']}", seconds(r["seconds"]["QKMeans"]), *peers))
    return rows(["K", "rows", "seconds", *PEERS], cells)


def whole_fits() -> list[tuple[str, ...]]:
    """Default calls with several seeds."""
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
    """Ten iterations and `predict`."""
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
    """Search, kernel features and Dask."""
    speed = find(load("search")["rates:mnist"]["at_recall"], n_lists=1024, recall=0.99, batch=2000)["times_faiss"]
    features = load("nystroem")
    faster = find(features["time"]["records"], data="mnist", K=512)["times_sklearn"]["qkmeans"]
    errors = find(features["error"]["records"], data="mnist", K=512)["error"]
    error = errors["qkmeans"]["mean"] / errors["kmeans"]["mean"]
    dask: dict[str, Any] = load("scale")["dask"]["records"]
    return [
        ("search, MNIST, 1024 lists, recall@10 of 0.99", "faiss `IndexIVFFlat`", times(speed), "the same recall"),
        ("kernel features, MNIST, K = 512", "scikit-learn `Nystroem`", times(faster),
         f"kernel error {error:.4f} of its"),
        (f"iterations on Dask, K = {dask['K']}, D = {dask['D']}", "`dask_ml`", times(dask["times_faster"]),
         f"objective {dask['objective_over_dask_ml']:.4f} of its"),
    ]  # fmt: skip


def at_a_glance() -> str:
    """One line for everything that is faster."""
    head = ["what", "compared with", "times faster", "quality"]
    return rows(head, whole_fits() + from_the_same_rows() + beyond())
