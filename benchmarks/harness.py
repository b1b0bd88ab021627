"""Timing side by side: every candidate in every round, best of the rounds, ratios of one run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quickmeans.experiments.timing import alternate, machine

__all__ = ["alternate", "keeping", "load", "machine", "save"]

RESULTS = Path(__file__).parent / "results"


def keeping(calls: dict[str, Callable[[], Any]]) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """The same calls, and where they leave their last results."""
    results: dict[str, Any] = {}
    return {name: lambda name=name: results.__setitem__(name, calls[name]()) for name in calls}, results  # type: ignore[misc]


def load(name: str) -> dict[str, Any]:
    """Earlier results, if there are any."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(name: str, content: dict[str, Any]) -> Path:
    """Write the results as JSON beside the benchmark."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
