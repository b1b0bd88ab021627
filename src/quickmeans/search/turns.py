"""Turns of threads: any number of searches at a time, or one change."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Turns:
    """``with turns:`` for a search, ``with turns.changing():`` for a change, which waits for the searches that run.

    Searches that come while a change waits begin after it.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._n_searches = self._n_waiting = 0

    def __enter__(self) -> None:
        with self._condition:
            while self._n_waiting:
                self._condition.wait()
            self._n_searches += 1

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._n_searches -= 1
            if not self._n_searches:
                self._condition.notify_all()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody searches or changes anything meanwhile."""
        with self._condition:
            self._n_waiting += 1
            try:
                while self._n_searches:
                    self._condition.wait()
                yield
            finally:
                self._n_waiting -= 1
                self._condition.notify_all()
