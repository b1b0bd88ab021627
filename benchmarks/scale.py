"""QKMeans on files, mini-batches and Dask: growth with N, K and D, reading from disk, peers.

    QUICKMEANS_DATA=... python -m benchmarks.scale [SECTION ...] [--files DIRECTORY]

Sections: rows, clusters, columns, disk, overlap, batches, dask, many and chunks (many clusters in files).

Files of up to 10 GB are written to the directory (default: a temporary one); all but the largest are removed again.
Prints tables and writes benchmarks/results/scale.json, one entry per section; `python -m benchmarks.scale plot` draws
docs/scale.png from it.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.data import rows
from benchmarks.harness import DOCS, console, load, machine, save, show
from quickmeans import QKMeans
from quickmeans.comparison.objective import objective

PIECE = 200_000  # rows that are generated at a time


def overlapping(n_rows, n_columns, seed=0):
    """Generate rows in pieces: 4096 centres in a subspace of D / 8 dimensions, with much noise."""
    shape = np.random.default_rng(seed)
    basis = shape.standard_normal((max(n_columns // 8, 4), n_columns)).astype(np.float32) / 4
    centers = shape.standard_normal((4096, len(basis))).astype(np.float32)
    for begin in range(0, n_rows, PIECE):
        rng, n = np.random.default_rng((seed, begin)), min(PIECE, n_rows - begin)
        near = centers[rng.integers(4096, size=n)] + 0.7 * rng.standard_normal((n, len(basis)), np.float32)
        yield near @ basis + rng.standard_normal((n, n_columns), np.float32)


def written(directory, n_rows, n_columns):
    """Return the path of a file of such rows."""
    path = Path(directory) / f"rows-{n_rows}-{n_columns}.npy"
    if not path.exists():
        out = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns))
        for i, piece in enumerate(overlapping(n_rows, n_columns)):
            out[i * PIECE : i * PIECE + len(piece)] = piece
        out.flush()
    return path


_FIT = """
import json, sys, time
import numpy as np
from quickmeans import QKMeans
from quickmeans.comparison.worker import memory

path, options, in_memory = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "memory"
X = np.load(path) if in_memory else path
if options.pop("given", False):
    mapped = np.load(path, mmap_mode="r")
    chosen = np.random.default_rng(0).choice(len(mapped), options["n_clusters"], replace=False)
    options["init"] = np.array(mapped[np.sort(chosen)])
    del mapped
QKMeans(4, max_iter=1).fit(np.random.default_rng(0).random((100, 8), np.float32))
start = time.perf_counter()
model = QKMeans(**{"tol": 0, "random_state": 0} | options).fit(X)
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "peak_bytes": memory(peak=True), "n_iter": model.n_iter_,
                  "objective": model.inertia_, "product": repr(model.product_), "candidates": model.n_candidates_}))
