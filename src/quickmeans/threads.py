"""How many threads a call may use."""

import os

_MOST = 1024


def resolve_threads(n_threads: int | None = None) -> int:
    """The number of threads for one call, 1024 at the most.

    In this order: the argument, ``QUICKMEANS_NUM_THREADS``, ``OMP_NUM_THREADS`` (which joblib and Dask set in their
    workers so that processes do not crowd each other out; ignored if it is no positive number), the processors this
    process may run on.
    """
    if n_threads is not None:
        if isinstance(n_threads, bool) or not hasattr(n_threads, "__index__"):
            raise TypeError(f"n_threads must be a whole number, got {n_threads!r}.")
        if n_threads < 1:
            raise ValueError(f"n_threads must be at least 1, got {n_threads!r}.")
        return min(int(n_threads), _MOST)
    ours = os.environ.get("QUICKMEANS_NUM_THREADS", "")
    if ours and not _count(ours):
        raise ValueError(f"QUICKMEANS_NUM_THREADS must be a positive whole number, got {ours!r}.")
    return min(_count(ours) or _count(os.environ.get("OMP_NUM_THREADS", "")) or _processors(), _MOST)


def _count(text: str) -> int:
    """The first number of a list like ``4,2``, or 0 if it is not a positive one."""
    first = text.split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def instruction_set() -> str:
    """The instruction set that QUICKMEANS_ISA names; empty for the best there is."""
    return os.environ.get("QUICKMEANS_ISA", "")
