"""A thread that reads and decodes the next chunks while the caller works on the last one."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
_QUEUE_LENGTH = 2  # items that wait: one hides the time to read it, the second evens out chunks of unequal cost
_POLL_SECONDS = 0.1  # the thread sees within this time that the caller has stopped; no item waits for it


def prefetch(make: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items of the iterator that `make` returns, which a thread creates and advances.

    An error in the thread is raised here. The thread has ended when this iterator is exhausted or closed.
    """
    waiting: queue.Queue[tuple[list[T], BaseException | None]] = queue.Queue(_QUEUE_LENGTH)  # no item: the end
    stopped = threading.Event()

    def put(items: list[T], error: BaseException | None = None) -> bool:
        while not stopped.is_set():
            try:
                waiting.put((items, error), timeout=_POLL_SECONDS)
                return True
            except queue.Full:
                pass
        return False

    def read() -> None:
        try:
            for item in make():
                if not put([item]):
                    return
            put([])
        except BaseException as error:  # every error goes to the caller
            put([], error)

    reader = threading.Thread(target=read, name="quickmeans-reader", daemon=True)
    reader.start()
    try:
        while True:
            items, error = waiting.get()
            if error is not None:
                raise error
            if not items:
                return
            yield from items
    finally:
        stopped.set()
        reader.join()
