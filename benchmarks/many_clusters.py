"""Many clusters: time and objective of whole fits, the time of a pass against K, and predict.

    python -m benchmarks.many_clusters [fits] [passes] [predict] [--clusters 1024 4096 16384]

Fits are those of 400000 rows like word vectors: differences of neighbours are added to a row, so the rows of a
neighbourhood stay one. Every method begins from its own start; objectives are exact, on 40000 of the rows. SuperKMeans
runs without sampling, with all threads. Writes benchmarks/results/many_clusters.json and docs/many-clusters.png.
"""

import argparse
import time
import warnings
from functools import partial
from subprocess import run

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from benchmarks.data import rows
from benchmarks.harness import DOCS, console, load, machine, save
from quickmeans import QKMeans, kernels

N_ROWS, N_TEST = 400_000, 40_000
FLAT = {1024: (3, 8, 25), 4096: (3, 8, 25), 16384: (3, 8)}  # iterations of flat SuperKMeans
PASS_ROWS, PASS_COLUMNS, PASS_ITERATIONS = 1 << 20, 64, 6


def like_words():
    """Rows of length one: a word vector and a part of the difference of two others of its cluster."""
    X, rng = np.asarray(rows("words"), np.float32), np.random.default_rng(0)
    labels = QKMeans(500, random_state=0, search="none", max_iter=5).fit(X).labels_
    order = np.argsort(labels, kind="stable")
    size = np.bincount(labels, minlength=500)
    first = np.cumsum(size) - size
    cluster = rng.choice(500, N_ROWS, p=size / len(X))
    base, plus, minus = (order[first[cluster] + (rng.random(N_ROWS) * size[cluster]).astype(int)] for _ in range(3))
    out = X[base] + 0.7 * rng.random((N_ROWS, 1), np.float32) * (X[plus] - X[minus])
    return (out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32)


def exact_objective(X, centers):
    """The sum of the squared distances to the nearest centers."""
    C, total = np.ascontiguousarray(centers, np.float32), 0.0
    for begin in range(0, len(X), 2000):
        part = X[begin : begin + 2000]
        total += float((part**2).sum()) - 2 * float((part @ C.T - 0.5 * (C**2).sum(1)).max(1).sum())
    return total


def super_kmeans(X, K, n_iter, *, two_levels):
    """Centers by SuperKMeans, and no steps."""
    from superkmeans import SuperKMeans

    model = SuperKMeans(K, X.shape[1], iters=n_iter, sampling_fraction=1.0, max_points_per_cluster=10**6,
                        early_termination=False, n_threads=2, hierarchical=two_levels)  # fmt: skip
    return model.train(X), []


def add_fit(records, test, K, method, train):
    """Train once, and keep seconds, objective, and the steps if there are any."""
    begin = time.perf_counter()
    centers, steps = train()
    record = {"part": "fits", "K": K, "method": method, "seconds": time.perf_counter() - begin}
    record |= {"objective": exact_objective(test, centers), "steps": steps}
    console.print(f"K = {K}, {method}: {record['seconds']:.1f} s, objective {record['objective']:.1f}")
    keep(records, record)


def quick(X, K, max_iter):
    """Centers by QKMeans, and the objective after every move and iteration with its time."""
    begin, steps = time.perf_counter(), []

    def note(_, value):
        steps.append((time.perf_counter() - begin, value))

    return QKMeans(K, max_iter=max_iter, random_state=0, callback=note).fit(X).cluster_centers_, steps


def fits(records, arguments):
    """Seconds and objective of fits."""
    X = like_words()
    test = X[np.random.default_rng(1).permutation(N_ROWS)[:N_TEST]]
    for K in arguments.clusters:
        add_fit(records, test, K, "SuperKMeans, two levels", partial(super_kmeans, X, K, 5, two_levels=True))
        for n in (1, 2, 4, 20):
            add_fit(records, test, K, f"QKMeans, max_iter={n}", partial(quick, X, K, n))
        for n in FLAT.get(K, ()):
            add_fit(records, test, K, f"SuperKMeans, {n} iterations", partial(super_kmeans, X, K, n, two_levels=False))


