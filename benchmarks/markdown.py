"""Tables in Markdown, and what is read from results to fill them."""

from typing import Any

DATA = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "words": "word vectors", "blobs": "Blobs",
        "patches": "image patches", "convnet": "made-up activations",
        "resampled": "resampled word vectors"}  # fmt: skip


def rows(head: list[str], cells: list[tuple[Any, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *cells]
    return "".join(f"| {' | '.join(map(str, line))} |\n".replace(" --- ", "---") for line in lines)


def times(ratio: float) -> str:
    """Return a ratio of times with the digits that mean something."""
    return f"{ratio:.2f}" if ratio < 0.995 else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


def seconds(value: float) -> str:
    """Return seconds with two digits that mean something."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def find(records: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """Return the one record that has these values."""
    (found,) = (r for r in records if all(r[name] == value for name, value in wanted.items()))
    return found
