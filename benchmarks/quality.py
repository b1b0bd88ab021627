"""Whole default fits, start included: objective and time of QKMeans beside scikit-learn and breathing k-means.

    python -m benchmarks.quality [--seeds 10] [--only TEXT]

For every data set and seed each method makes one default call, in turn; best of ten runs of scikit-learn is added where
that takes seconds. Writes benchmarks/results/quality.json.
"""

import argparse
import time
import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import rows
from benchmarks.harness import commit, load, machine, save, show
from quickmeans import QKMeans

SMALL = 5e7  # rows times features times clusters: the best of ten is run
BREATHING = 2e8  # breathing k-means is run
SEEDS = {1e9: 3, 1e8: 4}  # of which so many are enough above such products


def uneven(n_clusters=60, n_columns=16):
    """Return clusters of very different sizes."""
    rng = np.random.default_rng(0)
    centers, sizes = 4 * rng.standard_normal((n_clusters, n_columns)), 20 + 3000 * rng.random(n_clusters) ** 6
    parts = zip(centers, sizes, strict=True)
    return np.concatenate([c + 0.5 * rng.standard_normal((int(n), n_columns)) for c, n in parts])


def touching(n_columns=30):
    """Return clusters that overlap."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((40, n_columns))
    return centers[rng.integers(40, size=15000)] + 0.8 * rng.standard_normal((15000, n_columns))


def cases():
    """Yield the name of a data set, its rows, the numbers of clusters, and true labels or None."""
    yield "iris", load_iris().data, (3,), None
    yield "wine", load_wine().data, (3, 12), None
    yield "digits", load_digits().data, (10, 50), None
    for n, D, K, std in ((5000, 2, 50, 0.2), (10000, 20, 30, 1), (20000, 64, 100, 1), (30000, 128, 300, 1)):
        X, labels = make_blobs(n, D, centers=K, cluster_std=std, random_state=0)
        yield f"{K} blobs, {D} features", X, (K,), labels if D > 2 else None
    yield "uneven blobs", uneven(), (60,), None
    yield "touching blobs", touching(), (40,), None
    yield "heavy tails", np.random.default_rng(0).standard_t(2.5, (20000, 16)), (50,), None
    yield "uniform, 5 features", np.random.default_rng(0).random((10000, 5)), (80,), None
    yield "MNIST", rows("mnist")[:20000].astype(np.float32) / 255, (10, 100), None
    yield "Fashion-MNIST", rows("fashion-mnist")[:20000].astype(np.float32) / 255, (30, 300), None
    yield "word vectors", rows("words"), (50, 500), None


def methods(X, K, breathing):
    """Return the default call of every method, as a function of the seed."""
    work = len(X) * X.shape[1] * K
    calls = {"scikit-learn": lambda s: KMeans(K, random_state=s), "QKMeans": lambda s: QKMeans(K, random_state=s)}
    if work < SMALL:
        calls["best of ten"] = lambda s: KMeans(K, n_init=10, random_state=s)
    if breathing and work < BREATHING:
        from bkmeans import BKMeans

        calls["breathing"] = lambda s: BKMeans(n_clusters=K, random_state=s)
    return calls


def measure(name, X, K, labels, n_seeds, breathing):
    """Return the record of one data set and number of clusters."""
    calls = methods(X, K, breathing)
    n_seeds = min([n_seeds, *(number for work, number in SEEDS.items() if X.size * K > work)])
    for make in calls.values():
        make(0).fit(X[: max(4 * K, 1000)])  # libraries load and threads start outside of the measurement
    objectives, seconds, agreement = ({method: [] for method in calls} for _ in range(3))
    for seed in range(n_seeds):
        order = list(calls.items())
        for method, make in order if seed % 2 else reversed(order):
            begin = time.perf_counter()
            model = make(seed).fit(X)
            seconds[method].append(time.perf_counter() - begin)
            objectives[method].append(float(model.inertia_))
            if labels is not None:
                agreement[method].append(float(adjusted_rand_score(labels, model.labels_)))
    reference, ours = np.mean(objectives["scikit-learn"]), objectives["QKMeans"]
    record = {
        "data": name,
        "rows": len(X),
        "features": X.shape[1],
        "K": K,
        "seeds": n_seeds,
        "commit": commit(),
        "objective": {method: float(np.mean(values) / reference) for method, values in objectives.items()},
        "worst over mean": float(max(ours) / np.mean(ours)),
        "seconds": {method: float(np.mean(values)) for method, values in seconds.items()},
        "fewest seconds": {method: float(min(values)) for method, values in seconds.items()},
        "times faster": float(np.mean(seconds["scikit-learn"]) / np.mean(seconds["QKMeans"])),
    }
    if labels is not None:
        record["least adjusted Rand index"] = {method: min(values) for method, values in agreement.items()}
    return record


def table(records):
    """Return the records as a table in Markdown."""
    head = (
        "| data | N, D, K | objective | best of ten | breathing | worst seed | scikit-learn, ms | ms | times faster |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    for r in records:
        over = r["objective"]
        cell = [f"{over[m]:.4f}" if m in over else "" for m in ("QKMeans", "best of ten", "breathing")]
        times = [_milliseconds(r["seconds"][m]) for m in ("scikit-learn", "QKMeans")]
        size = f"{r['rows']}, {r['features']}, {r['K']}"
        faster, worst = f"{r['times faster']:.1f}", f"{r['worst over mean']:.4f}"
        lines.append("| " + " | ".join([r["data"], size, *cell, worst, *times, faster]) + " |")
    return "\n".join(lines) + "\n"


def _milliseconds(seconds):
    return f"{1e3 * seconds:.0f}" if seconds > 0.1 else f"{1e3 * seconds:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="data sets whose name has this text")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    records = {(r["data"], r["K"]): r for r in load("quality").get("records", [])}
    for name, X, counts, labels in cases():
        if arguments.only not in name:
            continue
        X = np.ascontiguousarray(X, np.float32)
        for K in counts:
            breathing = find_spec("bkmeans") is not None
            records[name, K] = record = measure(name, X, K, labels, arguments.seeds, breathing)
            show(f"{name}, K = {K}", [record], ["data", "objective", "worst over mean", "seconds", "times faster"])
            save(
                "quality",
                {
                    "machine": machine("scikit-learn", "bkmeans"),
                    "records": list(records.values()),
                },
            )


if __name__ == "__main__":
    main()
