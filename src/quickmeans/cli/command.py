"""What all subcommands share: --debug, sections of options, examples below the help, Ctrl-C."""

from collections.abc import Callable
from typing import Any

import click

_DEBUG, _NOTE = "quickmeans.debug", "quickmeans.interrupted"  # keys of Context.meta, which all contexts of a run share


def _set_debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


DEBUG = click.Option(
    ["--debug"], is_flag=True, expose_value=False, callback=_set_debug, help="Print the traceback of an error."
)


def is_debug(ctx: click.Context) -> bool:
    """Return whether --debug was given."""
    return bool(ctx.meta.get(_DEBUG))


class Stopped(BaseException):
    """Ctrl-C was pressed. A KeyboardInterrupt would let a fit complete its iteration, whose result nobody uses."""


class Interrupted(click.ClickException):
    """Ctrl-C ended the command; the message says what is left of its work."""

    exit_code = 130  # the convention of shells: 128 plus the number of the signal


def on_interrupt(note: Callable[[], str]) -> None:
    """Let the running command print this note if Ctrl-C ends it."""
    click.get_current_context().meta[_NOTE] = note


def interruption(ctx: click.Context) -> Interrupted:
    """Return the error that ends an interrupted command."""
    note: Callable[[], str] = ctx.meta.get(_NOTE, lambda: "nothing was written.")
    return Interrupted(note())


class Option(click.Option):
    """An option with the title of its section in the help."""

    def __init__(self, *args: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


def option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``click.option`` with a ``section``."""
    return click.option(*names, cls=Option, **settings)


class Command(click.Command):
    """A subcommand with examples: command lines without the leading ``quickmeans``."""

    def __init__(self, *args: Any, examples: list[str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = examples or []

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, --debug included."""
        return [*super().get_params(ctx), DEBUG]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section; those of the output and those without a section come last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and record[1]:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        last = {title: sections.pop(title) for title in ("Output", "Options") if title in sections}
        for title, records in (sections | last).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}quickmeans {line}\n")


class Commands(click.Group):
    """A subcommand that has subcommands."""

    command_class = Command
