"""The constants of Nyström features: prints what each of them is chosen by.

    QUICKMEANS_DATA=... python -m benchmarks.thresholds [name of a function below ...]

Times are ratios of calls that took turns in one run.
"""

import sys
from unittest.mock import patch

import numpy as np

from benchmarks.data import split
from benchmarks.harness import alternate
from quickmeans import QKNystroem, SparseProduct
from quickmeans.data.rows import as_rows
from quickmeans.nystroem.structured import Structured


def sample():
    """_SAMPLE of the choice: how far the ratio of two errors on 1000 rows is from that on 4000."""
    for name in ("mnist", "fashion-mnist"):
        X = split(name)[0] / np.float32(255)
        options = {"gamma": "mean-distance", "n_components": 256, "random_state": 0}
        dense, small = (QKNystroem(landmarks=kind, **options).fit(X) for kind in ("kmeans", "qkmeans"))
        for n in (250, 500, 1000, 4000):
            parts = [X[i * 4000 : i * 4000 + n] for i in range(4)]
            ratios = [small.approximation_error(part) / dense.approximation_error(part) for part in parts]
            print(f"{name}: {n} rows: {np.mean(ratios):.4f} +- {np.std(ratios):.4f}")


def refinement():
    """_RATE and _STEPS of refined landmarks: the error of 1000 test rows over that of k-means landmarks."""
    for name in ("mnist", "words", "blobs", "convnet"):
        X, test, *_ = split(name)
        X, test = X / np.abs(X).max(), test[:1000] / np.abs(X).max()
        options = {"gamma": "mean-distance", "n_components": 128, "random_state": 0}
        dense = QKNystroem(landmarks="kmeans", **options).fit(X).approximation_error(test)
        for steps in (0, 30, 60):
            for rate in (0.005, 0.01, 0.02, 0.05)[: 4 if steps else 1]:
                with patch.multiple("quickmeans.nystroem.refinement", _STEPS=steps, _RATE=rate):
                    error = QKNystroem(compression=5, **options).fit(X).approximation_error(test)
                print(f"{name}, {steps} steps, rate {rate}: {error / dense:.3f}", flush=True)


def iterations():
    """_ITERATIONS of structured landmarks: the objective after 5, 10 and 20 iterations."""
    X = split("mnist")[0][:10000].astype(np.float64) / 255
    mean = X.mean(axis=0)
    for K in (30, 256):
        for n in (0, 5, 10, 20):
            structure = Structured("hadamard", K, X.shape[1], np.random.RandomState(0))
            with patch("quickmeans.nystroem.structured._ITERATIONS", n):
                product = structure.learned(as_rows(X), mean, X[: structure.n_blocks] - mean, np.float64, 2)
            _, distances = product.nearest_row(X - mean, return_distance=True)
            print(f"{K} landmarks, {n} iterations: {(distances**2).sum():.5g}")


def power():
    """_MOST_FACTORS of kernels: time of repeated multiplication over that of numpy.power."""
    x = np.abs(np.random.default_rng(0).standard_normal((512, 512))).astype(np.float32)

    def multiplied(degree):
        y = x.copy()
        for _ in range(degree - 1):
            y *= x

    for degree in (2, 3, 4, 8, 12, 16):
        seconds = alternate({"": lambda d=degree: multiplied(d), "power": lambda d=degree: np.power(x, np.float32(d))})
        print(f"degree {degree}: {seconds[''] / seconds['power']:.2f}")


def small():
    """_SMALL of the compression: microseconds per row of dense products, and of ten times smaller ones."""
    rng = np.random.default_rng(0)
    for K, D in ((16, 64), (32, 128), (64, 64), (64, 256), (128, 512)):
        X = rng.standard_normal((20000, D)).astype(np.float32)
        dense = SparseProduct([rng.standard_normal((K, D)).astype(np.float32)])
        sparse = SparseProduct([np.where(rng.random((K, D)) < 0.1, 1, 0).astype(np.float32)])
        seconds = alternate({"dense": lambda X=X, V=dense: V.apply(X), "sparse": lambda X=X, V=sparse: V.apply(X)})
        print(f"{K * D} entries:", {key: round(1e6 * value / len(X), 3) for key, value in seconds.items()})


if __name__ == "__main__":
    sections = (sample, refinement, iterations, power, small)
    for section in sections:
        if not sys.argv[1:] or section.__name__ in sys.argv[1:]:
            print(section.__doc__)
            section()
