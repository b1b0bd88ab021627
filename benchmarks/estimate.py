"""An iteration of 10^9 rows of 768 numbers with a million clusters on Dask, from constants measured at fewer clusters.

    python -m benchmarks.estimate

What a worker does with a chunk, the message and the client's memory are measured at K = 4096, 8192 and 16384, and
extrapolated: seconds per row by a power of K, bytes in proportion to K. Writes benchmarks/results/estimate.json.
"""

import pickle
import time
import tracemalloc

import numpy as np

from benchmarks.harness import console, machine, save
from quickmeans import QKMeans
from quickmeans.data.memory_rows import ArrayRows
from quickmeans.distributed.reduction import assigned_part, merge_parts
from quickmeans.kmeans.grouped_screens import GroupedScreens
from quickmeans.kmeans.update import ClusterSums

N, D, K = 10**9, 768, 10**6
MEASURED, CHUNK, ROWS = (4096, 8192, 16384), 32_768, 131_072


def rows_of_mixture(n, n_means, n_directions=16):
    """Rows around many means in a subspace."""
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((n_directions, D)).astype(np.float32) / 4
    means = rng.standard_normal((n_means, n_directions)).astype(np.float32)[rng.integers(n_means, size=n)]
    return means @ basis + np.float32(0.0875) * rng.standard_normal((n, D), np.float32)


def measured(points, X, n_clusters):
    """Measure one chunk with so many centers."""
    model = QKMeans(n_clusters, max_iter=2, random_state=0).fit(X)
    centers = model.cluster_centers_ - points.geometry.mean
    choose = GroupedScreens(points, 0, project=False)
    begin = time.perf_counter()
    choose(centers)
    chosen = time.perf_counter()
    screen = choose(centers)
    message = pickle.dumps(screen)
    parts, seconds = [], []
    for _ in range(3):
        start = time.perf_counter()
        parts.append(assigned_part(X[:CHUNK], None, screen, 1))
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    merge_parts(parts)
    merging = time.perf_counter() - start
    tracemalloc.start()
    sums = ClusterSums(centers.shape, points.geometry, points.scatter, 1)
    sums.step(centers)
    choose(centers)
    peak = tracemalloc.get_traced_memory()[1] + centers.nbytes
    tracemalloc.stop()
    return {"K": n_clusters, "calibrating": chosen - begin, "seconds_per_row": min(seconds) / CHUNK,
            "message_bytes": len(message), "part_bytes": len(pickle.dumps(parts[0])), "merging": merging,
            "client_bytes": peak, "groups": screen.groups and screen.groups.count}  # fmt: skip


def estimate(records):
    """Extrapolate to a million clusters."""
    x = np.log([r["K"] for r in records])
    slope, at_one = np.polyfit(x, np.log([r["seconds_per_row"] for r in records]), 1)
    row = float(np.exp(at_one + slope * np.log(K)))
    last, worker = records[-1], CHUNK * (8 * D + 24)
    message, client = (last[name] / last["K"] * K for name in ("message_bytes", "client_bytes"))
    return {"N": N, "D": D, "K": K, "slope": float(slope), "seconds_per_row": row, "core_hours": N * row / 3600,
            "message_bytes": message, "client_bytes": client, "part_bytes_at_most": worker,
            "read_bytes": 4 * N * D}  # fmt: skip


def main():
    X = rows_of_mixture(ROWS, 200_000)
    points = ArrayRows(X).points(QKMeans(4)._settings(), [0])
    records = []
    for n_clusters in MEASURED:
        records.append(measured(points, X, n_clusters))
        console.print(records[-1])
    whole = estimate(records)
    console.print(whole)
    save("estimate", {"machine": machine("numpy"), "measured": records, "estimate": whole})


if __name__ == "__main__":
    main()
