"""Runs the methods one after the other, each in a process of its own: from the same start, then as by default."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.comparison.methods import METHODS

_ONE_ROUND = 60.0  # a first round that takes more seconds is the only one
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "QUICKMEANS_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """The measurements of a method, or the error that it ended with."""

    method: str
    fit_seconds: float | None = None
    assign_seconds: float | None = None
    objective: float | None = None
    peak_bytes: int | None = None  # of the process, with the rows
    fit_bytes: int | None = None  # of these, what fitting took
    model_bytes: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Comparison:
    """The results of all methods from the same start, and those of their default calls."""

    methods: list[Result]
    defaults: list[Result]


def installed() -> list[str]:
    """Return the methods whose packages are installed."""
    return [name for name, method in METHODS.items() if find_spec(method.package) is not None]


def missing_packages() -> list[str]:
    """Return the packages of the other methods."""
    return sorted({method.package for name, method in METHODS.items() if name not in installed()})


def compare(
    X: NDArray[Any],
    n_clusters: int,
    *,
    n_iter: int = 10,
    seed: int = 0,
    n_threads: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Fit all installed methods to the rows of X in float32; `progress` gets the name of each before it runs.

    First all methods but SuperKMeans start from the same rows, drawn with the seed, and make `n_iter` passes over all
    rows. Then each is called with the number of clusters and the seed only, and chooses its start and when to stop.
    If either part takes less than a minute, its methods run a second time, and the shorter times are kept.
    """
    rows = np.ascontiguousarray(X, np.float32)
    index = np.random.default_rng(seed).permutation(len(rows))[:n_clusters]
    with tempfile.TemporaryDirectory(prefix="quickmeans-") as folder:
        np.save(Path(folder, "rows.npy"), rows)
        np.save(Path(folder, "start.npy"), rows[index])
        run = partial(_run, seed=seed, folder=folder, n_threads=n_threads)
        methods = _rounds(partial(run, n_iter=n_iter), progress)
        defaults = _rounds(partial(run, n_iter=None), lambda name: progress(f"default call of {name}"))
    return Comparison(methods, defaults)


def _rounds(run: Callable[[str], Result], progress: Callable[[str], None]) -> list[Result]:
    """Run all installed methods once, or twice if that is fast."""
    start, results = time.perf_counter(), []
    for name in installed():
        progress(name)
        results.append(run(name))
    if time.perf_counter() - start > _ONE_ROUND:
        return results
    for i, first in enumerate(results):  # a slow moment of the machine must not decide
        progress(f"{first.method} again")
        results[i] = _better(first, run(first.method))
    return results


def _better(first: Result, second: Result) -> Result:
    """Return the first result with the shorter times of both."""
    if first.error is not None or second.error is not None:
        return first
    times = {name: min(getattr(first, name), getattr(second, name)) for name in ("fit_seconds", "assign_seconds")}
    return replace(first, **times)


def _run(name: str, *, n_iter: int | None, seed: int, folder: str, n_threads: int | None) -> Result:
    """Run a method from the start in the folder, or its default call if there is no number of iterations."""
    threads = {} if n_threads is None else dict.fromkeys(_THREADS, str(n_threads))
    command = [sys.executable, "-m", "quickmeans.comparison.worker", name, str(seed), folder]
    command += [] if n_iter is None else [str(n_iter)]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with exit code {done.returncode}"]
        return Result(name, error=lines[-1])
    return Result(name, **json.loads(done.stdout.splitlines()[-1]))
