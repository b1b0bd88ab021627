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
    waiting: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(_AHEAD)
    over = threading.Event()

    def put(*item: object) -> bool:
        while not over.is_set():
            try:
                waiting.put(item, timeout=_PATIENCE)  # type: ignore[arg-type]  # a pair
                return True
            except queue.Full:
                pass
        return False

    def read() -> None:
        try:
            for item in make():
                if not put(True, item):
                    return
            put(False, None)
        except BaseException as error:  # whatever it is, it is for the caller
            put(False, error)

    reader = threading.Thread(target=read, name="quickmeans-reader", daemon=True)
    reader.start()
    try:
        while True:
            more, item = waiting.get()
            if more:
                yield item  # type: ignore[misc]  # an item, if there is one
            elif item is None:
                return
            else:
                raise item  # type: ignore[misc]  # else an error
    finally:
        over.set()
        reader.join()
