"""Methods one after the other, each in a process of its own, on the same rows and from the same start."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.comparison.methods import METHODS

_PATIENCE = 60.0  # seconds of a first round after which there is no second
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "QUICKMEANS_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """What was measured of a method; or why nothing was."""

    method: str
    fit_seconds: float | None = None
    assign_seconds: float | None = None
    objective: float | None = None
    peak_bytes: int | None = None  # of the process, with the rows
    fit_bytes: int | None = None  # of these, what fitting took
    model_bytes: int | None = None
    error: str | None = None


def installed() -> list[str]:
    """The methods that can take part."""
    return [name for name, method in METHODS.items() if find_spec(method.package) is not None]


def absent() -> list[str]:
    """Packages whose methods cannot."""
    return sorted({method.package for name, method in METHODS.items() if name not in installed()})


def compare(
    X: NDArray[Any],
    n_clusters: int,
    *,
    n_iter: int = 10,
    seed: int = 0,
    n_threads: int | None = None,
    tell: Callable[[str], None] = lambda name: None,
) -> list[Result]:
    """Fit all methods that are installed to the rows of X, in float32; `tell` gets the name of each as it begins.

    All but SuperKMeans start from the same rows, drawn by the seed, and make `n_iter` passes over all rows. Unless that
    takes a minute, all run again, and the shorter times count.
    """
    rows = np.ascontiguousarray(X, np.float32)
    index = np.random.default_rng(seed).permutation(len(rows))[:n_clusters]
    with tempfile.TemporaryDirectory(prefix="quickmeans-") as folder:
        np.save(Path(folder, "rows.npy"), rows)
        np.save(Path(folder, "start.npy"), rows[index])
        start, results = time.perf_counter(), []
        for name in installed():
            tell(name)
            results.append(_run(name, n_iter, folder, n_threads))
        if time.perf_counter() - start > _PATIENCE:
            return results
        for i, first in enumerate(results):  # a slow moment of the machine should not decide
            tell(f"{first.method} again")
            results[i] = _better(first, _run(first.method, n_iter, folder, n_threads))
    return results


def _better(first: Result, second: Result) -> Result:
    """The shorter times of two runs; all else is the same in both."""
    if first.error is not None or second.error is not None:
        return first
    times = {name: min(getattr(first, name), getattr(second, name)) for name in ("fit_seconds", "assign_seconds")}
    return replace(first, **times)


def _run(name: str, n_iter: int, folder: str, n_threads: int | None) -> Result:
    threads = {} if n_threads is None else dict.fromkeys(_THREADS, str(n_threads))
    command = [sys.executable, "-m", "quickmeans.comparison.contestant", name, str(n_iter), folder]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        return Result(name, error=lines[-1])
    return Result(name, **json.loads(done.stdout.splitlines()[-1]))
