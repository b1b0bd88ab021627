"""Progress of a command on stderr: a bar in a terminal, elsewhere a line from time to time."""

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from quickmeans.cli.terminal import console, count, seconds

_BETWEEN_LINES = 10.0  # seconds
_WIDE = 80  # columns that a terminal must have for a bar


class Meter:
    """A context that shows how much of the work is done."""

    def __init__(self, title: str, total: float | None = None) -> None:
        self.console = console(stderr=True)
        self.title, self.total, self.done, self.note = title, total, 0.0, ""
        self.start = self.last = time.perf_counter()
        self.bar: Progress | None = None
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            name, text = "{task.description}", "{task.fields[note]}"
            short = Column(no_wrap=True, overflow="ellipsis")
            wide = (TextColumn(name), BarColumn(bar_width=20), TextColumn(text, table_column=short))
            columns = wide if self.console.width >= _WIDE else (TextColumn(f"{name}  {text}", table_column=short),)
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.task = self.bar.add_task(title, total=total, note="")

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, title: str, done: float, note: str) -> None:
        """Show the title, the part that is done, and a note."""
        self.done = done
        now = time.perf_counter()
        if self.bar is not None:
            self.bar.update(self.task, description=title, completed=done, total=self.total, note=note)
        elif now - self.last > _BETWEEN_LINES:
            self.last = now
            self.console.print(f"{title}  {note}")


def _left(value: float) -> str:
    return f"{max(value, 1):.0f} s" if value < 100 else seconds(value)


class RowMeter(Meter):
    """One pass over rows; it is called with the number of rows that were read since the last call."""

    def __call__(self, n: int) -> None:
        done, elapsed = self.done + n, time.perf_counter() - self.start
        rate = done / max(elapsed, 1e-9)
        left = "" if self.total is None else f", {_left((self.total - done) / rate)} left"
        share = "" if self.total is None else f" of {count(self.total)}"
        self.show(self.title, done, f"{count(done)}{share} rows{left}, {count(rate)} rows/s")


class FitMeter(Meter):
    """The iterations of a fit: call `rows` for rows that were read, and `iteration` after every iteration."""

    def __init__(self, n_rows: int | None, max_iter: int, n_runs: int = 1) -> None:
        super().__init__("reading", n_runs * max_iter)
        self.n_rows, self.max_iter, self.n_runs = n_rows, max_iter, n_runs
        self.run, self.iterations, self.read, self.objective = 1, 0, 0, ""
        self.first: tuple[int, float] | None = None  # the first iteration of this run, and the time at its end

    def rows(self, n: int) -> None:
        """Count n more rows of the present pass."""
        self.read += n
        self._show()

    def begin(self, n_rows: int | None) -> None:
        """The rows are read, and the fit chooses its first centroids."""
        self.n_rows, self.read = n_rows, 0
        self.title = "starting"
        self._show()

    def iteration(self, iteration: int, objective: float) -> None:
        """An iteration is done, or for iteration 0 a move of the search; a callback of QKMeans."""
        if iteration <= self.iterations and self.iterations:  # the next run has begun
            self.run, self.first = self.run + 1, None
        self.iterations, self.read, self.objective = iteration, 0, f"objective {objective:.5g}"
        run = f"run {self.run}/{self.n_runs}, " if self.n_runs > 1 else ""
        self.title = f"{run}iteration {iteration}/{self.max_iter}" if iteration else f"{run}searching"
        if iteration:
            self.first = self.first or (iteration, time.perf_counter())
        self._show()

    def _show(self) -> None:
        share = self.read / self.n_rows % 1 if self.n_rows else 0.0
        done = (self.run - 1) * self.max_iter + self.iterations + share
        parts = [self.objective] if self.objective else []
        if self.first is not None and self.iterations > self.first[0]:
            each = (time.perf_counter() - self.first[1]) / (self.iterations + share - self.first[0])
            parts.insert(0, f"< {_left(each * (self.n_runs * self.max_iter - done))} left")
            if self.n_rows:
                parts.append(f"{count(self.n_rows / each)} rows/s")
        elif self.read:
            parts.append(f"{count(self.read)} rows read")
        self.show(self.title, done if self.objective else 0.0, ", ".join(parts))
