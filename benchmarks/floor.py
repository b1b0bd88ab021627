"""A number to reach, and the results that it is compared with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import load

Values = Iterator[tuple[float, str]]


@dataclass(frozen=True)
class Floor:
    """A number to reach.

    Parameters
    ----------
    subject : str
        Where it belongs.
    what : str
        What is measured.
    bound : str
        ">= x" or "<= x"; measured values are rounded to one digit more than x has, or four.
    values : callable
        Yields values and what each belongs to; the worst counts.
    """

    subject: str
    what: str
    bound: str
    values: Callable[[], Values]

    def judge(self) -> tuple[str, str]:
        """Return the worst value with what it belongs to, and whether the floor is met."""
        sign, text = self.bound.split()
        found = list(self.values())
        if not found:
            return "not measured", "**not measured**"
        worst, at = (min if sign == ">=" else max)(found, key=lambda pair: pair[0])
        met = worst >= float(text) if sign == ">=" else worst <= float(text) + 5e-5  # objectives have four digits
        shown = "none is that short" if np.isinf(worst) else f"{worst:.4f}" if 0.8 < worst < 1.2 else f"{worst:.3g}"
        return f"{shown}{f' ({at})' if at else ''}", "yes" if met else "**no**"


def records(name: str, section: str = "records") -> list[dict[str, Any]]:
    """Return the records of a section of results, or nothing."""
    found = load(name).get(section, [])
    return list(found.get("records", []) if isinstance(found, dict) else found)
