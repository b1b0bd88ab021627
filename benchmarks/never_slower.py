"""Is QKMeans ever slower than scikit-learn, with or without its extension by Intel, or than SuperKMeans?

    python -m benchmarks.never_slower [grid transform small sparse blobs one noise] [--rows ...] [--features ...]
                                      [--clusters ...] [--seconds 8] [--dry]

Every cell is one call on one size of data. The candidates of a cell take turns, and the best of several times counts; a
ratio above one is in our favour. The part "noise" times scikit-learn against itself. Libraries that are not installed
are left out. Writes benchmarks/results/never_slower.json, cell by cell; with --dry it only prints.
--rows, --features and --clusters choose cells; other cells keep their earlier results.
"""

import argparse
import warnings
from importlib.util import find_spec
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.utils.validation import check_array, validate_data

from benchmarks.data import blobs as paper_blobs
from benchmarks.harness import alternate, commit, console, keeping, load, machine, save
from quickmeans import QKMeans
from quickmeans.comparison.objective import objective

NAME = "never_slower"
OURS, SKLEARN, INTELEX, SUPER, AGAIN = (
    "QKMeans", "scikit-learn", "scikit-learn-intelex", "SuperKMeans", "scikit-learn again",
)  # fmt: skip
ITERATIONS = 20  # of fits from the same start
# Seconds of a turn, in which short calls are repeated. The threads of OpenBLAS spin for 2^26 cycles after a call, some
# 30 ms, and take a core from whoever comes next; most of a turn comes later than that.
TURN = 0.1
# SuperKMeans looks at all rows in every iteration and stops after as many as it is told, as the others do.
PINNED = {"sampling_fraction": 1.0, "max_points_per_cluster": 10**6, "early_termination": False, "n_threads": 2}
GRID = (1000, 10000, 100000, 1000000), (2, 10, 50, 200), (2, 8, 32, 128)
TRANSFORM = (1000, 20000, 200000), (2, 50, 784), (8, 64, 512)
SPARSE = (20000, 5000, 0.01, 50), (20000, 100000, 0.001, 20), (100000, 30000, 0.003, 100)
BLOBS = (32, 256)
ONE = (10, 10), (64, 10), (784, 100)  # features, clusters
NOISE = (1000, 10, 8), (10000, 50, 32), (100000, 10, 8)
MOST_ENTRIES = 5e7  # of rows: 400 MB in float64
MOST_RESULTS = 5e7  # of distances


def estimators(*, extended=True):
    """Return the classes with the interface of scikit-learn's KMeans, with its extension by Intel if it is there."""
    found = {OURS: QKMeans, SKLEARN: KMeans}
    if extended and find_spec("sklearnex"):
        from sklearnex.cluster import KMeans as Extended

        found[INTELEX] = Extended
    return found


class Cells:
    """Measured cells, which are shown at once and stored unless it is a dry run.

    Parameters
    ----------
    arguments : argparse.Namespace
        The options of the program.
    """

    def __init__(self, arguments):
        self.arguments, self.measured, self.commit = arguments, [], commit()
        earlier = load(NAME).get("records", [])
        self.records = {_key(record): record for record in earlier}

    def wants(self, rows, features, clusters):
        """Return whether the options choose this size."""
        chosen = self.arguments.rows, self.arguments.features, self.arguments.clusters
        return all(not c or size in c for c, size in zip(chosen, (rows, features, clusters), strict=True))

    def measure(self, part, call, size, calls, rounds=5, quality=None):
        """Time calls by turns, store ratios to ours, and return the last results.

        `size` is (rows, features, clusters, dtype); `quality` computes the objective of a result.
        """
        calls, results = keeping(calls)
        seconds = alternate(calls, rounds=rounds, least=TURN, most=self.arguments.seconds)
        first = next(iter(seconds))
        record = dict(zip(("part", "call", "rows", "features", "K", "dtype"), (part, call, *size), strict=True))
        record |= {"commit": self.commit, "seconds": seconds}
        record["ratio"] = {name: value / seconds[first] for name, value in seconds.items() if name != first}
        if quality is not None:
            found = {name: quality(result) for name, result in results.items()}
            record["objective"] = {name: found[first] / value for name, value in found.items() if name != first}
        self.keep(record)
        return results

    def keep(self, record):
        """Show a record, and store it beside those of other cells."""
        self.measured.append(record)
        self.records[_key(record)] = record
        ratios = ", ".join(f"{ratio:.2f} x {name}" for name, ratio in record["ratio"].items())
        better = "".join(f", objective {value:.4f}" for value in record.get("objective", {}).values())
        size = f"{record['rows']} x {record['features']}, K = {record['K']}, {record['dtype']}"
        console.print(f"{record['part']}, {record['call']}, {size}: {ratios}{better}", highlight=False)
        self.write()

    def write(self):
        """Store all cells, unless it is a dry run."""
        if not self.arguments.dry:
            versions = machine("scikit-learn", "scikit-learn-intelex", "superkmeans")
            save(NAME, {"machine": versions, "records": list(self.records.values())})

    def forget_others(self, part):
        """Drop the cells of a part that an earlier version measured and this run did not."""
        measured = {_key(record) for record in self.measured}
        self.records = {key: r for key, r in self.records.items() if r["part"] != part or key in measured}
        self.write()


