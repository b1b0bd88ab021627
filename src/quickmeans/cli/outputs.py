"""Files that commands write: refused before any work if they are there or cannot be written; complete or absent."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

Function = Callable[..., Any]


def output_option(
    what: str, endings: tuple[str, ...] = (), *, required: bool = False
) -> Callable[[Function], Function]:
    """Give a command -o/--output and --force; it gets ``output``, a Path or None, that has been checked."""
    shown = f"{what} ({', '.join(endings)})." if endings else f"{what}."

    def decorate(function: Function) -> Function:
        @wraps(function)
        def checked(*args: Any, output: str | None, force: bool, **options: Any) -> Any:
            path = None if output is None else check_output(output, endings, force=force)
            return function(*args, output=path, **options)

        with_force = click.option("--force", is_flag=True, help="Replace the output if it is there.")(checked)
        return click.option("-o", "--output", metavar="FILE", required=required, help=shown)(with_force)

    return decorate


def check_output(output: str | os.PathLike[str], endings: tuple[str, ...] = (), *, force: bool) -> Path:
    """The path, once it is clear that a file can be put there."""
    path = Path(output)
    if endings and path.suffix.lower() not in endings:
        raise click.ClickException(f"{path} must end in {' or '.join(endings)}: that says what is written.")
    if path.is_dir():
        raise click.ClickException(f"{path} is a directory; name a file in it.")
    if path.exists() and not force:
        raise click.ClickException(f"{path} is there already; give --force to replace it.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise click.ClickException(f"{path} cannot be written: there is no directory {folder}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise click.ClickException(f"{path} cannot be written: no permission to write in {folder}.")
    return path
