"""Nearest-neighbour search and its peers: recall and queries per second, building, the paper's tables, latency.

    QUICKMEANS_DATA=... python -m benchmarks.search [curves:DATA ...] [paper:DATA ...] [build latency]

Every ratio is between candidates that took turns in one run. Except in `build`, faiss searches our inverted lists, so
that only the search differs. Writes benchmarks/results/search.json, one entry per section; `plot` draws
docs/search.png from it.
"""

import sys
import time
from itertools import pairwise

import faiss
import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from benchmarks.data import split
from benchmarks.harness import DOCS, alternate, console, keeping, load, machine, save
from quickmeans import QKMeans, QKNeighbors

NEIGHBORS = 10
LISTS = {"mnist": (256, 1024, 4096, 16384), "fashion-mnist": (256, 1024, 4096), "words": (256, 1024, 4096),
         "blobs": (256, 1024, 4096)}  # fmt: skip
PROBES = (2, 4, 8, 16, 32, 64, 128)
ENOUGH = 0.991  # the recall above which nprobe is not increased
TARGETS = (0.90, 0.99)


def recall(ids, true, k):
    """Return the share of the k nearest rows that are among the first k ids."""
    return float(np.mean([len(np.intersect1d(a[:k], b[:k])) for a, b in zip(ids, true, strict=True)]) / k)


def truth(X, Q):
    exact = faiss.IndexFlatL2(X.shape[1])
    exact.add(X)
    return exact.search(Q, NEIGHBORS)[1]


def with_hnsw(index):
    """Return the same lists with an HNSW graph over the centroids as quantizer."""
    plain, centers = index.as_faiss_ivf(), index.quantizer_.cluster_centers_.astype(np.float32)
    graph = faiss.IndexHNSWFlat(centers.shape[1], 32)
    graph.add(centers)
    lists = faiss.IndexIVFFlat(graph, plain.d, plain.nlist, plain.metric_type)
    lists.replace_invlists(plain.invlists, False)
    lists.ntotal, lists.is_trained = plain.ntotal, True
    return lists, plain, graph


def list_searches(index, Q, nprobe, graph, plain):
    def own(lists):
        lists.nprobe = nprobe
        return lists.search(Q, NEIGHBORS)[1]

    def by_graph():
        faiss.downcast_index(graph.quantizer).hnsw.efSearch = max(64, 2 * nprobe)
        return own(graph)

    return {
        "QKNeighbors": lambda: index.kneighbors(Q, NEIGHBORS, return_distance=False, nprobe=nprobe),
        "faiss IVFFlat": lambda: own(plain),
        "faiss IVFFlat, HNSW coarse": by_graph,
    }


def curves(name):
    X, Q, _, _ = split(name)
    true = truth(X, Q)
    records = []

    def note(method, n_lists, effort, seconds, ids):
        records.append({"data": name, "method": method, "n_lists": n_lists, "effort": effort,
                        "queries_per_second": len(Q) / seconds, "recall@1": recall(ids, true, 1),
                        "recall@10": recall(ids, true, 10)})  # fmt: skip

    for n_lists in LISTS[name]:
        index = QKNeighbors(NEIGHBORS, n_lists=n_lists, nprobe=1, random_state=0).fit(X)
        graph, plain, kept = with_hnsw(index)
        for nprobe in (m for m in PROBES if m <= n_lists / 2):
            calls, results = keeping(list_searches(index, Q, nprobe, graph, plain))
            seconds = alternate(calls, rounds=1)
            for method, ids in results.items():
                note(method, n_lists, nprobe, seconds[method], ids)
            if records[-1]["recall@10"] > ENOUGH:
                break
        del kept
        own = [r for r in records if r["n_lists"] == n_lists and r["method"] == "QKNeighbors"]
        console.print(name, n_lists, [(r["effort"], r["recall@10"], round(r["queries_per_second"])) for r in own])
    if name == "words":
        hnsw = faiss.IndexHNSWFlat(X.shape[1], 32)
        start = time.perf_counter()
        hnsw.add(X)
        console.print(f"HNSW built in {time.perf_counter() - start:.1f} s")
        for ef in (16, 32, 64, 128, 256):
            hnsw.hnsw.efSearch = ef
            calls, results = keeping({"faiss HNSW": lambda: hnsw.search(Q, NEIGHBORS)[1]})
            note("faiss HNSW", None, ef, alternate(calls, rounds=2)["faiss HNSW"], results["faiss HNSW"])
    brute = NearestNeighbors(algorithm="brute").fit(X)
    queries = Q[:1000]
    seconds = alternate({"brute": lambda: brute.kneighbors(queries, NEIGHBORS)}, rounds=1)["brute"]
    note("sklearn brute force", None, None, seconds * len(Q) / len(queries), true)
    frontier = {str(target): best_rates(records, target) for target in TARGETS}
    for target, rates in frontier.items():
        console.print(f"{name}: queries per second at recall {target}", rates)
    return {"records": records, "queries_per_second_at_recall": frontier}