"""


def fitted(path, in_memory=False, **options):
    """Fit in a process of its own; return seconds, peak resident memory of the process, and facts on the model."""
    command = [sys.executable, "-W", "ignore", "-c", _FIT, path, json.dumps(options), "memory" if in_memory else "disk"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def slope(records, key, what):
    """Return the slope of seconds or bytes against the key, both in logarithms, over the upper half of the range."""
    upper = records[len(records) // 2 - 1 :]
    return float(np.polyfit(np.log([r[key] for r in upper]), np.log([r[what] for r in upper]), 1)[0])


def against(directory, key, shapes, n_iter):
    records = []
    for N, D, K in shapes:
        path = written(directory, N, D)
        records.append({"N": N, "D": D, "K": K, "iterations": n_iter,
                        **fitted(path, n_clusters=K, max_iter=n_iter, given=True)})  # fmt: skip
        console.print(f"{key}: {N} {D} {K}: {records[-1]['seconds']:.2f} s")
        if N < 10**7:
            path.unlink()
    show(f"Fit of a file against {key}", records, ["N", "D", "K", "seconds", "peak_bytes", "candidates", "product"])
    slopes = {"slope": slope(records, key, "seconds"), "memory_slope": slope(records, key, "peak_bytes")}
    console.print(slopes)
    return {"records": records} | slopes


def against_rows(directory):
    """Measure fit time and peak memory against N."""
    return against(directory, "N", [(N, 256, 256) for N in (10**5, 10**5 * 3, 10**6, 10**6 * 3, 10**7)], 3)


def against_clusters(directory):
    """Measure fit time and peak memory against K."""
    return against(directory, "K", [(200_000, 256, 2**k) for k in (8, 10, 12, 14, 16)], 2)


def against_columns(directory):
    """Measure fit time and peak memory against D."""
    return against(directory, "D", [(60_000, 2**d, 512) for d in (6, 7, 8, 9, 10, 11, 12)], 3)


def disk(directory):
    """Compare a 10 GB file with a tenth of it in memory: time per byte, and memory."""
    options = {"n_clusters": 1024, "max_iter": 8}
    path = written(directory, 10**7, 256)
    large = fitted(path, **options) | {"bytes": path.stat().st_size}
    console.print(f"disk: {large}")
    small_path = written(directory, 10**6, 256)
    small = min((fitted(small_path, in_memory=True, **options) for _ in range(2)), key=lambda r: r["seconds"])
    small |= {"bytes": small_path.stat().st_size}
    small_path.unlink()
    console.print(f"memory: {small}")
    ratio = (large["seconds"] / large["bytes"]) / (small["seconds"] / small["bytes"])
    console.print(f"time per byte: {ratio:.2f}, peak {large['peak_bytes'] / 1e9:.2f} GB")
    return {"file": large, "memory": small, "time_per_byte": ratio}


def drop_cache(path):
    """Remove the file from the system's cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(call, before=lambda: None, rounds=3):
    best = np.inf
    for _ in range(rounds):
        before()
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def overlap(directory):
    """Time one pass over a file that is not in the system's cache: reading alone, computing alone, both."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from quickmeans.data import open_rows
    from quickmeans.data.stream import StreamRows
    from quickmeans.kmeans.chunk_pass import ChunkPass
    from quickmeans.kmeans.rows import Points

    path = written(directory, 10**6, 256)
    X = np.load(path)
    parquet = path.with_suffix(".parquet")
    table = pa.table({f"x{j}": X[:400_000, j] for j in range(256)})
    pq.write_table(table, parquet, compression="zstd", use_dictionary=False, row_group_size=20_000)
    del table
    model = QKMeans(1024, max_iter=2, random_state=0).fit(X[:100_000])
    variances, records = X[:100_000].var(axis=0, dtype=np.float64), []
    for name, file, held in (("npy", path, X), ("parquet, zstd", parquet, X[:400_000])):
        source = open_rows(file)
        in_memory = open_rows(held)

        def read(source=source):
            for _ in StreamRows(source).blocks():
                pass

        def one_pass(source):
            rows = StreamRows(source)
            points = Points(rows, model.assigner_.geometry, rows.shape[0], variances, n_threads=2)
            ChunkPass(points, 1024).assign(model.assigner_)

        cold = partial(drop_cache, file)
        reading = timed(read, cold)
        computing = timed(lambda source=in_memory: one_pass(source))
        both = timed(lambda source=source: one_pass(source), cold)
        records.append({"file": name, "bytes": file.stat().st_size, "reading": reading, "computing": computing,
                        "both": both, "over_the_longer": both / max(reading, computing),
                        "over_the_sum": both / (reading + computing)})  # fmt: skip
    path.unlink()
    parquet.unlink()
    show("One pass", records, ["file", "bytes", "reading", "computing", "both", "over_the_longer", "over_the_sum"])
    return records


def batches(directory):
    """Time mini-batches until the objective of scikit-learn's is reached; both draw their own start."""
    from sklearn.cluster import MiniBatchKMeans

    records = []
    for name, K, size in (("mnist", 1024, 1024), ("fashion-mnist", 256, 1024), ("words", 512, 1024)):
        X = rows(name)
        peer_model = MiniBatchKMeans(K, batch_size=size, n_init=1, random_state=0)
        peer = partial(peer_model.fit, X)
        theirs = timed(peer, rounds=1)
        goal = objective(X, peer_model.cluster_centers_)
        for n_iter in (1, 2, 3, 4, 5, 6, 8):
            model = QKMeans(K, batch_size=size, max_iter=n_iter, random_state=0)
            ours = timed(partial(model.fit, X), rounds=1)
            reached = objective(X, model.cluster_centers_)
            if reached <= goal:
                break
        for _ in range(0 if theirs > 10 else 3):  # by turns
            theirs = min(theirs, timed(peer, rounds=1))
            ours = min(ours, timed(partial(model.fit, X), rounds=1))
        records.append({"data": name, "K": K, "batch": size, "sklearn": theirs, "ours": ours, "passes": n_iter,
                        "times_faster": theirs / ours, "objective_over_sklearn": reached / goal})  # fmt: skip
    show("Mini-batches to the same objective", records, list(records[0]))
    return records


