"""Nearest-neighbour search and its peers: queries per second, one query, building, the paper's tables.

    QUICKMEANS_DATA=... python -m benchmarks.search [rates:DATA ...] [graph] [build:DATA ...] [paper:DATA ...]

Every ratio is between candidates that took turns in one run. Except in `build`, faiss searches our inverted lists, so
that only the search differs; times are those at equal recall, between measured numbers of probes. Writes
benchmarks/results/search.json, one entry per section.
"""

import sys
import time
from itertools import pairwise

import faiss
import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.data import split
from benchmarks.harness import alternate, console, keeping, load, machine, save
from quickmeans import QKMeans, QKNeighbors

NEIGHBORS = 10
DATA = ("mnist", "fashion-mnist", "words", "blobs", "resampled")
LISTS = (256, 1024, 4096)
PROBES = (2, 4, 8, 16, 32, 64, 128, 256)
BATCHES = (2000, 10000)
ENOUGH = 0.991  # the recall above which nprobe is not increased
TARGETS = (0.90, 0.99)
SINGLE = 600  # queries of which each comes alone


def recall(ids, true, k=NEIGHBORS):
    """Return the share of the k nearest rows that are among the first k ids."""
    return float(np.mean([len(np.intersect1d(a[:k], b[:k])) for a, b in zip(ids, true, strict=True)]) / k)


def truth(X, Q):
    exact = faiss.IndexFlatL2(X.shape[1])
    exact.add(X)
    return exact.search(Q, NEIGHBORS)[1]


def prepared(name):
    """Return rows, at most 2000 queries, and their true neighbours."""
    X, Q, _, _ = split(name)
    X, Q = np.ascontiguousarray(X, np.float32), np.ascontiguousarray(Q[:2000], np.float32)
    return X, Q, truth(X, Q)


def searches(index, plain, Q, nprobe):
    plain.nprobe = nprobe
    return {
        "QKNeighbors": lambda: index.kneighbors(Q, NEIGHBORS, return_distance=False, nprobe=nprobe),
        "faiss IVFFlat": lambda: plain.search(Q, NEIGHBORS)[1],
    }


def shares(index, Q, nprobe, seconds):
    """Return which share of the seconds of a search its two native parts take, each by itself, and Python the rest."""
    parts, rows = index._index, index._index._flat.native
    lists = parts.nearest_lists(Q, nprobe, 2)
    calls = {"coarse": lambda: parts.nearest_lists(Q, nprobe, 2), "scan": lambda: rows.search(Q, lists, NEIGHBORS, 2)}
    found = {key: value / seconds for key, value in alternate(calls, rounds=2, most=1).items()}
    return found | {"python": 1 - sum(found.values())}


def one_by_one(index, plain, Q, nprobe):
    """Return the median and the 99th percentile of microseconds of one query alone."""
    times = {key: [] for key in searches(index, plain, Q[:1], nprobe)}
    for i in range(min(SINGLE, len(Q))):
        for key, call in searches(index, plain, Q[i : i + 1], nprobe).items():
            start = time.perf_counter()
            call()
            times[key].append(1e6 * (time.perf_counter() - start))
    return {key: dict(zip(("median", "p99"), np.percentile(value[50:], (50, 99)).tolist(), strict=True))
            for key, value in times.items()}  # fmt: skip


def rates(name):
    """Measure batches of queries and single ones with several numbers of lists and of probes."""
    X, Q, true = prepared(name)
    records, single = [], []
    for n_lists in LISTS:
        index = QKNeighbors(NEIGHBORS, n_lists=n_lists, nprobe=1, random_state=0).fit(X)
        plain = index.as_faiss_ivf()
        for nprobe in (m for m in PROBES if m <= n_lists / 2):
            seconds = {}
            for size in BATCHES:
                calls, results = keeping(searches(index, plain, np.resize(Q, (size, Q.shape[1])), nprobe))
                seconds[size] = alternate(calls, rounds=2, most=1.5)
            own = shares(index, np.resize(Q, (BATCHES[-1], Q.shape[1])), nprobe, seconds[BATCHES[-1]]["QKNeighbors"])
            for method, ids in results.items():
                records.append({"n_lists": n_lists, "nprobe": nprobe, "method": method,
                                "recall@10": recall(ids[: len(Q)], true),
                                "queries_per_second": {str(n): n / seconds[n][method] for n in BATCHES}})  # fmt: skip
            records[-2]["shares"] = own
            reached = [r["recall@10"] for r in records[-2:]]
            if min(reached) >= TARGETS[0] and not any(r["n_lists"] == n_lists for r in single):
                single.append({"n_lists": n_lists, "nprobe": nprobe, "recall@10": min(reached),
                               "microseconds": one_by_one(index, plain, Q, nprobe)})  # fmt: skip
            if min(reached) > ENOUGH:
                break
    summary = [line for n_lists in LISTS for line in at_targets(records, n_lists)]
    for line in (*summary, *single):
        console.print(name, line)
    return {"records": records, "at_recall": summary, "one_query": single}


