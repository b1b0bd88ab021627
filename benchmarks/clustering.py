"""QKMeans and its peers: assignment, fitting, time against objective, growth with K and N, memory, latency.

    QUICKMEANS_DATA=... python -m benchmarks.clustering [predict fit paper curve clusters rows memory latency]

Every ratio is between candidates that took turns in one run. Prints tables and writes
benchmarks/results/clustering.json, one entry per section; the entries of other sections are kept.
`python -m benchmarks.plots` draws the figures from it.
"""

import subprocess
import sys
import time
import warnings

import faiss
import numpy as np
from sklearn.cluster import KMeans
from superkmeans import SuperKMeans

from benchmarks.data import noisy_mixture, rows
from benchmarks.harness import alternate, console, keeping, load, machine, save, show
from quickmeans import QKMeans
from quickmeans.comparison.objective import objective
from quickmeans.experiments.peers import predictor
from quickmeans.kmeans.assignment import Assignment
from quickmeans.validation import check_rows

ITERATIONS = 10
PINNED = {"sampling_fraction": 1.0, "max_points_per_cluster": 10**6, "early_termination": False}
CASES = [("mnist", 256), ("mnist", 1024), ("fashion-mnist", 256), ("fashion-mnist", 1024), ("words", 512),
         ("words", 1024), ("blobs", 256), ("blobs", 1024)]  # fmt: skip
# compressions of the sparse products that are measured too; the other data are less compressible
SPARSE = {("mnist", 256): 18, ("mnist", 1024): 23, ("fashion-mnist", 256): 18, ("fashion-mnist", 1024): 23}


def predict():
    """Time the assignment of all rows to the centroids of a QKMeans model."""
    records = []
    for name, K in CASES:
        X = rows(name)
        models = {"QKMeans": QKMeans(K, max_iter=ITERATIONS, random_state=0).fit(X)}
        if (name, K) in SPARSE:
            models["QKMeans, sparse product"] = QKMeans(
                K, max_iter=ITERATIONS, random_state=0, compression=SPARSE[name, K]
            ).fit(X)
        centers = models["QKMeans"].cluster_centers_
        sklearn_model, peer = predictor(centers), SuperKMeans(K, X.shape[1])
        calls = {
            "sklearn": lambda m=sklearn_model, X=X: m.predict(X),
            "SuperKMeans": lambda p=peer, X=X, c=centers: p.assign(X, c),
            **{key: lambda m=model, X=X: m.predict(X) for key, model in models.items()},
        }
        seconds = alternate(calls, rounds=4, most=25)
        faster = min(seconds["sklearn"], seconds["SuperKMeans"])
        for key, model in models.items():
            labels, exact = model.predict(X), predictor(model.cluster_centers_).predict(X)
            records.append({
                "data": name, "K": K, "D": X.shape[1], "N": len(X), "method": key, "seconds": seconds[key],
                "sklearn": seconds["sklearn"], "SuperKMeans": seconds["SuperKMeans"],
                "times_the_faster_peer": faster / seconds[key],
                "objective_ratio": objective(X, model.cluster_centers_, labels)
                / objective(X, model.cluster_centers_, exact),
                "equal_labels": float((labels == exact).mean()),
                "candidates": model.n_candidates_, "product": repr(model.product_),
            })  # fmt: skip
        console.print(f"predict: {name} {K} done")
    columns = ["data", "K", "method", "times_the_faster_peer", "objective_ratio", "equal_labels", "candidates"]
    show("Assignment of all rows", records, [*columns, "seconds", "sklearn", "SuperKMeans"])
    return records


def fits(X, K, init, n_iter=ITERATIONS):
    """Return the fits that are compared: name -> call that returns centroids."""
    D = X.shape[1]

    def super_kmeans(**options):
        return SuperKMeans(K, D, seed=0, **options).train(X)

    def faiss_kmeans():
        model = faiss.Kmeans(D, K, niter=n_iter, max_points_per_centroid=10**9, min_points_per_centroid=1)
        model.train(X, init_centroids=init)
        return model.centroids

    return {
        "QKMeans": lambda: QKMeans(K, init=init, max_iter=n_iter, tol=0).fit(X).cluster_centers_,
        "sklearn lloyd": lambda: KMeans(K, init=init, n_init=1, max_iter=n_iter, tol=0).fit(X).cluster_centers_,
        "SuperKMeans": lambda: super_kmeans(hierarchical=False, iters=n_iter, **PINNED),
        "SuperKMeans, two levels": lambda: super_kmeans(hierarchical=True, **PINNED),
        "faiss.Kmeans": faiss_kmeans,
    }  # fmt: skip


