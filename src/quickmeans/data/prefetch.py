"""Reading ahead: a thread reads and decodes the next chunks while the kernel works on the last one."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 2  # chunks that wait at the most
_PATIENCE = 0.1  # seconds between two looks whether anybody still wants them


def ahead(make: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items of the iterator, made and driven by a thread of its own; its errors come out here."""
    waiting: queue.Queue[tuple[list[T], BaseException | None]] = queue.Queue(_AHEAD)  # an item, an error or the end
    over = threading.Event()

    def put(items: list[T], error: BaseException | None = None) -> bool:
        while not over.is_set():
            try:
                waiting.put((items, error), timeout=_PATIENCE)
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
        except BaseException as error:  # whatever it is, it is for the caller
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
        over.set()
        reader.join()
