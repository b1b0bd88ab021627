"""From which K and D on QKMeans pays: time of fit and predict against scikit-learn's, over a grid.

    python -m benchmarks.crossover [mixture patches]

Three iterations from the same rows, default parameters, 10000 rows, processor time on one thread. Prints times faster
and writes benchmarks/results/crossover.json, one entry per data; what was not asked for stays as it was.
"""

import sys
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_images
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d
from threadpoolctl import threadpool_limits

from benchmarks.data import noisy_mixture
from benchmarks.harness import alternate, keeping, load, machine, save
from quickmeans import QKMeans

N, ITERATIONS = 10_000, 3
CLUSTERS = (16, 64, 256, 1024, 4096)
FEATURES = (16, 64, 256, 1024, 2048)


def patches(D):
    """Grey square patches of the sample photographs, or rectangles where D is no square."""
    height = 2 ** (int(np.log2(D)) // 2)
    images = [image.mean(axis=2, dtype=np.float32) for image in load_sample_images().images]
    rows = [extract_patches_2d(image, (height, D // height), max_patches=N // 2, random_state=0) for image in images]
    return np.ascontiguousarray(np.random.default_rng(0).permutation(np.concatenate(rows).reshape(N, D)))


DATA = {"mixture": lambda D: noisy_mixture(N, D), "patches": patches}


def compare(X, K):
    """Best seconds of both for fit and predict, and the objective over scikit-learn's."""
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
        Console(width=120).print(table)


def main(names):
    warnings.simplefilter("ignore", ConvergenceWarning)  # three iterations are what was asked for
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
