"""``quickmeans demo``: image patches clustered by scikit-learn and by QKMeans, from the same start.

The patches come from the two photographs that scikit-learn carries.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_images
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import extract_patches_2d

from quickmeans import QKMeans

SIDE, N_PATCHES, N_CLUSTERS, N_ITERATIONS = 32, 20_000, 512, 10


@click.command()
def demo() -> None:
    """Print one line per model: how long it took to fit and to assign, how good and how large it is."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # ten iterations are what was asked for
    console = Console()
    console.print(
        f"{N_PATCHES} patches of {SIDE} x {SIDE} pixels, {N_CLUSTERS} clusters, {N_ITERATIONS} iterations ..."
    )
    X = patches()
    same: dict[str, Any] = {"init": X[:: N_PATCHES // N_CLUSTERS][:N_CLUSTERS], "max_iter": N_ITERATIONS, "tol": 0}
    models: dict[str, Any] = {
        "scikit-learn": KMeans(N_CLUSTERS, n_init=1, **same),
        "QKMeans": QKMeans(N_CLUSTERS, **same),
        "with compression=20": QKMeans(N_CLUSTERS, compression=20, **same),
        "the same, shortlist=0": QKMeans(N_CLUSTERS, compression=20, shortlist=0, **same),
    }
    table = Table(title="The same rows to start from")
    for name in ("model", "fit", "assign", "objective", "numbers"):
        table.add_column(name, justify="left" if name == "model" else "right")
    base: tuple[float, float, float] | None = None
    for name, model in models.items():
        fit, assign = seconds(partial(model.fit, X), 1), seconds(partial(model.predict, X), 5)
        base = base or (fit, assign, model.inertia_)
        table.add_row(
            name,
            f"{fit:.2f} s ({base[0] / fit:.1f}x)",
            f"{1e3 * assign:.0f} ms ({base[1] / assign:.1f}x)",
            f"{model.inertia_ / base[2]:.4f}",
            f"{size(model):,}",
        )
    console.print(table)
    console.print(
        "In brackets: times faster. Objective: over that of scikit-learn. Numbers: that make up the centroids."
    )
    console.print(
        "A sparse product (compression=20) takes time to learn and pays when many more rows are to be assigned."
    )


def patches() -> NDArray[np.float32]:
    """Grey patches of the sample photographs as rows, in random order."""
    images = [image.mean(axis=2, dtype=np.float32) for image in load_sample_images().images]
    rows = [extract_patches_2d(image, (SIDE, SIDE), max_patches=N_PATCHES // 2, random_state=0) for image in images]
    X: NDArray[np.float32] = np.concatenate(rows).reshape(N_PATCHES, -1)
    return np.ascontiguousarray(np.random.default_rng(0).permutation(X))


def size(model: Any) -> int:
    """How many numbers the model's centroids take."""
    if getattr(model, "shortlist", None) == 0:
        return int(model.product_.nnz)
    return int(model.cluster_centers_.size)


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The shortest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
