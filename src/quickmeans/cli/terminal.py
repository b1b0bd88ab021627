"""What commands print: tables for people, JSON for programs; colours, widths and signs that the terminal can show."""

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

_WIDTH = 100  # of what goes to a file or a pipe
_BARS = "▁▂▃▄▅▆▇█"


def console(*, stderr: bool = False) -> Console:
    """A console; without colours if NO_COLOR is set or nobody looks. Brackets have no meaning: names may have them."""
    stream = sys.stderr if stderr else sys.stdout
    fixed = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, highlight=False, markup=False, width=_WIDTH if fixed else None)


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


class Grid:
    """A table for rich to print: the first column is names, the others are numbers.

    Where the terminal is too narrow for it, every row becomes a few lines.
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
    """Names and what they are, on stdout, one pair per line or, where the terminal is narrow, more."""
    screen, width = console(), max(len(name) for name, _ in pairs)
    room = max(screen.width - width - 2, 10)
    for name, value in pairs:
        for i, line in enumerate(wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]):
            screen.print(Text.assemble((("" if i else name).ljust(width), "bold"), "  ", line), soft_wrap=True)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """The values as small bars, the lowest and the highest as far apart as signs go."""
    if len(values) > width:
        values = [values[round(i * (len(values) - 1) / (width - 1))] for i in range(width)]
    signs = _BARS if (sys.stdout.encoding or "").lower().startswith("utf") else "_.-=#"
    low, high = min(values, default=0.0), max(values, default=0.0)
    scale = (len(signs) - 1) / (high - low) if high > low else 0.0
    return "".join(signs[round((value - low) * scale)] for value in values)


def size(n_bytes: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def seconds(value: float) -> str:
    """A time for people."""
    if value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:.1f} s" if value < 100 else f"{value // 60:.0f} min {value % 60:02.0f} s"


def count(value: float) -> str:
    """A number of things for people: in full below 10000, else 12.3k, 4.56M."""
    if value < 10_000:
        return f"{value:.0f}"
    power = 1 if value < 999_500 else 2 if value < 999.5e6 else 3
    return f"{value / 1000**power:.3g}{'kMG'[power - 1]}"
