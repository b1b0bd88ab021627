"""Values of options that are a number or one of some words."""

from typing import Any

import click


class NumberOr(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """A whole or real number, or one of some words."""

    def __init__(self, kind: type[int] | type[float], *words: str) -> None:
        self.kind, self.words = kind, words
        self.name = self.sign = "|".join(["N" if kind is int else "X", *words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, or the number."""
        if value in self.words:
            return value
        try:
            return self.kind(value)
        except ValueError:
            what = "a whole number" if self.kind is int else "a number"
            self.fail(f"{value!r} must be {' or '.join([what, *map(repr, self.words)])}.", param, ctx)


class Whole(click.IntRange):
    """A whole number in a range."""

    name, sign = "whole number", "N"


COUNT = Whole(min=1)
SEED = Whole(min=0, max=2**32 - 1)
WHOLE_OR_AUTO = NumberOr(int, "auto")
NUMBER_OR_AUTO = NumberOr(float, "auto")