def _key(record):
    return tuple(record[name] for name in ("part", "call", "rows", "features", "K", "dtype"))


# ---- parts ----------------------------------------------------------------------------------------------------------


def fits_and_predict(cells, part, X, K, *, rounds=3, dtype="float32", extended=False):
    """Measure a fit from the same start, a default fit, and predict."""
    size = *X.shape, K, dtype
    start = X[np.sort(np.random.default_rng(0).choice(X.shape[0], K, replace=False))]
    start = np.ascontiguousarray(start.toarray() if sp.issparse(start) else start)
    pinned = {"init": start, "n_init": 1, "max_iter": ITERATIONS}

    def fits(options):
        makers = estimators(extended=extended).items()
        return {name: lambda make=make: make(K, **options).fit(X) for name, make in makers}

    def inertia(model):
        return float(model.inertia_)

    models = cells.measure(part, "fit, same start", size, fits(pinned), rounds, inertia)
    cells.measure(part, "default fit", size, fits({"random_state": 0}), rounds, inertia)
    cells.measure(part, "predict", size, {name: lambda m=m: m.predict(X) for name, m in models.items()})


def grid(cells):
    """Measure dense rows of many sizes."""
    for N, D, K in product(*GRID):
        if N * D > MOST_ENTRIES or N < 8 * K or N * D * K > 2e9 or not cells.wants(N, D, K):
            continue
        X = make_blobs(N, D, centers=max(3, K), cluster_std=3, random_state=1)[0].astype(np.float32)
        fits_and_predict(cells, "grid", X, K, rounds=3 if N <= 10000 else 2 if N <= 100000 else 1, extended=True)


def transform(cells):
    """Measure distances from all centroids."""
    for (N, D, K), dtype in product(product(*TRANSFORM), (np.float32, np.float64)):
        if N * D > MOST_ENTRIES or N * K > MOST_RESULTS or not cells.wants(N, D, K):
            continue
        X = make_blobs(N, D, centers=K, cluster_std=3, random_state=1)[0].astype(dtype)
        start = X[np.random.default_rng(0).choice(N, K, replace=False)].copy()
        makers = estimators(extended=False).items()
        fitted = {name: make(K, init=start, n_init=1, max_iter=2).fit(X[:2000]) for name, make in makers}
        calls = {name: lambda model=model, X=X: model.transform(X) for name, model in fitted.items()}
        cells.measure("transform", "transform", (N, D, K, np.dtype(dtype).name), calls, 4)


def small(cells):
    """Measure 200 default fits of 300 x 4, with three clusters."""
    if not cells.wants(300, 4, 3):
        return
    sets = [make_blobs(300, 4, centers=3, random_state=seed)[0].astype(np.float32) for seed in range(200)]

    def calls(make):
        return lambda: sum(make(3, random_state=i).fit(X).inertia_ for i, X in enumerate(sets))

    named = {name: calls(make) for name, make in estimators().items()}
    cells.measure("small", "200 default fits", (300, 4, 3, "float32"), named, 3, float)


