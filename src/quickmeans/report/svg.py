"""Axes and marks in SVG, in the colours of the page."""

import math
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

WIDTH, HEIGHT = 360, 232  # small, so that text is readable on a phone
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 10, 40


def drawing(marks: Iterable[str], description: str, height: float = HEIGHT) -> str:
    """Return an SVG element of marks, with a description for screen readers."""
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(description)}">{"".join(marks)}</svg>'


def text(x: float, y: float, words: str, anchor: str = "middle", turned: bool = False) -> str:
    """Return a text element; `turned` text runs upwards."""
    turn = f' transform="rotate(-90 {x:g} {y:g})"' if turned else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{turn}>{escape(words)}</text>'


def polyline(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Return a line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


class Axes:
    """Axes with ticks; `x` and `y` map data to the picture."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        self.x = _scale(x_range, (_LEFT, WIDTH - _RIGHT))
        self.y = _scale(y_range, (HEIGHT - _BOTTOM, _TOP))
        self.x_range, self.y_range = x_range, y_range

    def marks(self, x_label: str, y_label: str, y_text: Callable[[float], str] | None = None) -> list[str]:
        """Return grid lines, numbers and labels."""
        marks = []
        for value in ticks(*self.y_range, 5):
            y = self.y(value)
            marks.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            marks.append(text(_LEFT - 5, round(y + 3.5, 1), (y_text or short)(value), "end"))
        for value in ticks(*self.x_range, 7):
            marks.append(text(round(self.x(value), 1), HEIGHT - _BOTTOM + 14, short(value)))
        marks.append(text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 7, x_label))
        marks.append(text(10, (_TOP + HEIGHT - _BOTTOM) / 2, y_label, turned=True))
        return marks


def _scale(data: tuple[float, float], picture: tuple[float, float]) -> Callable[[Any], Any]:
    slope = (picture[1] - picture[0]) / ((data[1] - data[0]) or 1)
    return lambda value: picture[0] + (value - data[0]) * slope


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten from low to high, with at most so many gaps."""
    if not high > low:
        return [low]
    power = 10 ** math.floor(math.log10((high - low) / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """Return a number as 52,577 or, if it is very large or small, with a power of ten."""
    if 1e-3 <= abs(value) < 1e7 or value == 0:
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"
    digits, power = f"{value:.2e}".split("e")
    return f"{digits}\N{THIN SPACE}·\N{THIN SPACE}10<sup>{int(power)}</sup>"


def short(value: float) -> str:
    """Return a number as 999, 1.5k or 2M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"