def rate_at(line, target):
    """Return queries per second at a recall by log-linear interpolation; None outside the measured range."""
    line = sorted(line, key=lambda r: r["recall@10"])
    for low, high in pairwise(line):
        if low["recall@10"] <= target <= high["recall@10"]:
            share = (target - low["recall@10"]) / max(high["recall@10"] - low["recall@10"], 1e-9)
            return low["queries_per_second"] ** (1 - share) * high["queries_per_second"] ** share
    return None


def best_rates(records, target):
    """Return for every method the rate at the target with each number of lists, and the best of them."""
    result = {}
    for method in dict.fromkeys(r["method"] for r in records):
        own = [r for r in records if r["method"] == method]
        rates = {str(n): rate_at([r for r in own if r["n_lists"] == n], target)
                 for n in dict.fromkeys(r["n_lists"] for r in own)}  # fmt: skip
        known = [rate for rate in rates.values() if rate]
        result[method] = {"best": max(known, default=None), "by_lists": rates}
    return result


def build():
    """Time training and adding, by QKNeighbors and by faiss, and measure the recall of both."""
    records = []
    for name, n_lists, nprobe in (("mnist", 1024, 8), ("fashion-mnist", 1024, 8), ("words", 1024, 32)):
        X, Q, _, _ = split(name)
        true = truth(X, Q)

        def ours(X=X, n_lists=n_lists):
            return QKNeighbors(NEIGHBORS, n_lists=n_lists, nprobe=1, random_state=0).fit(X)

        def theirs(X=X, n_lists=n_lists):
            index = faiss.index_factory(X.shape[1], f"IVF{n_lists},Flat")
            index.train(X)
            index.add(X)
            return index

        calls, made = keeping({"QKNeighbors": ours, "faiss": theirs})
        seconds = alternate(calls, rounds=2, most=60)
        made["faiss"].nprobe = nprobe
        ids = {"QKNeighbors": made["QKNeighbors"].kneighbors(Q, NEIGHBORS, False, nprobe=nprobe),
               "faiss": made["faiss"].search(Q, NEIGHBORS)[1]}  # fmt: skip
        records.append({"data": name, "n_lists": n_lists, "nprobe": nprobe, "seconds": seconds,
                        "times_faster": seconds["faiss"] / seconds["QKNeighbors"],
                        "recall@10": {key: recall(value, true, 10) for key, value in ids.items()}})  # fmt: skip
        console.print(records[-1])
    return records


def paper(name):
    """Measure the 1NN accuracy of one and two clusters on all test rows, and the time of the first thousand queries."""
    X, Q, y, z = split(name)
    records, queries = [], Q[:1000]
    n_iter = 10 if name == "blobs" else 20
    for K in (128, 256, 512) if name == "blobs" else (10, 16, 30):
        for seed in range(2):
            start = X[np.random.default_rng(seed).choice(len(X), K, replace=False)]
            kmeans = KMeans(K, init=start, n_init=1, max_iter=n_iter, tol=1e-6).fit(X)
            lists = QKNeighbors(1, quantizer=QKMeans(K, init=kmeans.cluster_centers_, max_iter=1), nprobe=1).fit(X)
            plain = lists.as_faiss_ivf()
            ours = QKNeighbors(1, quantizer=QKMeans(K, init=start, max_iter=n_iter), nprobe=1).fit(X)
            calls = {
                "K-means, one cluster": lambda Q, p=plain, k=kmeans: scan_one(p, k, Q),
                "QKNeighbors, one cluster": lambda Q, o=ours: o.kneighbors(Q, 1, False, nprobe=1),
                "QKNeighbors, two clusters": lambda Q, o=ours: o.kneighbors(Q, 1, False, nprobe=2),
            }
            seconds = alternate({key: lambda c=call, Q=queries: c(Q) for key, call in calls.items()}, rounds=2, most=6)
            for method, call in calls.items():
                records.append({"K": K, "seed": seed, "method": method,
                                "accuracy": float((y[call(Q)[:, 0]] == z).mean()),
                                "microseconds_per_query": seconds[method] / len(queries) * 1e6})  # fmt: skip
        console.print(name, K, {r["method"]: (r["accuracy"], round(r["microseconds_per_query"]))
                                for r in records if r["K"] == K})  # fmt: skip
    for algorithm in ("brute", "kd_tree", "ball_tree"):
        model = KNeighborsClassifier(1, algorithm=algorithm).fit(X, y)
        seconds = alternate({"": lambda m=model, Q=Q[:20]: m.predict(Q)}, rounds=0)[""]
        records.append({"K": None, "method": f"sklearn {algorithm}", "microseconds_per_query": seconds / 20 * 1e6})
        console.print(records[-1])
    return records


