"""What commands print: tables and numbers for people, in the width and with the characters of the terminal; JSON."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

import click
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_WIDTH = 100  # columns of output that goes to a file or a pipe
_BARS = "▁▂▃▄▅▆▇█"


class _Console(Console):
    """A console that raises BrokenPipeError; rich would exit."""

    def on_broken_pipe(self) -> None:
        raise  # rich calls this where it catches the error


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints brackets as they are: names of files may contain them."""
    stream = sys.stderr if stderr else sys.stdout
    fixed = not stream.isatty() and "COLUMNS" not in os.environ
    return _Console(stderr=stderr, highlight=False, markup=False, width=_WIDTH if fixed else None)


def print_json(value: Any) -> None:
    """Print one JSON object to stdout."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


class Grid:
    """A table for rich: the first column holds names, the others numbers.

    In a terminal that is too narrow for the table, every row takes several lines.
    """

    def __init__(self, headers: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
        self.headers, self.rows, self.title = list(headers), [list(row) for row in rows], title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for i, header in enumerate(self.headers):
            table.add_column(header, justify="right" if i else "left")
        for row in self.rows:
            table.add_row(*map(Text, row))
        if Measurement.get(console, options.update(width=10_000), table).maximum <= options.max_width:
            yield table
            return
        width = max(map(len, self.headers))
        for name, *values in self.rows:
            yield Text(name, "bold")
            for header, value in zip(self.headers[1:], values, strict=True):
                yield Text(f"  {header:<{width}}  {value}")


def print_facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and texts to stdout, one pair per line; long texts are wrapped."""
    out, width = console(), max(len(name) for name, _ in pairs)
    columns = max(out.width - width - 2, 10)
    for name, text in pairs:
        for i, line in enumerate(wrap(text, columns, break_long_words=False, break_on_hyphens=False) or [""]):
            out.print(Text.assemble((("" if i else name).ljust(width), "bold"), "  ", line), soft_wrap=True)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Return the values, which are not negative, as bars that begin at zero; the largest value gets the highest bar."""
    if len(values) > width:
        values = [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]
    bars = _BARS if (sys.stdout.encoding or "").lower().startswith("utf") else "_.-=#"
    scale = (len(bars) - 1) / (max(values, default=0.0) or 1.0)
    return "".join(bars[round(value * scale)] for value in values)


def size(n_bytes: float) -> str:
    """Return a number of bytes as 512 B, 803 kB or 2.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def seconds(value: float) -> str:
    """Return a time as 12.3 ms, 5.0 s or 2 min 05 s."""
    if value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:.1f} s" if value < 100 else f"{value // 60:.0f} min {value % 60:02.0f} s"


def count(value: float) -> str:
    """Return a number as 9999, 12.3k or 4.56M."""
    if value < 10_000:
        return f"{value:.0f}"
    power = 1 if value < 999_500 else 2 if value < 999.5e6 else 3
    return f"{value / 1000**power:.3g}{'kMG'[power - 1]}"


def counted(n: int, noun: str) -> str:
    """Return 1 cluster, 2 clusters."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def rate(n: int, elapsed: float, unit: str = "rows") -> str:
    """Return a time and the number per second, as 15.6 ms, 640k rows/s."""
    return f"{seconds(elapsed)}, {count(n / max(elapsed, 1e-9))} {unit}/s"
