"""Types of option values: numbers, whole numbers, names of a list."""

from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class Number(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """A number, or one of the given words; the estimators check its range."""

    name = "X"

    def __init__(self, *words: str) -> None:
        self.words, self.alternatives = words, "".join(f" or {word!r}" for word in words)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return what the help shows in the place of a value."""
        return "|".join([self.name, *self.words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the word."""
        if value in self.words:
            return value
        try:
            return self.parse(param.opts[0] if param else "the value", value)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from None

    def parse(self, option: str, value: Any) -> Any:
        """Return the number that the value of an option stands for."""
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{option} must be a number{self.alternatives}, got {value!r}.") from None


class Whole(Number):
    """A whole number from `least` to `most`, or one of the given words."""

    name = "N"

    def __init__(self, least: int, *words: str, most: int = 2**63 - 1) -> None:
        super().__init__(*words)
        self.least, self.most = least, most

    def parse(self, option: str, value: Any) -> Any:
        """Return the number that the value of an option stands for."""
        from quickmeans.checks import check_whole

        with suppress(ValueError):  # check_whole says what is wrong with a text
            value = int(value)
        return check_whole(option, value, self.least, self.alternatives, most=self.most)


class Size(Number):
    """A whole number, or a factor with a decimal point."""

    def parse(self, option: str, value: Any) -> Any:
        """Return an int or a float."""
        with suppress(ValueError):
            return int(value)
        return super().parse(option, value)


class Name(Number):
    """One of the names in a table of a module, which is imported when they are needed."""

    def __init__(self, module: str, table: str) -> None:
        super().__init__()
        self.module, self.table = module, table

    @property
    def names(self) -> Iterable[str]:
        """The names."""
        names: Iterable[str] = getattr(import_module(self.module), self.table)
        return names

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the names, which the help shows in the place of a value."""
        return f"[{'|'.join(self.names)}]"

    def parse(self, option: str, value: Any) -> Any:
        """Return the name."""
        if value in self.names:
            return value
        raise ValueError(f"{option} must be one of {', '.join(map(repr, self.names))}, got {value!r}.")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin like this."""
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


COUNT, COUNT_OR_AUTO = Whole(1), Whole(1, "auto")
SEED = Whole(0, most=2**32 - 1)  # as NumPy's RandomState
NUMBER, NUMBER_OR_AUTO = Number(), Number("auto")
