"""One method in a process of its own: ``python -m quickmeans.comparison.worker METHOD SEED DIRECTORY [ITERATIONS]``.

The directory has rows.npy and start.npy. Without a number of iterations the method is called as by default, with as
many clusters as the start has. The results go to stdout as JSON.
"""

import json
import resource
import sys
import warnings
from pathlib import Path

import numpy as np

from quickmeans.comparison.methods import METHODS, Start
from quickmeans.comparison.objective import objective
from quickmeans.timing import timed

_ROUNDS, _SECONDS = 2, 1.0  # after the first call; no further call that would end after so many seconds
_WARM_UP = 256  # rows of a first fit, in which libraries load their parts and start their threads


def main(name: str, seed: int, folder: Path, n_iter: int | None) -> dict[str, float]:
    """Return the seconds, the objective, the bytes of memory at the peak, and the bytes of the model."""
    method = METHODS[name]
    X, centers = np.load(folder / "rows.npy"), np.load(folder / "start.npy")
    start, few = None if n_iter is None else Start(centers, n_iter), min(len(centers), 4)
    method.fit(X[:_WARM_UP], few, seed, start and Start(X[:few].copy(), 1)).assign(X[:_WARM_UP])
    before = memory()
    fitted, fit = timed(lambda: method.fit(X, len(centers), seed, start), rounds=_ROUNDS, most=_SECONDS)
    _, assign = timed(lambda: fitted.assign(X), rounds=_ROUNDS, most=_SECONDS)
    peak = memory(peak=True)
    return {
        "fit_seconds": fit,
        "assign_seconds": assign,
        "objective": objective(X, np.asarray(fitted.centers)),
        "peak_bytes": peak,
        "fit_bytes": max(peak - before, 0),
        "model_bytes": fitted.n_bytes,
    }


def memory(*, peak: bool = False) -> int:
    """Return the bytes of memory that this process takes now, or took at its peak."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux getrusage includes the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM" if peak else "VmRSS"].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # about iterations that do not suffice, and about empty clusters
    name, seed, folder, *n_iter = sys.argv[1:]
    print(json.dumps(main(name, int(seed), Path(folder), int(n_iter[0]) if n_iter else None)))