def fit():
    """Time ten iterations from the same rows (SuperKMeans draws its own)."""
    records = []
    for name, K in [("mnist", 256), ("mnist", 1024), ("fashion-mnist", 1024), ("words", 512), ("blobs", 1024)]:
        X = rows(name)
        init = np.ascontiguousarray(X[np.random.default_rng(0).permutation(len(X))[:K]])
        calls, centers = keeping(fits(X, K, init))
        seconds = alternate(calls, rounds=2, most=25)
        objectives = {key: objective(X, value) for key, value in centers.items()}
        records.append({
            "data": name, "K": K, "D": X.shape[1], "N": len(X), "iterations": ITERATIONS, "seconds": seconds,
            "times_sklearn": seconds["sklearn lloyd"] / seconds["QKMeans"],
            "times_SuperKMeans": seconds["SuperKMeans"] / seconds["QKMeans"],
            "objective_over_sklearn": {key: value / objectives["sklearn lloyd"] for key, value in objectives.items()},
        })  # fmt: skip
        console.print(f"fit: {name} {K} done")
    show("Ten iterations from the same start", records, ["data", "K", "times_sklearn", "times_SuperKMeans", "seconds",
                                                         "objective_over_sklearn"])  # fmt: skip
    return records


def paper():
    """Fit the paper's model, whose centroids are the rows of the product, on MNIST with K = 30."""
    X = rows("mnist")
    init = np.ascontiguousarray(X[np.random.default_rng(0).permutation(len(X))[:30]])
    start = time.perf_counter()
    plain = KMeans(30, init=init, n_init=1, max_iter=20, tol=0).fit(X)
    records = [{"method": "sklearn KMeans", "parameters": plain.cluster_centers_.size, "objective_ratio": 1.0,
                "seconds": time.perf_counter() - start}]  # fmt: skip
    models = {
        "als, 4.7k": {"solver": "als", "compression": 30 * 784 / 4700},
        "als, 1.9k": {"solver": "als", "compression": 30 * 784 / 1900},
        "palm4MSA, sparsity 5": {"solver": "palm4msa", "sparsity_level": 5},
        "hierarchical, sparsity 5": {"solver": "hierarchical", "sparsity_level": 5},
    }
    for method, options in models.items():
        start = time.perf_counter()
        model = QKMeans(30, init=init, shortlist=0, max_iter=20, tol=0, **options).fit(X)
        records.append({"method": method, "parameters": model.product_.nnz, "seconds": time.perf_counter() - start,
                        "objective_ratio": model.inertia_ / plain.inertia_,
                        "history": (model.objective_history_ / plain.inertia_).tolist()})  # fmt: skip
        console.print(f"paper: {method} done")
    show("The paper's model, MNIST, K = 30", records, ["method", "parameters", "objective_ratio", "seconds"])
    return records


def curve():
    """Measure time and objective, every method with its own start."""
    records = []
    for name in ("mnist", "words"):
        X, K = rows(name), 1024
        D = X.shape[1]
        calls = {f"SuperKMeans, {n} iterations": lambda n=n, X=X, D=D, K=K: SuperKMeans(
            K, D, seed=0, hierarchical=False, iters=n, **PINNED).train(X) for n in (2, 5, 10, 25)}  # fmt: skip
        calls["SuperKMeans, two levels"] = lambda X=X, D=D, K=K: SuperKMeans(
            K, D, seed=0, hierarchical=True, **PINNED
        ).train(X)
        for n in (1, 2, 3, 5, 10, 25):
            calls[f"QKMeans, {n} iterations"] = lambda n=n, X=X, K=K: (
                QKMeans(K, max_iter=n, tol=0, random_state=0).fit(X).cluster_centers_
            )
        calls, centers = keeping(calls)
        seconds = alternate(calls, rounds=2, most=30)
        records += [{"data": name, "K": K, "method": key, "seconds": seconds[key],
                     "objective": objective(X, centers[key])} for key in calls]  # fmt: skip
        console.print(f"curve: {name} done")
    show("Time against objective", records, ["data", "K", "method", "seconds", "objective"])
    return records