def scan_one(lists, kmeans, Q):
    """Search with K-means: scikit-learn's predict, then faiss inside the cluster."""
    labels = kmeans.predict(Q).astype(np.int64)[:, None]
    lists.nprobe, lists.parallel_mode = 1, 3
    return lists.search_preassigned(Q, 1, labels, np.zeros(labels.shape, np.float32))[1]


def latency():
    """Time one query at a time."""
    records = []
    for name, n_lists, nprobe in (("mnist", 1024, 8), ("mnist", 4096, 16), ("words", 1024, 16)):
        X, Q, _, _ = split(name)
        index = QKNeighbors(NEIGHBORS, n_lists=n_lists, nprobe=nprobe, random_state=0).fit(X)
        plain = index.as_faiss_ivf()
        calls = {"QKNeighbors": lambda q, i=index: i.kneighbors(q), "faiss IVFFlat": lambda q, p=plain: p.search(q, 10)}
        times = {key: [] for key in calls}
        for i in range(2000):
            for key, call in calls.items():
                start = time.perf_counter()
                call(Q[i : i + 1])
                times[key].append(1e6 * (time.perf_counter() - start))
        records.append({"data": name, "n_lists": n_lists, "nprobe": nprobe, "microseconds": {
            key: dict(zip(("p50", "p99"), np.percentile(value[100:], (50, 99)).tolist(), strict=True))
            for key, value in times.items()}})  # fmt: skip
        console.print(records[-1])
    return records


def plot():
    import matplotlib.pyplot as plt

    results = load("search")
    names = [key.split(":")[1] for key in results if key.startswith("curves:")]
    colours = {"QKNeighbors": "#0b6e4f", "faiss IVFFlat": "#c8553d", "faiss IVFFlat, HNSW coarse": "#e09f3e",
               "faiss HNSW": "#3d5a80", "sklearn brute force": "black"}  # fmt: skip
    styles = {256: ":", 1024: "-", 4096: "--", 16384: "-.", None: "-"}
    figure, panels = plt.subplots(1, len(names), figsize=(5 * len(names), 4.4), layout="constrained", squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        records = results[f"curves:{name}"]["records"]
        for method, n_lists in dict.fromkeys((r["method"], r["n_lists"]) for r in records):
            line = [r for r in records if (r["method"], r["n_lists"]) == (method, n_lists) and r["recall@10"] > 0.5]
            panel.semilogy([r["recall@10"] for r in line], [r["queries_per_second"] for r in line], "o", ms=3,
                           ls=styles[n_lists], color=colours[method],
                           label=f"{method}, {n_lists} lists" if n_lists else method)  # fmt: skip
        panel.set(title=name, xlabel="recall@10", ylabel="queries per second, in one batch")
        panel.grid(alpha=0.3, which="both")
        panel.legend(fontsize=6)
    figure.savefig(DOCS / "search.png", dpi=120)
    console.print("docs/search.png")


def main():
    sections = {f"curves:{name}": lambda name=name: curves(name) for name in LISTS}
    sections |= {f"paper:{name}": lambda name=name: paper(name) for name in ("blobs", "mnist", "fashion-mnist")}
    sections |= {"build": build, "latency": latency}
    asked = sys.argv[1:] or list(sections)
    for name in asked:
        if name == "plot":
            plot()
            continue
        results = load("search")
        results[name] = sections[name]()
        results["machine"] = machine("faiss-cpu", "scikit-learn")
        save("search", results)


if __name__ == "__main__":
    main()
