"""What commands print: tables for people, JSON for programs; colours, widths and signs that the terminal can show."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

_WIDTH = 100  # of what goes to a file or a pipe
_BARS = "▁▂▃▄▅▆▇█"

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs."
)


def console(*, stderr: bool = False) -> Console:
    """A console; without colours if NO_COLOR is set or nobody looks."""
    stream = sys.stderr if stderr else sys.stdout
    fixed = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(stderr=stderr, highlight=False, width=_WIDTH if fixed else None)


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Table:
    """The first column is names, the others are numbers."""
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, header in enumerate(headers):
        result.add_column(header, justify="right" if i else "left", overflow="fold")
    for row in rows:
        result.add_row(*row)
    return result


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and what they are, one pair per line."""
    result = Table.grid(padding=(0, 2))
    result.add_column(style="bold", no_wrap=True)
    result.add_column(overflow="fold")
    for name, value in pairs:
        result.add_row(name, value)
    return result


def sparkline(values: Sequence[float], width: int = 40) -> str:
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
