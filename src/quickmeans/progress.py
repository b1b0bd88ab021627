"""Progress of a fit: lines or a bar, the user's callback, scikit-learn's callbacks."""

import sys
import time
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from rich import get_console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]  # only one of the two is defined
        """An empty mixin for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "RunObserver", "begin_callbacks", "with_callbacks"]


_WORTH_SAYING = 10.0  # seconds


def begin_callbacks(estimator: Any, n_runs: int) -> Any:
    """Return the root of scikit-learn's tree of tasks, or None if the estimator has no callbacks."""
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    return estimator._init_callback_context(max_subtasks=n_runs).call_on_fit_task_begin(estimator=estimator)


def _can_draw_bars() -> bool:
    """Whether output goes to a terminal, or to a notebook with the widgets that rich needs."""
    return sys.stdout.isatty() or (is_notebook() and find_spec("ipywidgets") is not None)


def is_notebook() -> bool:
    """Whether a notebook shows the output."""
    return bool(get_console().is_jupyter)


class RunObserver:
    """A context for one run; it is called after every iteration and returns whether to stop."""

    def __init__(self, estimator: Any, root: Any) -> None:
        self.estimator = estimator
        self.bar: Any = None
        self.first: tuple[int, float] | None = None  # the first iteration that was shown, and the time at its end
        self.run = None if root is None else root.subcontext(task_name="run", max_subtasks=estimator.max_iter)

    def __enter__(self) -> Self:
        if self.run is not None:
            self.run.call_on_fit_task_begin(estimator=self.estimator)
        if self.estimator.verbose and _can_draw_bars():
            columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
            self.bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn())
            self.bar.start()
            self.task = self.bar.add_task("Iterations", total=self.estimator.max_iter)
        return self

    @property
    def watched(self) -> bool:
        """Whether anybody wants to know of every iteration."""
        estimator = self.estimator
        return bool(estimator.verbose) or estimator.callback is not None or self.run is not None

    def say(self, text: str) -> None:
        """Print a line if the estimator is verbose."""
        if self.bar is not None:
            self.bar.print(text)
        elif self.estimator.verbose:
            print(text)

    def searched(self, move: str, objective: float) -> bool:
        """Show a move of the search that was kept; the user's callback gets it as iteration 0."""
        self.say(f"Search: {move}, objective {objective:.6g}")
        return self.estimator.callback is not None and bool(self.estimator.callback(0, objective))

    def __call__(self, iteration: int, objective: float) -> bool:
        if self.bar is not None:
            self.bar.update(self.task, completed=iteration, description=f"Objective {objective:.6g}")
        else:
            self.say(f"Iteration {iteration}: objective {objective:.6g}{self._time_to_go(iteration)}")
        stop = self.estimator.callback is not None and bool(self.estimator.callback(iteration, objective))
        if self.run is not None:
            task = self.run.subcontext(task_name="iteration").call_on_fit_task_begin(estimator=self.estimator)
            stop |= bool(task.call_on_fit_task_end(estimator=self.estimator))
        return stop

    def _time_to_go(self, iteration: int) -> str:
        """How long the iterations that may still come take, where that is worth saying."""
        now = time.perf_counter()
        if self.first is None:
            self.first = iteration, now
        done, left = iteration - self.first[0], self.estimator.max_iter - iteration
        seconds = left * (now - self.first[1]) / done if done > 0 else 0.0
        return f", at most {seconds:.0f} s to go" if seconds >= _WORTH_SAYING else ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.run is not None and error is None:
            self.run.call_on_fit_task_end(estimator=self.estimator)
