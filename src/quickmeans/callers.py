"""Warnings that point at the line of the user's program, however deep in the library they arise."""

import sys
import warnings
from types import FrameType
from typing import cast

_OURS = ("quickmeans", "sklearn")  # scikit-learn's decorators stand between a call and our methods


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn whoever called this library."""
    level, frame = 1, cast(FrameType | None, sys._getframe(0))
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=2 if frame is None else level)
