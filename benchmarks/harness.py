"""Parts that all benchmarks share: timing side by side, tables, and results as JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from typing import Any

from rich.console import Console
from rich.table import Table

from quickmeans import kernels, timing
from quickmeans.timing import alternate, timed

__all__ = ["DOCS", "alternate", "commit", "console", "keeping", "load", "machine", "save", "show", "timed"]

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs"
console = Console(width=140)


def commit() -> str:
    """Return the commit that is measured, with a plus if files differ from it."""
    head, changes = (
        run(["git", *arguments], capture_output=True, text=True).stdout.strip()
        for arguments in (["rev-parse", "--short", "HEAD"], ["status", "--short", "--", "src", "native"])
    )
    return head + ("+" if changes else "")


def machine(*packages: str) -> dict[str, Any]:
    """Return the machine, its instruction set, the versions of Python and of the packages, and the commit."""
    return timing.machine(*packages) | {"isa": kernels.instruction_sets()[0], "commit": commit()}


def keeping(calls: dict[str, Callable[[], Any]]) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Return calls that store their results, and the dictionary of the last results."""
    results: dict[str, Any] = {}
    return {name: lambda name=name: results.__setitem__(name, calls[name]()) for name in calls}, results  # type: ignore[misc]


def load(name: str) -> dict[str, Any]:
    """Return earlier results, or an empty dictionary."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(name: str, content: dict[str, Any]) -> Path:
    """Write the results as JSON, with the commit that wrote last."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content | {"commit": commit()}, indent=1) + "\n")
    return path


def show(title: str, records: list[dict[str, Any]], columns: list[str]) -> None:
    """Print a table of records."""
    table = Table(title=title)
    for column in columns:
        table.add_column(column.replace("_", " "), justify="left" if column in ("data", "method") else "right")
    for record in records:
        table.add_row(*(_cell(record[column]) for column in columns))
    console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} {_cell(item)}" for key, item in value.items())
    return f"{value:.5g}" if isinstance(value, float) else str(value)
