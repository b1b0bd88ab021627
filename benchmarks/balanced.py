"""Clusters of bounded sizes: time and objective beside k-means-constrained, and the time beside a fit without bounds.

    python -m benchmarks.balanced [--peer] [--only TEXT] [--large]

--peer runs k-means-constrained too, whose flow takes half a minute and more; --only takes the data whose name has this
text; --large runs the fit with 4096 clusters instead.
"""

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.harness import console, load, machine, save, show
from quickmeans import QKMeans


def problems() -> dict[str, np.ndarray]:
    """Return 20000 rows of 32 features of three kinds."""
    rng = np.random.default_rng(0)
    uneven = rng.dirichlet(np.full(60, 2.0))
    mixed = make_blobs((20000 * uneven).astype(int) + 1, 32, cluster_std=4, random_state=0)[0]
    return {
        "normal": rng.standard_normal((20000, 32)).astype(np.float32),
        "100 blobs": make_blobs(20000, 32, centers=100, cluster_std=4, random_state=0)[0].astype(np.float32),
        "60 uneven blobs": mixed.astype(np.float32),
    }


def ours(X: np.ndarray, K: int, **bounds: Any) -> dict[str, Any]:
    """Return time, objective and sizes of the best time of three fits."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        model = QKMeans(K, random_state=0, **bounds).fit(X)
        seconds.append(time.perf_counter() - start)
    sizes = np.bincount(model.labels_, minlength=K)
    return {"seconds": min(seconds), "objective": model.inertia_, "least": int(sizes.min()), "most": int(sizes.max())}


def peer(X: np.ndarray, K: int, most: int) -> dict[str, Any]:
    """Return the same of one run of k-means-constrained."""
    from k_means_constrained import KMeansConstrained

    start = time.perf_counter()
    model = KMeansConstrained(K, size_max=most, n_init=1, random_state=0).fit(X)
    sizes = np.bincount(model.labels_, minlength=K)
    return {
        "seconds": time.perf_counter() - start,
        "objective": float(model.inertia_),
        "least": int(sizes.min()),
        "most": int(sizes.max()),
    }


def small(with_peer: bool, text: str) -> list[dict[str, Any]]:
    """Return the records of all problems, with at most 1.2 times the mean size."""
    records, K = [], 100
    for name, X in problems().items():
        if text not in name:
            continue
        most = int(1.2 * len(X) / K)
        runs = {"no bounds": ours(X, K), "QKMeans": ours(X, K, max_cluster_size=most)}
        if with_peer:
            runs["k-means-constrained"] = peer(X, K, most)
        records += [{"data": name, "method": method, "bound": most} | run for method, run in runs.items()]
    return records


def large() -> list[dict[str, Any]]:
    """Return the records of 400000 rows of 64 features in 4096 clusters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400_000, 64)).astype(np.float32) @ rng.standard_normal((64, 64)).astype(np.float32)
    records = []
    for method, bounds in {"no bounds": {}, "QKMeans": {"max_cluster_size": 1.2}}.items():
        start = time.perf_counter()
        model = QKMeans(4096, random_state=0, **bounds).fit(X)
        seconds, sizes = time.perf_counter() - start, np.bincount(model.labels_, minlength=4096)
        records.append(
            {
                "data": "400000 x 64, K = 4096",
                "method": method,
                "bound": int(1.2 * 400_000 / 4096),
                "seconds": seconds,
                "objective": model.inertia_,
                "least": int(sizes.min()),
                "most": int(sizes.max()),
            }
        )
    return records


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    content = load("balanced") | {"machine": machine()}
    if options.large:
        content["large"] = large()
    else:
        records = small(options.peer, options.only)
        done = {record["data"] for record in records}
        content["small"] = [record for record in content.get("small", []) if record["data"] not in done] + records
    columns = ["data", "method", "bound", "seconds", "objective", "least", "most"]
    show("bounded sizes", content["large" if options.large else "small"], columns)
    console.print(save("balanced", content))


if __name__ == "__main__":
    main()
