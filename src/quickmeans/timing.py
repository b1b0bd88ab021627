"""Time of calls side by side, and the machine they run on."""

import os
import platform
import random
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def alternate(
    candidates: dict[str, Callable[[], Any]],
    *,
    rounds: int = 7,
    least: float = 2e-3,
    most: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the best seconds per call of each candidate; the parameters are those of `by_turns`."""
    return {name: min(times) for name, times in by_turns(candidates, rounds, least, most, clock).items()}


def by_turns(
    candidates: dict[str, Callable[[], Any]],
    rounds: int,
    least: float,
    most: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds per call of each candidate: of one first call, and of every round.

    The candidates take turns in a new order in every round, so that a slow moment of the machine hits all of them, and
    none always runs while the threads of the same other library still spin. Fast candidates are repeated to last
    `least` seconds; no round begins that would end after `most` seconds. With ``clock=time.process_time`` the result
    is processor time, on which other programs of the machine have little influence.
    """
    times = {name: [_seconds(call, 1, clock)] for name, call in candidates.items()}
    repeats = {name: max(1, int(least / max(first, 1e-9))) for name, (first,) in times.items()}
    start, names = time.perf_counter(), list(candidates)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        if sum(min(times[name]) * repeats[name] for name in names) + time.perf_counter() - start > most:
            break
        shuffle(names)
        for name in names:
            times[name].append(_seconds(candidates[name], repeats[name], clock))
    return times


def timed(call: Callable[[], T], *, rounds: int = 2, most: float = 20.0) -> tuple[T, float]:
    """Return the last result of a call and its best seconds."""
    results: list[T] = []

    def keep() -> None:
        results[:] = [call()]

    seconds = alternate({"call": keep}, rounds=rounds, most=most)["call"]
    return results[0], seconds


def _seconds(call: Callable[[], Any], repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


def machine(*packages: str) -> dict[str, Any]:
    """Return the processor, the memory and the versions of packages."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    versions: dict[str, str | None] = {}
    for package in ("quickmeans", "numpy", "scipy", *packages):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "versions": versions,
    }