def on_dask(directory):
    """Compare with dask_ml on two local workers from the same start: seconds per iteration, and bytes of messages."""
    import dask.array as da
    from dask_ml.cluster import KMeans
    from distributed import Client, LocalCluster, wait

    K, D, N = 512, 384, 200_000
    X = np.concatenate(list(overlapping(N, D)))
    init = X[np.random.default_rng(0).permutation(N)[:K]]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        parts = da.from_array(X, chunks=(25_000, D)).persist()
        wait(parts)
        seconds = {}
        fits = {
            "QKMeans": lambda n: QKMeans(K, init=init, max_iter=n, tol=0).fit(parts),
            "dask_ml": lambda n: KMeans(K, init=init, max_iter=n, tol=0).fit(parts),
        }
        models = {}
        for name, fit in fits.items():
            fit(1)
            times = []
            for n in (1, 6):
                start = time.perf_counter()
                models[name] = fit(n)
                times.append(time.perf_counter() - start)
            seconds[name] = (times[1] - times[0]) / 5
            console.print(f"{name}: {times}, {models[name].n_iter_} iterations")
        paper = QKMeans(K, shortlist=0, compression=20, init=init, max_iter=2).fit(parts)
        objectives = {name: objective(X, model.cluster_centers_) for name, model in models.items()}
    dense = 4 * K * D
    record = {
        "K": K, "D": D, "N": N, "seconds_per_iteration": seconds,
        "times_faster": seconds["dask_ml"] / seconds["QKMeans"],
        "objective_over_dask_ml": objectives["QKMeans"] / objectives["dask_ml"],
        "bytes_dense_float32": dense,
        "bytes_screen": len(pickle.dumps(models["QKMeans"].assigner_)),
        "bytes_product_rows": len(pickle.dumps(paper.assigner_)),
        "product": repr(paper.product_),
    }  # fmt: skip
    columns = ["K", "D", "N", "seconds_per_iteration", "times_faster", "objective_over_dask_ml"]
    show("Dask, two workers", [record], [*columns, "bytes_dense_float32", "bytes_screen", "bytes_product_rows"])
    return record


def plot():
    """Draw seconds and peak memory against N, K and D from the stored results."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = load("scale")
    figure, axes = plt.subplots(2, 3, figsize=(11, 5.6), sharex="col")
    kinds = (("seconds", "seconds", "slope", 1), ("peak_bytes", "peak memory, GB", "memory_slope", 1e9))
    for column, (section, key) in enumerate((("rows", "N"), ("clusters", "K"), ("columns", "D"))):
        growth = results[section]["records"]
        records = growth["records"]
        axes[0, column].set_title(", ".join(f"{k} = {records[0][k]}" for k in "NKD" if k != key))
        axes[1, column].set_xlabel(key)
        for axis, (what, name, kind, unit) in zip(axes[:, column], kinds, strict=True):
            axis.loglog([r[key] for r in records], [r[what] / unit for r in records], "o-")
            axis.set_ylabel(name)
            axis.grid(True, which="both", alpha=0.3)
            axis.text(0.05, 0.88, f"slope {growth[kind]:.2f}", transform=axis.transAxes)
    figure.tight_layout()
    figure.savefig(DOCS / "scale.png", dpi=110)


def mixture(directory, n_rows, n_means, n_columns=64):
    """Return the path of a file of rows around means in a subspace of 16 dimensions, and their squared noise."""
    path, sigma, shape = Path(directory) / f"mixture-{n_rows}-{n_means}.npy", 0.0875, np.random.default_rng(0)
    basis = shape.standard_normal((16, n_columns)).astype(np.float32) / 4
    means = shape.standard_normal((n_means, 16)).astype(np.float32) @ basis
    out, noise = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns)), 0.0
    for begin in range(0, n_rows, PIECE):
        rng, n = np.random.default_rng((0, begin)), min(PIECE, n_rows - begin)
        chosen = rng.integers(n_means, size=n)
        apart = np.float32(sigma) * rng.standard_normal((n, n_columns), np.float32)
        out[begin : begin + n] = means[chosen] + apart
        noise += float((apart.astype(np.float64) ** 2).sum())
    out.flush()
    return path, noise


def many(directory, n_rows=4_000_000, n_means=300_000, K=1 << 18):
    """Fit a quarter of a million clusters by one default call to a file that is read into memory."""
    path, noise = mixture(directory, n_rows, n_means)
    found = fitted(path, n_clusters=K, tol=1e-4)
    record = {"N": n_rows, "D": 64, "means": n_means, "K": K, "bytes": path.stat().st_size, "noise": noise,
              "objective_over_noise": found["objective"] / noise, **found}  # fmt: skip
    path.unlink()
    columns = ["N", "K", "bytes", "seconds", "peak_bytes", "n_iter", "objective_over_noise"]
    show("Many clusters in a file", [record], columns)
    return record


SECTIONS = {"rows": against_rows, "clusters": against_clusters, "columns": against_columns, "disk": disk,
            "overlap": overlap, "batches": batches, "dask": on_dask, "many": many,
            "chunks": partial(many, n_rows=9_000_000, n_means=75_000, K=1 << 16)}  # fmt: skip


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "plot", []])
    parser.add_argument("--files")
    given = parser.parse_args()
    if given.sections == ["plot"]:
        plot()
        return
    results = load("scale")
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.sections or SECTIONS:
            records = SECTIONS[name](given.files or temporary)
            results[name] = {"machine": machine("scikit-learn", "dask", "distributed", "dask-ml"), "records": records}
            save("scale", results)
    console.print("Results are in benchmarks/results/scale.json")


if __name__ == "__main__":
    main()