def passes(records, arguments):
    """Seconds of an iteration, neighbours included, against K; a mixture of 20000 clusters."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((20000, 16)).astype(np.float32) @ rng.standard_normal((16, PASS_COLUMNS), np.float32)
    X = means[rng.integers(20000, size=PASS_ROWS)]
    X += rng.standard_normal(X.shape, np.float32)
    for K in 2 ** np.arange(10, 19):
        search = kernels.LocalSearch(X, np.ones(len(X)), spherical=False, n_threads=2)
        begin = time.perf_counter()
        search.place(X[rng.choice(len(X), K, replace=False)])
        placed = time.perf_counter()
        n_iter = search.iterate(PASS_ITERATIONS)
        seconds = (time.perf_counter() - placed) / n_iter
        console.print(f"K = {K}: {seconds:.3f} s a pass, {placed - begin:.2f} s to begin")
        record = {"part": "passes", "K": int(K), "method": "QKMeans", "seconds": seconds, "begin": placed - begin}
        keep(records, record)


def predictors(model, C):
    """Functions of rows that give labels, by name."""
    from superkmeans import SuperKMeans

    dense = KMeans(len(C))
    dense.cluster_centers_, dense._n_threads, dense.n_features_in_ = C, 2, C.shape[1]
    peer = SuperKMeans(*C.shape, n_threads=2)
    return {
        "QKMeans": model.predict,
        "QKMeans, exact": partial(model.predict, exact=True),
        "scikit-learn": dense.predict,
        "SuperKMeans": lambda rows: peer.assign(rows, C),
    }


def graph(C, wanted, rows):
    """The fastest search of a graph over the centroids (faiss HNSW) with an objective over exact as low as wanted."""
    import faiss

    index = faiss.IndexHNSWFlat(C.shape[1], 32)
    index.add(C)
    best = exact_objective(rows, C)
    for effort in 2 ** np.arange(4, 12):
        index.hnsw.efSearch = int(effort)
        labels = index.search(rows, 1)[1][:, 0]
        if float(((rows - C[labels]) ** 2).sum()) <= wanted * best:
            break
    return lambda rows: index.search(rows, 1)[1][:, 0]


def predict(records, arguments):
    """Seconds of predict for new rows, and the objective over that of the nearest centers."""
    X = like_words()
    new = X[:N_TEST]
    for K in arguments.clusters:
        model = QKMeans(K, max_iter=3, random_state=0).fit(X[N_TEST:])
        C = np.ascontiguousarray(model.cluster_centers_, np.float32)
        best = exact_objective(new, C)
        calls = predictors(model, C)
        calls["faiss HNSW"] = graph(C, float(((new - C[model.predict(new)]) ** 2).sum()) / best, new)
        for method, call in calls.items():
            seconds, labels = np.inf, None
            for _ in range(3):
                begin = time.perf_counter()
                labels = np.asarray(call(new))
                seconds = min(seconds, time.perf_counter() - begin)
            ratio = float(((new - C[labels]) ** 2).sum()) / best
            console.print(f"predict, K = {K}, {method}: {1e3 * seconds:.0f} ms, objective over exact {ratio:.5f}")
            keep(records, {"part": "predict", "K": K, "method": method, "seconds": seconds, "ratio": ratio})


PARTS = {part.__name__: part for part in (fits, passes, predict)}


def keep(records, record):
    """Replace the earlier record of the same case, and write all."""
    commit = run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    records[(record["part"], record["K"], record["method"])] = record | {"commit": commit}
    save(
        "many_clusters",
        {"machine": machine("superkmeans", "scikit-learn", "faiss-cpu"), "records": list(records.values())},
    )


def draw(records):
    """Time against objective for every K, and the time of a pass against K."""
    numbers = sorted({r["K"] for r in records if r["part"] == "fits"})
    figure, panels = plt.subplots(1, len(numbers) + 1, figsize=(4.4 * (len(numbers) + 1), 4), layout="constrained")
    for panel, K in zip(panels, numbers, strict=False):
        own = {r["method"]: r for r in records if r["part"] == "fits" and r["K"] == K}
        lowest = min(r["objective"] for r in own.values())
        last = own.get("QKMeans, max_iter=20")
        if last:
            scale = last["objective"] / last["steps"][-1][1]
            panel.plot([s for s, _ in last["steps"]], [v * scale / lowest for _, v in last["steps"]], ".-",
                       color="#0b6e4f", label="QKMeans")  # fmt: skip
        flat = [r for m, r in own.items() if m.startswith("SuperKMeans") and "levels" not in m]
        flat = sorted((r["seconds"], r["objective"] / lowest) for r in flat)
        panel.plot(*zip(*flat, strict=True), "o-", color="#c8553d", label="SuperKMeans")
        two = own["SuperKMeans, two levels"]
        panel.plot(two["seconds"], two["objective"] / lowest, "s", color="#c8553d", mfc="none", label="two levels")
        panel.set(title=f"K = {K}", xlabel="seconds", ylabel="objective over the lowest", xscale="log")
        panel.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"], minor=False)
        panel.set_xticks([], minor=True)
    points = sorted((r["K"], r["seconds"]) for r in records if r["part"] == "passes")
    panels[-1].loglog(*zip(*points, strict=True), "o-", color="#0b6e4f", base=2)
    panels[-1].set(title=f"a pass, {PASS_ROWS} x {PASS_COLUMNS}", xlabel="K", ylabel="seconds")
    for panel in panels:
        panel.grid(alpha=0.3)
        if panel is not panels[-1]:
            panel.legend()
    figure.savefig(DOCS / "many-clusters.png", dpi=110)


def table(records):
    """The results as Markdown."""
    lines = ["| K | method | seconds | objective |", "|---|---|---|---|"]
    for r in sorted((r for r in records if r["part"] == "fits"), key=lambda r: (r["K"], r["seconds"])):
        lines.append(f"| {r['K']} | {r['method']} | {r['seconds']:.1f} | {r['objective']:.0f} |")
    lines += ["", "| K | predict of 40000 new rows | ms | objective over exact |", "|---|---|---|---|"]
    for r in (r for r in records if r["part"] == "predict"):
        lines.append(f"| {r['K']} | {r['method']} | {1e3 * r['seconds']:.0f} | {r['ratio']:.5f} |")
    return "\n".join(lines) + "\n"


def main():
    """Measure the parts, write the results and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--clusters", type=int, nargs="+", default=[1024, 4096, 16384])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    records = {(r["part"], r["K"], r["method"]): r for r in load("many_clusters").get("records", [])}
    for name in arguments.parts or PARTS:
        PARTS[name](records, arguments)
    draw(list(records.values()))


if __name__ == "__main__":
    main()
