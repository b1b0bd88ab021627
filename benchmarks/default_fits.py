"""One default call of each library, start included, from eight clusters to a hundred thousand: time and objective.

    QUICKMEANS_DATA=... python -m benchmarks.default_fits [K ...]

Every library has its own start and its own number of iterations (faiss and SuperKMeans: 25; two levels are its fast
mode). These two are told to take all rows, which the others do: by default they cluster a sample. Calls take turns, the
best time of up to three counts, and objectives are exact, on at most 40000 of the rows. Calls that take minutes are
left out: scikit-learn and faiss beyond 1000 clusters, the flat mode of SuperKMeans at 100000. Writes
benchmarks/results/default_fits.json.
"""

import argparse
import warnings
from functools import partial

import faiss
import numpy as np
from sklearn.cluster import KMeans
from superkmeans import SuperKMeans

from benchmarks.data import rows
from benchmarks.harness import alternate, console, keeping, load, machine, save, show
from benchmarks.many_clusters import exact_objective, like_words
from quickmeans import QKMeans

NAME, N_TEST = "default_fits", 40_000
PINNED = {"sampling_fraction": 1.0, "max_points_per_cluster": 10**6, "early_termination": False, "n_threads": 2}


def mixture(n_rows=1_000_000, n_columns=128, n_means=200_000):
    """Rows around many means in a subspace of 16 dimensions, and noise in all."""
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((16, n_columns)).astype(np.float32) / 4
    X = rng.standard_normal((n_means, 16)).astype(np.float32)[rng.integers(n_means, size=n_rows)] @ basis
    X += np.float32(0.0875) * rng.standard_normal(X.shape, np.float32)
    return X


CASES = {
    8: ("MNIST", lambda: rows("mnist") / np.float32(255)),
    100: ("Fashion-MNIST", lambda: rows("fashion-mnist") / np.float32(255)),
    1000: ("word vectors", lambda: rows("words")),
    10_000: ("like word vectors", like_words),
    100_000: ("a mixture", mixture),
}


def quick(X, K):
    return QKMeans(K, random_state=0).fit(X).cluster_centers_


def sklearn(X, K):
    return KMeans(K, random_state=0).fit(X).cluster_centers_


def faiss_kmeans(X, K):
    model = faiss.Kmeans(X.shape[1], K, max_points_per_centroid=10**9, min_points_per_centroid=1)
    model.train(X)
    return model.centroids


def super_kmeans(X, K, two_levels):
    return SuperKMeans(K, X.shape[1], hierarchical=two_levels, **PINNED).train(X)


def methods(K):
    """Return the libraries that finish within a minute or so."""
    found = {"QKMeans": quick}
    if K <= 1000:
        found |= {"scikit-learn": sklearn, "faiss": faiss_kmeans}
    if K <= 10_000:
        found["SuperKMeans"] = partial(super_kmeans, two_levels=False)
    return found | {"SuperKMeans, two levels": partial(super_kmeans, two_levels=True)}


def measure(K):
    """Return the record of one number of clusters."""
    data, make = CASES[K]
    X = np.ascontiguousarray(make(), np.float32)
    for call in methods(8).values():
        call(X[:2000], 8)  # libraries load and threads start outside of the measurement
    calls, centers = keeping({name: partial(call, X, K) for name, call in methods(K).items()})
    seconds = alternate(calls, rounds=2, most=25)
    test = X[np.random.default_rng(1).permutation(len(X))[:N_TEST]]
    objectives = {name: exact_objective(test, np.asarray(found)) for name, found in centers.items()}
    peers = [name for name in seconds if name != "QKMeans"]
    return {
        "data": data, "rows": len(X), "features": X.shape[1], "K": K, "machine": machine("scikit-learn", "faiss-cpu",
        "superkmeans"), "seconds": seconds, "objective": objectives,
        "times faster": {name: seconds[name] / seconds["QKMeans"] for name in peers},
        "objective over": {name: objectives["QKMeans"] / objectives[name] for name in peers},
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clusters", nargs="*", type=int, help="all by default", default=list(CASES))
    warnings.simplefilter("ignore")
    for K in parser.parse_args().clusters or CASES:
        record = measure(K)
        show(f"K = {K}", [record], ["data", "rows", "seconds", "times faster", "objective over"])
        records = [r for r in load(NAME).get("records", []) if r["K"] != K] + [record]
        save(NAME, {"records": sorted(records, key=lambda r: r["K"])})
    console.print(f"Results are in benchmarks/results/{NAME}.json")


if __name__ == "__main__":
    main()
