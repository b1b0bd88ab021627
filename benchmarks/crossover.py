"""The K and D from which on QKMeans is faster: times of fit and predict and those of scikit-learn, over a grid.

    python -m benchmarks.crossover [mixture patches]

Three iterations from the same rows, default parameters, 10000 rows, processor time on one thread. Prints ratios and
writes benchmarks/results/crossover.json, one entry per data set; the entries of other data sets are kept.
"""

import sys
import time
import warnings

import numpy as np
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.data import noisy_mixture
from benchmarks.harness import alternate, console, keeping, load, machine, save
from quickmeans import QKMeans
from quickmeans.report.patches import patches

N, ITERATIONS = 10_000, 3
CLUSTERS = (16, 64, 256, 1024, 4096)
FEATURES = (16, 64, 256, 1024, 2048)


def photograph_patches(D):
    """Return grey patches: squares, or rectangles where D is not a square."""
    height = 2 ** (int(np.log2(D)) // 2)
    return patches((height, D // height), N)


DATA = {"mixture": lambda D: noisy_mixture(N, D), "patches": photograph_patches}


def compare(X, K):
    """Return the best seconds of both for fit and predict, and the objective over that of scikit-learn."""
    start = X[:: N // K][:K]
    makes = {
        "sklearn": lambda: KMeans(K, init=start, n_init=1, max_iter=ITERATIONS, tol=0).fit(X),
        "QKMeans": lambda: QKMeans(K, init=start, max_iter=ITERATIONS, tol=0, n_threads=1).fit(X),
    }
    fits, models = keeping(makes)
    fit = alternate(fits, rounds=50, most=3.0, clock=time.process_time)
    calls = {name: lambda model=model: model.predict(X) for name, model in models.items()}
    predict = alternate(calls, rounds=50, most=1.5, clock=time.process_time)
    return {
        "fit": fit,
        "predict": predict,
        "objective_ratio": float(models["QKMeans"].inertia_ / models["sklearn"].inertia_),
        "has_product": models["QKMeans"].product_ is not None,
    }


def show(name, records):
    for what in ("fit", "predict"):
        table = Table("K", *(f"D = {D}" for D in FEATURES), title=f"{name}: {what}, times faster than scikit-learn")
        for K in CLUSTERS:
            cells = [record[what]["sklearn"] / record[what]["QKMeans"] for record in records if record["K"] == K]
            table.add_row(str(K), *(f"{cell:.2f}" for cell in cells))
        console.print(table)


def main(names):
    warnings.simplefilter("ignore", ConvergenceWarning)  # after three iterations
    results = load("crossover")
    for name in names or DATA:
        records = []
        for D in FEATURES:
            X = DATA[name](D)
            with threadpool_limits(1):
                records += [{"K": K, "D": D, "N": N, "iterations": ITERATIONS, **compare(X, K)} for K in CLUSTERS]
        results[name] = {"machine": machine("scikit-learn"), "records": records}
        show(name, records)
        save("crossover", results)


if __name__ == "__main__":
    main(sys.argv[1:])
