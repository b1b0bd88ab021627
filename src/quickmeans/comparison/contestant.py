"""One method in a process of its own: ``python -m quickmeans.comparison.contestant METHOD ITERATIONS DIRECTORY``.

The directory has rows.npy and start.npy. The results go to stdout as JSON.
"""

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.comparison.methods import METHODS, Rows

_REPEATS, _PATIENCE = 3, 1.0  # the best of so many runs, but none begins after so many seconds
_WARM = 256  # rows on which libraries make their threads and load their parts


def main(name: str, n_iter: int, folder: Path) -> dict[str, float]:
    """Seconds, the objective, bytes of memory at the most, and bytes of the model."""
    method = METHODS[name]
    X, init = np.load(folder / "rows.npy"), np.load(folder / "start.npy")
    few = min(len(init), 4)
    method.fit(X[:_WARM], X[:few].copy(), 1).assign(X[:_WARM])
    before = memory()
    fitted, fit = _timed(lambda: method.fit(X, init, n_iter))
    _, assign = _timed(lambda: fitted.assign(X))
    peak = memory(peak=True)
    return {
        "fit_seconds": fit,
        "assign_seconds": assign,
        "objective": objective(X, np.asarray(fitted.centers)),
        "peak_bytes": peak,
        "fit_bytes": max(peak - before, 0),
        "model_bytes": fitted.n_bytes,
    }


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the seconds of the fastest run."""
    best, start, result = float("inf"), time.perf_counter(), None
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        result = call()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now - start > _PATIENCE:
            break
    return result, best


def memory(*, peak: bool = False) -> int:
    """Bytes of this process in memory, now or at the most."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says there includes the process that this one was made by
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM" if peak else "VmRSS"].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def objective(X: Rows, centers: NDArray[Any]) -> float:
    """The sum of squared distances to the nearest centroid, the same for all methods: in float64, by blocks."""
    centers, total = centers.astype(np.float64), 0.0
    offsets = np.einsum("kd,kd->k", centers, centers)
    for begin in range(0, len(X), 2048):
        rows = X[begin : begin + 2048].astype(np.float64)
        nearest = (offsets - 2 * (rows @ centers.T)).min(axis=1)
        total += float(np.einsum("id,id->", rows, rows) + nearest.sum())
    return total


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of iterations that were not enough, and of empty clusters
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