def at_targets(records, n_lists):
    """Return the rates at both recalls, their ratio, and the shares of the time."""
    lines = []
    for target in TARGETS:
        for size in map(str, BATCHES):
            own, theirs = ([(r["recall@10"], r["queries_per_second"][size]) for r in records
                            if (r["n_lists"], r["method"]) == (n_lists, method)]
                           for method in ("QKNeighbors", "faiss IVFFlat"))  # fmt: skip
            ours, other = rate_at(own, target), rate_at(theirs, target)
            if ours and other:
                near = min((r for r in records if r["n_lists"] == n_lists and "shares" in r),
                           key=lambda r: abs(r["recall@10"] - target))  # fmt: skip
                lines.append({"n_lists": n_lists, "recall": target, "batch": int(size), "queries_per_second": ours,
                              "times_faiss": ours / other, "shares": near["shares"]})  # fmt: skip
    return lines


def rate_at(line, target):
    """Return queries per second at a recall by log-linear interpolation; None outside the measured range."""
    for (low, slow), (high, fast) in pairwise(sorted(line)):
        if low <= target <= high:
            share = (target - low) / max(high - low, 1e-9)
            return slow ** (1 - share) * fast**share
    return None


def graph():
    """Measure 16384 lists of resampled rows against faiss with an HNSW graph over the centroids as quantizer."""
    X, Q, true = prepared("resampled")
    index = QKNeighbors(NEIGHBORS, n_lists=16384, nprobe=1, random_state=0).fit(X)
    plain, centers = index.as_faiss_ivf(), index.quantizer_.cluster_centers_.astype(np.float32)
    coarse = faiss.IndexHNSWFlat(centers.shape[1], 32)
    coarse.add(centers)
    lists = faiss.IndexIVFFlat(coarse, plain.d, plain.nlist, plain.metric_type)
    lists.replace_invlists(plain.invlists, False)
    lists.ntotal, lists.is_trained = plain.ntotal, True
    records = []
    for nprobe in (16, 32, 64, 128):
        coarse.hnsw.efSearch = max(64, 2 * nprobe)
        calls, results = keeping(searches(index, lists, np.resize(Q, (10000, Q.shape[1])), nprobe))
        calls["faiss, HNSW coarse"] = calls.pop("faiss IVFFlat")
        seconds = alternate(calls, rounds=2, most=8)
        reached = {key: recall(ids[: len(Q)], true) for key, ids in results.items()}
        records.append({"nprobe": nprobe, "recall@10": reached, "seconds": seconds,
                        "times_faster": seconds["faiss, HNSW coarse"] / seconds["QKNeighbors"]})  # fmt: skip
        console.print(records[-1])
    return records


def build(name):
    """Time training and adding, by QKNeighbors and by faiss, and measure the recall of both."""
    X, Q, true = prepared(name)
    n_lists, nprobe = (4096, 32) if name == "resampled" else (1024, 16)

    def theirs():
        index = faiss.index_factory(X.shape[1], f"IVF{n_lists},Flat")
        index.train(X)
        index.add(X)
        return index

    ours = QKNeighbors(NEIGHBORS, n_lists=n_lists, nprobe=1, random_state=0)
    calls, made = keeping({"QKNeighbors": lambda: ours.fit(X), "faiss": theirs})
    seconds = alternate(calls, rounds=2, most=60)
    made["faiss"].nprobe = nprobe
    ids = {"QKNeighbors": ours.kneighbors(Q, NEIGHBORS, False, nprobe=nprobe),
           "faiss": made["faiss"].search(Q, NEIGHBORS)[1]}  # fmt: skip
    record = {"n_lists": n_lists, "nprobe": nprobe, "seconds": seconds,
              "times_faster": seconds["faiss"] / seconds["QKNeighbors"],
              "recall@10": {key: recall(value, true) for key, value in ids.items()}}  # fmt: skip
    console.print(name, record)
    return record


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


def main():
    sections = {f"rates:{name}": lambda name=name: rates(name) for name in DATA} | {"graph": graph}
    sections |= {f"build:{name}": lambda name=name: build(name) for name in DATA}
    sections |= {f"paper:{name}": lambda name=name: paper(name) for name in ("blobs", "mnist", "fashion-mnist")}
    asked = sys.argv[1:] or list(sections)
    for name in asked:
        results = {key: value for key, value in load("search").items() if key in sections}
        results[name] = sections[name]()
        results["machine"] = machine("faiss-cpu", "scikit-learn")
        save("search", results)


if __name__ == "__main__":
    main()