def topics(n_rows, n_columns, density, n_topics):
    """Return sparse rows; seven of ten entries lie in the twentieth of the columns that belongs to the row's topic."""
    rng, per_row = np.random.default_rng(0), int(density * n_columns)
    pools = rng.integers(n_columns, size=(n_topics, n_columns // 20))
    chosen = pools[rng.integers(n_topics, size=n_rows)[:, None], rng.integers(pools.shape[1], size=(n_rows, per_row))]
    anywhere = rng.integers(n_columns, size=(n_rows, per_row))
    columns = np.where(rng.random((n_rows, per_row)) < 0.7, chosen, anywhere)
    starts, values = np.arange(0, columns.size + 1, per_row), rng.random(columns.size, np.float32)
    X = sp.csr_matrix((values, columns.ravel(), starts), shape=(n_rows, n_columns))
    X.sum_duplicates()
    return X


def sparse(cells):
    """Measure compressed sparse rows."""
    for N, D, density, K in SPARSE:
        if cells.wants(N, D, K):
            fits_and_predict(cells, "sparse", topics(N, D, density, K), K, rounds=1, dtype="float32, CSR")


def blobs(cells):
    """Measure the paper's Blobs, also against SuperKMeans, which draws its own start."""
    X = paper_blobs() if any(cells.wants(29000, 2000, K) for K in BLOBS) else None
    for K in BLOBS:
        if not cells.wants(29000, 2000, K):
            continue
        fits_and_predict(cells, "blobs", X, K, rounds=1)
        if find_spec("superkmeans"):
            super_kmeans(cells, X, K)


def super_kmeans(cells, X, K):
    """Measure Blobs against SuperKMeans: so many iterations, a default fit, and the assignment of all rows."""
    from superkmeans import SuperKMeans

    size = *X.shape, K, "float32"
    start = X[np.sort(np.random.default_rng(0).choice(len(X), K, replace=False))].copy()
    ours = {"init": start, "n_init": 1, "max_iter": ITERATIONS, "tol": 0}
    for call, mine, theirs in (
        (f"{ITERATIONS} iterations", ours, PINNED | {"iters": ITERATIONS}),
        ("default fit, SuperKMeans pinned", {"random_state": 0}, PINNED),
    ):
        calls = {
            OURS: lambda options=mine: QKMeans(K, **options).fit(X).cluster_centers_,
            SUPER: lambda options=theirs: SuperKMeans(K, X.shape[1], seed=0, **options).train(X),
        }
        centers = cells.measure("blobs", call, size, calls, 1, lambda centers: objective(X, np.asarray(centers)))
    model = QKMeans(K, init=centers[OURS], n_init=1, max_iter=1).fit(X)
    peer, fixed = SuperKMeans(K, X.shape[1], n_threads=PINNED["n_threads"]), model.cluster_centers_
    calls = {OURS: lambda: model.predict(X), SUPER: lambda: peer.assign(X, fixed)}
    cells.measure("blobs", "predict, SuperKMeans", size, calls, 3)


def one(cells):
    """Measure predict for a single row against the validation of that row by scikit-learn alone."""
    for D, K in ONE:
        if not cells.wants(1, D, K):
            continue
        X = make_blobs(2000, D, centers=K, random_state=0)[0].astype(np.float32)
        models = {name: make(K, n_init=1, max_iter=5, random_state=0).fit(X) for name, make in estimators().items()}
        row = X[:1].copy()
        calls = {name: lambda model=model, row=row: model.predict(row) for name, model in models.items()}
        plain = models[SKLEARN]
        calls["validate_data"] = lambda plain=plain, row=row: validate_data(plain, row, reset=False)
        calls["check_array"] = lambda row=row: check_array(row)
        cells.measure("one", "predict of one row", (1, D, K, "float32"), calls, 8)


def noise(cells):
    """Measure scikit-learn against itself."""
    for N, D, K in NOISE:
        if not cells.wants(N, D, K):
            continue
        X = make_blobs(N, D, centers=K, cluster_std=3, random_state=1)[0].astype(np.float32)
        size = N, D, K, "float32"

        def fit(X=X, K=K):
            return KMeans(K, init=X[:K].copy(), n_init=1, max_iter=ITERATIONS).fit(X)

        model = cells.measure("noise", "fit, same start", size, {SKLEARN: fit, AGAIN: lambda fit=fit: fit()})[SKLEARN]
        for call in ("predict", "transform"):
            method = getattr(model, call)
            calls = {SKLEARN: lambda m=method, X=X: m(X), AGAIN: lambda m=method, X=X: m(X)}
            cells.measure("noise", call, size, calls)


PARTS = {part.__name__: part for part in (grid, transform, small, sparse, blobs, one, noise)}

# ---- results --------------------------------------------------------------------------------------------------------


def summaries(records):
    """Return a dictionary per part, call and peer: cells, cells below one, the least and the median ratio."""
    groups = {}
    for record in records:
        for peer, ratio in record["ratio"].items():
            groups.setdefault((record["part"], record["call"], peer), []).append((ratio, record))
    return [
        {
            "part": part,
            "call": call,
            "peer": peer,
            "cells": len(found),
            "below": sum(ratio < 1 for ratio, _ in found),
            "least": min(ratio for ratio, _ in found),
            "median": float(np.median([ratio for ratio, _ in found])),
            "worst": min(found, key=lambda pair: pair[0])[1],
        }
        for (part, call, peer), found in groups.items()
    ]


def table(records):
    """Return the summaries as a table in Markdown."""
    lines = [
        "| part | call | against | cells | below 1.0 | least | at N, D, K | median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in summaries(records):
        at = f"{s['worst']['rows']}, {s['worst']['features']}, {s['worst']['K']}"
        cells = s["part"], s["call"], s["peer"], s["cells"], s["below"], f"{s['least']:.2f}", at, f"{s['median']:.2f}"
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--features", type=int, nargs="+")
    parser.add_argument("--clusters", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=8.0, help="no round of a cell begins that would end later")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - PARTS.keys():
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    cells = Cells(arguments)
    for name in arguments.parts or PARTS:
        PARTS[name](cells)
        if not (arguments.rows or arguments.features or arguments.clusters):
            cells.forget_others(name)
    for s in summaries(cells.measured):
        console.print(
            f"{s['part']}, {s['call']}, against {s['peer']}: {s['below']} of {s['cells']} cells below 1.0, "
            f"least {s['least']:.2f}, median {s['median']:.2f}",
            highlight=False,
        )


if __name__ == "__main__":
    main()
