"""Checks of parameters: whole numbers, real numbers and flags."""

import math
from typing import Any, TypeGuard

import numpy as np

LARGEST_WHOLE = 2**63 - 1  # of an int64, the type in which NumPy and the native code hold sizes


def is_number(value: Any) -> TypeGuard[float]:
    """Whether the value is a real number; True and False are not numbers here."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int, more: str = "", *, most: float = LARGEST_WHOLE) -> int:
    """Return the value as an int, or raise an error if it is not a whole number from `least` to `most`.

    `more` names what else the parameter may be, as in ``" or 'auto'"``.
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_whole and least <= value <= most:
        return int(value)
    is_open = most >= LARGEST_WHOLE and not (is_whole and value > most)
    limits = f"not below {least}" if is_open else f"from {least} to {most}"
    raise ValueError(f"{name} must be a whole number {limits}{more}, got {value!r}.")


def check_number(name: str, value: Any, least: float, more: str = "", *, above: bool = False) -> float:
    """Return the value as a float, or raise an error if it is not a finite number from `least` on.

    With `above` it must be larger than `least`. `more` names what else the parameter may be.
    """
    try:
        number = float(value) if is_number(value) else math.nan
    except OverflowError:  # a whole number beyond float64
        number = math.inf
    if least <= number < math.inf and not (above and number == least):
        return number
    limit = f"above {least:g}" if above else f"not below {least:g}"
    raise ValueError(f"{name} must be a finite number {limit}{more}, got {value!r}.")


def check_flag(name: str, value: Any) -> bool:
    """Return the value as a bool, or raise an error if it is neither True nor False."""
    if isinstance(value, bool | np.bool):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}.")
