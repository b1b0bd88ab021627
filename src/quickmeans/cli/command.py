"""What all subcommands share: --debug, options in sections, examples below the help."""

from collections.abc import Callable
from typing import Any

import click

_DEBUG = "quickmeans.debug"


def _remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True  # shared by all contexts of a run


DEBUG = click.Option(
    ["--debug"], is_flag=True, expose_value=False, callback=_remember, help="Show where an error comes from."
)


def asks_for_traceback(ctx: click.Context) -> bool:
    """Whether --debug was given."""
    return bool(ctx.meta.get(_DEBUG))


class Interrupted(click.ClickException):
    """Ctrl-C ended a command, which says what is left of its work."""

    exit_code = 130  # as shells have it: 128 and the number of the signal


class Option(click.Option):
    """An option that knows in which section of the help it stands, and calls whole numbers N and others X."""

    def __init__(self, *args: Any, section: str = "Options", **settings: Any) -> None:
        kind: Any = settings.get("type")
        settings.setdefault("metavar", {int: "N", float: "X"}.get(kind, getattr(kind, "sign", None)))
        super().__init__(*args, **settings)
        self.section = section


def option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As ``click.option``; with ``section="..."``, in that section of the help."""
    return click.option(*names, cls=Option, **settings)


class Command(click.Command):
    """A subcommand: ``@click.command(cls=Command, examples=[...])``. Each example is a line without ``quickmeans``."""

    def __init__(self, *args: Any, examples: list[str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = examples or []

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """With --debug."""
        return [*super().get_params(ctx), DEBUG]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """By section, in the order in which these first occur; options without one come last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and record[1]:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        rest = sections.pop("Options", [])
        for title, records in [*sections.items(), ("Options", rest)]:
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, as they would be typed."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}quickmeans {line}\n")


class Commands(click.Group):
    """A subcommand that has subcommands."""

    command_class = Command
