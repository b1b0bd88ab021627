"""Clusters of bounded sizes: time and objective beside k-means-constrained, and the time beside a fit without bounds.

    python -m benchmarks.balanced [--peer] [--only TEXT] [--large] [--sweep]

--peer runs k-means-constrained too, whose flow takes half a minute and more; --only takes the data whose name has this
text; --large runs fits with 4096 clusters instead, and --sweep sweeps over eight numbers of clusters.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.harness import alternate, console, keeping, load, machine, save, show
from benchmarks.quality import commit
from quickmeans import QKMeans, sweep

DOUBLED, NEAR = [2, 4, 8, 16, 32, 64, 128, 256], [16, 24, 32, 48, 64, 96, 128, 192]
MANY = [32, 64, 96, 128, 256, 512, 768, 1024]


def problems() -> dict[str, tuple[np.ndarray, float]]:
    """Return 20000 rows of 32 features of three kinds, and the largest size that clusters may have over the mean."""
    rng = np.random.default_rng(0)
    uneven = rng.dirichlet(np.full(60, 2.0))
    mixed = make_blobs((20000 * uneven).astype(int) + 1, 32, cluster_std=4, random_state=0)[0]
    return {
        "normal": (rng.standard_normal((20000, 32)).astype(np.float32), 1.01),
        "skewed": (rng.lognormal(size=(20000, 32)).astype(np.float32), 1.2),
        "60 uneven blobs": (mixed.astype(np.float32), 1.2),
    }


def record(data: str, method: str, bound: int, seconds: float, model: Any, K: int) -> dict[str, Any]:
    """Return what is kept of a fit."""
    sizes, objective = np.bincount(model.labels_, minlength=K), float(model.inertia_)
    found = {"seconds": seconds, "objective": objective, "least": int(sizes.min()), "most": int(sizes.max())}
    return {"commit": commit(), "data": data, "method": method, "bound": bound} | found


def both(data: str, X: np.ndarray, K: int, factor: float, rounds: int) -> list[dict[str, Any]]:
    """Return records of the fits without bounds and with them, which take turns."""
    bounds: dict[str, dict[str, Any]] = {"no bounds": {}, "QKMeans": {"max_cluster_size": factor}}
    calls: dict[str, Callable[[], Any]] = {
        name: lambda kept=kept: QKMeans(K, random_state=0, **kept).fit(X)  # type: ignore[misc]
        for name, kept in bounds.items()
    }
    calls, models = keeping(calls)
    seconds = alternate(calls, rounds=rounds, most=90)
    return [record(data, name, int(factor * len(X) / K), seconds[name], models[name], K) for name in bounds]


def peer(data: str, X: np.ndarray, K: int, factor: float) -> dict[str, Any]:
    """Return the record of one run of k-means-constrained."""
    from k_means_constrained import KMeansConstrained

    most, start = int(factor * len(X) / K), time.perf_counter()
    model = KMeansConstrained(K, size_max=most, n_init=1, random_state=0).fit(X)
    return record(data, "k-means-constrained", most, time.perf_counter() - start, model, K)


def small(with_peer: bool, text: str) -> list[dict[str, Any]]:
    """Return the records of all problems whose name has this text."""
    records, K = [], 100
    for name, (X, factor) in problems().items():
        if text in name:
            records += both(name, X, K, factor, 3)
            records += [peer(name, X, K, factor)] if with_peer else []
    return records


def large() -> list[dict[str, Any]]:
    """Return the records of 400000 rows of 64 features in 4096 clusters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400_000, 64)).astype(np.float32) @ rng.standard_normal((64, 64)).astype(np.float32)
    return both("400000 x 64, K = 4096", X, 4096, 1.2, 3)


def swept() -> list[dict[str, Any]]:
    """Return the times of sweeps over eight numbers of clusters, and of a fit of the largest of them."""
    X = np.random.default_rng(0).standard_normal((200_000, 64)).astype(np.float32)
    records = []
    problems_and_ks = [(name, rows, ks) for name, (rows, _) in problems().items() for ks in (DOUBLED, NEAR)]
    for data, rows, ks in [*problems_and_ks, ("200000 x 64", X, MANY)]:
        calls, results = keeping(
            {
                "largest fit": lambda X=rows, ks=ks: QKMeans(ks[-1], random_state=0).fit(X),  # type: ignore[misc]
                "sweep": lambda X=rows, ks=ks: sweep(X, ks, random_state=0).models[-1],  # type: ignore[misc]
            }
        )
        seconds = alternate(calls, rounds=5, most=10)
        for method, model in results.items():
            found = {"clusters": ks, "seconds": seconds[method], "objective": float(model.inertia_)}
            records.append({"commit": commit(), "data": data, "method": method} | found)
    return records


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--sweep", action="store_true")
    options = parser.parse_args()
    part = "large" if options.large else "sweep" if options.sweep else "small"
    content = load("balanced") | {"machine": machine("k-means-constrained")}
    if part == "small":
        records = small(options.peer, options.only)
        done = {record["data"] for record in records}
        content["small"] = [record for record in content.get("small", []) if record["data"] not in done] + records
    else:
        content[part] = large() if options.large else swept()
    columns = ["data", "method", "bound", "seconds", "objective", "least", "most"]
    show(part, content[part], [column for column in columns if column in content[part][0]])
    console.print(save("balanced", content))


if __name__ == "__main__":
    main()
