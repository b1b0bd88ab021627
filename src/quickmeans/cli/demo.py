"""``make demo``: nearest centroids of image patches, dense and by a learned product of sparse matrices.

The patches come from the two photographs that scikit-learn carries. Their centroids are found by scikit-learn, factored
once, and then every patch is assigned by both.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_images
from sklearn.feature_extraction.image import extract_patches_2d

from quickmeans.transform import sparse_als

SIDE, N_PATCHES, N_CLUSTERS = 32, 20_000, 512


def main() -> None:
    console = Console()
    console.print(f"Clustering {N_PATCHES} patches of {SIDE} x {SIDE} pixels into {N_CLUSTERS} with scikit-learn ...")
    X = patches()
    kmeans = KMeans(N_CLUSTERS, n_init=1, max_iter=10, init="random", random_state=0).fit(X)
    U, labels = kmeans.cluster_centers_, kmeans.predict(X)
    sizes = np.bincount(labels, minlength=N_CLUSTERS)

    table = Table(title=f"Nearest of K = {N_CLUSTERS} centroids in D = {SIDE**2} dimensions, {N_PATCHES} points")
    for name in ("assigned by", "multiply-adds", "learned", "ms", "faster", "objective", "same"):
        table.add_column(name, justify="left" if name == "assigned by" else "right")
    dense = best_time(lambda: kmeans.predict(X))
    table.add_row("scikit-learn", f"{U.size:,}", "", f"{1e3 * dense:.1f}", "1.0 x", "1.0000", "100%")
    for compression in (10, 20, 40):
        start = time.perf_counter()
        V = sparse_als(U, compression, weights=sizes).product
        learned = time.perf_counter() - start
        ours, seconds = V.nearest_row(X), best_time(partial(V.nearest_row, X))
        table.add_row(
            f"product, {compression}x",
            f"{V.macs:,}",
            f"{learned:.1f} s",
            f"{1e3 * seconds:.1f}",
            f"{dense / seconds:.1f} x",
            f"{objective(X, U, ours) / objective(X, U, labels):.4f}",
            f"{(ours == labels).mean():.0%}",
        )
    console.print(table)
    console.print("objective: of these labels over that of the exact ones, with the exact centroids")


def patches() -> NDArray[np.float32]:
    """Grey patches of the sample photographs as rows, with mean zero."""
    images = [image.mean(axis=2, dtype=np.float32) for image in load_sample_images().images]
    rows = [extract_patches_2d(image, (SIDE, SIDE), max_patches=N_PATCHES // 2, random_state=0) for image in images]
    X: NDArray[np.float32] = np.concatenate(rows).reshape(N_PATCHES, -1)
    X -= X.mean(axis=0)
    return X


def objective(X: NDArray[Any], U: NDArray[Any], labels: NDArray[Any]) -> float:
    return float(np.square(X - U[labels], dtype=np.float64).sum())


def best_time(call: Callable[[], Any], rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
