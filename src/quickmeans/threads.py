"""How many threads a call may use."""

import os


def resolve_threads(n_threads: int | None = None) -> int:
    """The number of threads for one call.

    In this order: the argument, ``QUICKMEANS_NUM_THREADS``, ``OMP_NUM_THREADS`` (which joblib and Dask set in their
    workers so that processes do not crowd each other out), the processors this process may run on.
    """
    if n_threads is not None:
        return _positive("n_threads", n_threads)
    for name in ("QUICKMEANS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").split(",")[0].strip()
        if value:
            return _positive(name, value)
    return _available_processors()


def _positive(name: str, value: object) -> int:
    try:
        number = int(value) if isinstance(value, str) else value.__index__()  # type: ignore[attr-defined]
    except (ValueError, AttributeError):
        raise TypeError(f"{name} must be a whole number, got {value!r}.") from None
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}.")
    return int(number)


def _available_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
