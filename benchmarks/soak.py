"""Hours of work in one process: everything is done by turns, results are checked, and memory must stay flat.

    python -m benchmarks.soak [--seconds 3600]

A turn is one of: a fit of random size and options; a fit interrupted by Ctrl-C; predict; nearest neighbours; rows
removed from an index and others added; a model saved and loaded; a fit killed in a process of its own, which goes on
from its checkpoint. Results are compared with those of NumPy or of another call. Writes benchmarks/results/soak.json
every minute, with the time of the processor beside that of the clock: on a busy machine there are fewer turns.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.harness import console, machine, save
from quickmeans import QKMeans, QKNeighbors, load
from quickmeans.comparison.worker import memory

MIB, MINUTE = 1 << 20, 60.0
SETTLED = 0.25  # of the time, in which caches and pools of threads fill
_KILLED = """
import os, signal, sys
import numpy as np
from quickmeans import QKMeans
def kill(iteration, objective):
    if iteration == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
options = {"random_state": 0, "tol": 0, "max_iter": 6, "search": "none", "checkpoint": sys.argv[2], "callback": kill}
QKMeans(20, **options).fit(np.load(sys.argv[1]))
"""


def distances(X, C):
    """Squared distances by differences, in float64."""
    return ((X[:, None, :].astype(np.float64) - C[None]) ** 2).sum(-1)


class Soak:
    """What the turns share: rows, the last model, an index and the rows that it should have.

    Parameters
    ----------
    folder : Path
        Where files are written.
    seed : int
    """

    def __init__(self, folder, seed=0):
        self.folder, self.rng = folder, np.random.default_rng(seed)
        self.turns = [self.fit, self.interrupted, self.predict, self.save, self.search, self.change, self.killed]
        self.model, self.X = None, None
        self.fit()
        self.rows = self.mixture(4000, 24)
        self.ids = np.arange(len(self.rows))
        self.index = QKNeighbors(n_neighbors=5, n_lists=40, nprobe=40, random_state=0).fit(self.rows, ids=self.ids)

    def mixture(self, n_rows, n_columns):
        """Return rows of 30 clusters."""
        centers = 4 * self.rng.standard_normal((30, n_columns))
        drawn = centers[self.rng.integers(30, size=n_rows)] + self.rng.standard_normal((n_rows, n_columns))
        return drawn.astype(np.float32)

    def options(self):
        """Return the parameters of a fit."""
        kinds = [{}, {"max_iter": 5}, {"shortlist": 0, "compression": 3, "max_iter": 5}, {"metric": "cosine"},
                 {"batch_size": 500, "max_iter": 3}, {"max_cluster_size": 1.5, "max_iter": 5}]  # fmt: skip
        return kinds[self.rng.integers(len(kinds))]

    def fit(self):
        """A model is as good as its inertia says, and every label is that of the nearest centroid."""
        X = self.mixture(int(self.rng.integers(1500, 6000)), int(self.rng.integers(2, 60)))
        options = self.options()
        model = QKMeans(int(self.rng.integers(2, 50)), random_state=0, **options).fit(X)
        assert np.isfinite(model.cluster_centers_).all()
        if "max_cluster_size" in options:
            most = np.bincount(model.labels_).max()
            assert most <= 1.5 * len(X) / model.n_clusters + 1
        elif "metric" not in options and "batch_size" not in options:
            found = distances(X[:300], model.cluster_centers_)
            own = found[np.arange(300), model.labels_[:300]]
            assert own.sum() <= found.min(1).sum() * 1.001
        self.model, self.X = model, X

    def interrupted(self):
        """Ctrl-C leaves a model or nothing, and the next fit works."""
        X = self.mixture(20000, 40)
        timer = threading.Timer(float(self.rng.uniform(0.0, 0.3)), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            QKMeans(60, random_state=0, tol=0).fit(X)
            time.sleep(0.5)  # the signal comes now
        except KeyboardInterrupt:
            pass
        timer.join()

    def predict(self):
        """New rows have the labels that NumPy gives them, and one row those of many."""
        rows = self.mixture(400, self.X.shape[1])
        labels = self.model.predict(rows)
        assert (self.model.predict(rows[:1]) == labels[:1]).all()
        if self.model.metric != "cosine":
            found = distances(rows, self.model.cluster_centers_)
            assert found[np.arange(400), labels].sum() <= found.min(1).sum() * 1.005

    def save(self):
        """A loaded model gives the labels of the saved one."""
        path = self.folder / "model.safetensors"
        self.model.save(path)
        assert (load(path).predict(self.X) == self.model.predict(self.X)).all()

    def search(self):
        """With all lists probed the neighbours are those of NumPy."""
        queries = self.rows[self.rng.choice(len(self.rows), 20)] + 0.1
        _, found = self.index.kneighbors(queries)
        exact = self.ids[np.argsort(distances(queries, self.rows), axis=1, kind="stable")[:, :5]]
        assert (found == exact).mean() > 0.99  # ties may differ

    def change(self):
        """As many rows are added as were removed; the index has what it should have after a saving, too."""
        gone = np.sort(self.rng.choice(len(self.ids), 200, replace=False))
        self.index.remove(self.ids[gone])
        new = self.mixture(200, self.rows.shape[1])
        ids = self.ids.max() + 1 + np.arange(200)
        self.index.add(new, ids=ids)
        self.rows = np.concatenate([np.delete(self.rows, gone, axis=0), new])
        self.ids = np.concatenate([np.delete(self.ids, gone), ids])
        path = self.folder / "index"
        self.index.save(path)
        self.index = load(path)

    def killed(self):
        """A fit that is killed, unless it ends before, goes on from its checkpoint to the end of one that was not."""
        X, rows = self.mixture(2000, 10), self.folder / "rows.npy"
        np.save(rows, X)
        checkpoint = self.folder / "checkpoint"
        checkpoint.unlink(missing_ok=True)
        at = str(self.rng.integers(1, 5))
        done = subprocess.run([sys.executable, "-c", _KILLED, rows, checkpoint, at], check=False)
        assert done.returncode in (-signal.SIGKILL, 0)  # 0: no label changed any more before
        fit = {"n_clusters": 20, "random_state": 0, "tol": 0, "max_iter": 6, "search": "none"}
        resumed = QKMeans(**fit, checkpoint=checkpoint).fit(X)
        whole = QKMeans(**fit, checkpoint=self.folder / "other").fit(X)
        (self.folder / "other").unlink(missing_ok=True)
        assert (resumed.cluster_centers_ == whole.cluster_centers_).all()


def summary(now, counts, sizes):
    """Return what has happened so far: turns, and the memory in the first and the last third of the settled time."""
    late = np.array([size for since, size in sizes if since > SETTLED * now])
    third = max(len(late) // 3, 1)
    first, last = float(np.median(late[:third])), float(np.median(late[-third:]))
    return {
        "seconds": now,
        "processor seconds": sum(os.times()[:4]),
        "turns": dict(sorted(counts.items())),
        "mebibytes": {"after a quarter": first, "at the end": last, "most": float(late.max())},
        "threads of Python": threading.active_count(),
        "open files": len(os.listdir("/proc/self/fd")),
    }


def run(seconds):
    """Take turns until the time is over; yield what has happened every minute, and at the end."""
    counts, sizes, told = Counter(), [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        soak, begin = Soak(Path(folder)), time.perf_counter()
        while (now := time.perf_counter() - begin) < seconds:
            turn = soak.turns[soak.rng.integers(len(soak.turns))]
            turn()
            counts[turn.__name__] += 1
            sizes.append((now, memory() / MIB))
            if now - told > MINUTE:
                told = now
                yield summary(now, counts, sizes)
        yield summary(now, counts, sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # about fits that stop early
    for record in run(arguments.seconds):
        console.print(record, highlight=False)
        save("soak", {"machine": machine()} | record)


if __name__ == "__main__":
    main()