def clusters():
    """Measure seconds per iteration against K, for D = 784 (MNIST) and D = 2000 (Blobs)."""
    records = []
    for name in ("mnist", "blobs"):
        X = rows(name)
        for K in (16, 64, 256, 1024):
            init = np.ascontiguousarray(X[np.random.default_rng(0).permutation(len(X))[:K]])
            calls = {key: call for key, call in fits(X, K, init, 5).items()
                     if key in ("QKMeans", "sklearn lloyd", "SuperKMeans")}  # fmt: skip
            seconds = alternate(calls, rounds=1, most=12)
            records.append({"data": name, "D": X.shape[1], "K": K,
                            "seconds_per_iteration": {key: value / 5 for key, value in seconds.items()}})  # fmt: skip
        console.print(f"clusters: {name} done")
    show("Seconds per iteration", records, ["data", "D", "K", "seconds_per_iteration"])
    return records


def growth():
    """Measure the fit time against N at K = 1024, D = 256 on a noisy mixture."""
    records = []
    for N in (10_000, 30_000, 100_000, 300_000):
        X, K = noisy_mixture(N, 256), 1024
        init = np.ascontiguousarray(X[np.random.default_rng(0).permutation(N)[:K]])
        calls, centers = keeping({key: call for key, call in fits(X, K, init).items()
                                  if key in ("QKMeans", "sklearn lloyd", "SuperKMeans")})  # fmt: skip
        seconds = alternate(calls, rounds=1, most=12)
        reference = objective(X, centers["sklearn lloyd"])
        ratios = {key: objective(X, c) / reference for key, c in centers.items()}
        records.append({"N": N, "K": K, "D": 256, "seconds": seconds, "objective_over_sklearn": ratios})
        console.print(f"rows: {N} done")
    show("Fit against N", records, ["N", "K", "D", "seconds", "objective_over_sklearn"])
    return records


_MEMORY = """
from benchmarks.data import rows
from quickmeans import QKMeans
from quickmeans.comparison.worker import memory

X = rows({name!r})
QKMeans(4, max_iter=1).fit(X[:100])
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = memory()
QKMeans({K}, max_iter=10, random_state=0).fit(X)
print(memory(peak=True) - before)
"""


def memory():
    """Measure the peak resident memory of a fit, less that before it, each in a process of its own."""
    records = []
    for name, K in [("mnist", 256), ("mnist", 1024), ("blobs", 1024)]:
        D = rows(name).shape[1]
        code = _MEMORY.format(name=name, K=K)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        records.append({"data": name, "K": K, "D": D, "bytes": int(done.stdout), "limit": 4 * K * D * 8 + 100 * 10**6})
    show("Peak memory of a fit above X", records, ["data", "K", "D", "bytes", "limit"])
    return records


def latency():
    """Time the assignment of one row, K = 512, D = 784."""
    X = rows("mnist")
    model = QKMeans(512, max_iter=5, random_state=0).fit(X)
    row = X[:1].copy()
    assignment = Assignment.empty(1, model.assigner_.geometry.dtype)

    def kernel():
        assignment.norms_known = False
        model.assigner_.assign(row, assignment, 1)

    calls = {"predict": lambda: model.predict(row), "beyond validation": kernel,
             "validation": lambda: check_rows(model, row, reset=False)}  # fmt: skip
    seconds = alternate(calls, rounds=2000, most=5)
    records = [{"K": 512, "D": 784, "microseconds": {key: 1e6 * value for key, value in seconds.items()}}]
    show("One row", records, ["K", "D", "microseconds"])
    return records


SECTIONS = {"predict": predict, "fit": fit, "paper": paper, "curve": curve, "clusters": clusters, "rows": growth,
            "memory": memory, "latency": latency}  # fmt: skip


def main():
    warnings.filterwarnings("ignore", category=UserWarning)
    results = load("clustering")
    for name in sys.argv[1:] or SECTIONS:
        results[name] = {"machine": machine("scikit-learn", "superkmeans", "faiss-cpu"), "records": SECTIONS[name]()}
        save("clustering", results)
    console.print("Results are in benchmarks/results/clustering.json")


if __name__ == "__main__":
    main()
