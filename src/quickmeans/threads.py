"""The number of threads of a call, and work on Python threads."""

import math
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, wraps
from threading import RLock, local
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from quickmeans.checks import check_whole

_MOST = 1024  # more threads than any machine has processors; a larger number would only use up memory
_POLL = 0.1  # seconds between looks for Ctrl-C: a signal that comes just before a wait does not end the wait
P = ParamSpec("P")
R = TypeVar("R")
Part = TypeVar("Part")


def resolve_threads(n_threads: int | None = None) -> int:
    """Return the number of threads for one call, at most 1024.

    The first of these that is given decides: the argument, ``QUICKMEANS_NUM_THREADS``, ``OMP_NUM_THREADS`` (joblib and
    Dask set it in their workers, so that processes do not compete for processors; ignored unless it is a positive
    whole number), the number of processors this process may run on.
    """
    if n_threads is not None:
        return min(check_whole("n_threads", n_threads, 1, most=math.inf), _MOST)
    ours = os.environ.get("QUICKMEANS_NUM_THREADS", "")
    if ours and not _count(ours):
        raise ValueError(f"QUICKMEANS_NUM_THREADS must be a positive whole number, got {ours!r}.")
    return min(_count(ours) or _count(os.environ.get("OMP_NUM_THREADS", "")) or _processors(), _MOST)


def _count(text: str) -> int:
    """Return the first number of a list like ``4,2``, or 0 if it is not a positive whole number."""
    first = text.split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def instruction_set() -> str:
    """Return the instruction set that QUICKMEANS_ISA names; an empty string stands for the best available one."""
    return os.environ.get("QUICKMEANS_ISA", "")


@cache
def _controller() -> ThreadpoolController:
    """Return a controller of the loaded BLAS libraries; it is cached because finding them takes milliseconds."""
    return ThreadpoolController()


def forget_libraries() -> None:
    """Search for BLAS libraries again at the next use. Call this after a library that has its own BLAS was loaded."""
    _controller.cache_clear()


def with_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS limited to one thread while it runs.

    The threads of BLAS spin for a while after every matrix product. Where small products alternate with work on our
    own threads, they would take the processors away from ours.
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
    """The limit of BLAS to one thread, which is one for the whole process.

    The first call that needs it sets it, and the last one to end restores the number of threads. A forked child has
    only the thread that forked: calls of other threads will never end there, so the child forgets them.
    """

    lock, n_calls = RLock(), 0
    of_thread = local()  # its n_calls: calls of this thread
    limiter: Any = None

    @classmethod
    def enter(cls) -> None:
        with cls.lock:
            if cls.n_calls == 0:
                _allow_this_thread()
                cls.limiter = _controller().limit(limits=1, user_api="blas")
            cls._add(1)

    @classmethod
    def leave(cls) -> None:
        with cls.lock:
            cls._add(-1)
            if cls.n_calls == 0:
                cls._restore()

    @classmethod
    def _restore(cls) -> None:
        _allow_this_thread()
        cls.limiter.restore_original_limits()
        _allow_this_thread()  # and any other one after it

    @classmethod
    def _add(cls, change: int) -> None:
        cls.n_calls += change
        cls.of_thread.n_calls = getattr(cls.of_thread, "n_calls", 0) + change

    @classmethod
    def after_fork(cls) -> None:
        """Restore the number of BLAS threads in a child, unless the thread that forked needs the limit."""
        had_calls, cls.lock = cls.n_calls > 0, RLock()
        cls.n_calls = getattr(cls.of_thread, "n_calls", 0)
        if had_calls and cls.n_calls == 0:
            cls._restore()


def _allow_this_thread() -> None:
    """Let this thread change the number of OpenBLAS threads.

    From its version 3.8 on, threadpoolctl ignores changes by other threads than the first one that made a change.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _OneBlasThread.lock.acquire(),
        after_in_parent=lambda: _OneBlasThread.lock.release(),
        after_in_child=_OneBlasThread.after_fork,
    )


@with_one_blas_thread
def run_in_threads(make_worker: Callable[[], Callable[[Part], object]], parts: Iterable[Part], n_threads: int) -> None:
    """Process all parts on up to `n_threads` new threads, with BLAS on one thread.

    Every thread calls ``make_worker()`` once, which returns a function of one part; so each worker can have buffers of
    its own. Idle workers take the next part. After an error or Ctrl-C no further part is started, and the error is
    raised as soon as the parts under way have ended.
    """
    queue = deque(parts)

    def run() -> None:
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
            futures = [pool.submit(run) for _ in range(n)]
            while wait(futures, timeout=_POLL).not_done:
                pass  # Ctrl-C is noticed here
        finally:
            queue.clear()
    for future in futures:
        future.result()
