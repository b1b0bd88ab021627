"""``make demo``: nearest centroids of image patches, dense and by a product of sparse matrices.

The patches come from the two photographs that scikit-learn carries. Their centroids are smooth, so a few wavelet
coefficients describe them: U is close to C W with W the 2-D Haar transform (a product of very sparse factors) and C
the largest entries of U W'.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_images
from sklearn.feature_extraction.image import extract_patches_2d

from quickmeans import SparseProduct
from quickmeans.transform import haar

SIDE, N_PATCHES, N_CLUSTERS = 32, 20_000, 512


def main() -> None:
    console = Console()
    console.print(f"Clustering {N_PATCHES} patches of {SIDE} x {SIDE} pixels into {N_CLUSTERS} with scikit-learn ...")
    X = patches()
    kmeans = KMeans(N_CLUSTERS, n_init=1, max_iter=10, init="random", random_state=0).fit(X)
    U, W = kmeans.cluster_centers_, haar_2d(SIDE)
    exact = objective(X, U, kmeans.predict(X))

    table = Table(title=f"Nearest of K = {N_CLUSTERS} centroids in D = {SIDE**2} dimensions, {N_PATCHES} points")
    for name in ("assigned by", "multiply-adds", "ms", "faster", "objective", "same label"):
        table.add_column(name, justify="left" if name == "assigned by" else "right")
    dense = best_time(lambda: kmeans.predict(X))
    table.add_row("scikit-learn", f"{U.size:,}", f"{1e3 * dense:.1f}", "1.0 x", "1.0000", "100.0%")
    labels = kmeans.predict(X)
    for share in (0.10, 0.05, 0.025):
        V = SparseProduct([largest_entries(W @ U.T, share).T, *W.factors])
        ours = V.nearest_row(X)
        seconds = best_time(partial(V.nearest_row, X))
        table.add_row(
            f"product, {100 * share:g}% kept",
            f"{V.macs:,}",
            f"{1e3 * seconds:.1f}",
            f"{dense / seconds:.1f} x",
            f"{objective(X, U, ours) / exact:.4f}",
            f"{(ours == labels).mean():.1%}",
        )
    console.print(table)
    console.print("kept: wavelet coefficients of the centroids; objective: over exact assignment's")


def patches() -> NDArray[np.float32]:
    """Grey patches of the sample photographs as rows, with mean zero."""
    images = [image.mean(axis=2, dtype=np.float32) for image in load_sample_images().images]
    rows = [extract_patches_2d(image, (SIDE, SIDE), max_patches=N_PATCHES // 2, random_state=0) for image in images]
    X: NDArray[np.float32] = np.concatenate(rows).reshape(N_PATCHES, -1)
    X -= X.mean()
    return X


def haar_2d(side: int) -> SparseProduct:
    """The Haar transform of the columns and of the rows of an image that is stored as one vector."""
    factors, eye = haar(side, np.float32).factors, sp.eye_array(side, dtype=np.float32)
    return SparseProduct([*(sp.kron(S, eye) for S in factors), *(sp.kron(eye, S) for S in factors)])


def largest_entries(M: NDArray[Any], share: float) -> NDArray[Any]:
    """M with all but the given share of its entries, the largest, set to zero."""
    threshold = np.quantile(np.abs(M), 1 - share)
    return np.where(np.abs(M) > threshold, M, 0)


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
