"""How many threads a call may use."""

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

_MOST = 1024
P = ParamSpec("P")
R = TypeVar("R")
Part = TypeVar("Part")


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


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds: once is enough."""
    return ThreadpoolController()


def forget_libraries() -> None:
    """Look for BLAS libraries anew the next time: one may have been loaded since."""
    _controller.cache_clear()


def with_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function with BLAS on one thread.

    Where small matrix products and our own threads take turns, BLAS's threads, which spin for a while after every call,
    would take the processors away from ours.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        _OneBlasThread.enter()
        try:
            return function(*args, **kwargs)
        finally:
            _OneBlasThread.leave()

    return limited


class _OneBlasThread:
    """BLAS has one limit for the process: the first to ask sets it, the last to leave sets it back."""

    lock, count = Lock(), 0
    limiter: Any = None

    @classmethod
    def enter(cls) -> None:
        with cls.lock:
            if cls.count == 0:
                cls.limiter = _controller().limit(limits=1, user_api="blas")
            cls.count += 1

    @classmethod
    def leave(cls) -> None:
        with cls.lock:
            cls.count -= 1
            if cls.count == 0:
                cls.limiter.restore_original_limits()


@with_one_blas_thread
def run_in_threads(make_worker: Callable[[], Callable[[Part], object]], parts: Iterable[Part], n_threads: int) -> None:
    """Process all parts on up to `n_threads` new threads, with BLAS on one thread.

    Every thread calls ``make_worker()`` once, which returns a function of one part; so each worker can have buffers of
    its own. Idle workers take the next part. After an error or Ctrl-C no further part is started, and the error is
    raised as soon as the parts under way have ended.
    """
    queue = deque(parts)

    def run(_: int) -> None:
        try:
            work = make_worker()
            while True:
                try:
                    part = queue.popleft()
                except IndexError:
                    return
                work(part)
        finally:
            queue.clear()

    n = min(n_threads, len(queue))
    if n == 0:
        return
    with ThreadPoolExecutor(n) as pool:
        try:
            for _ in pool.map(run, range(n)):
                pass
        finally:
            queue.clear()
