"""Files that commands write: refused before any work if they are there or cannot be written; complete or absent."""

import os
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from quickmeans.cli.command import option

Function = Callable[..., Any]
SECTION = "The output"

json_option = option("--json", "as_json", section=SECTION, is_flag=True, help="Print JSON, for programs.")


def output_option(
    what: str, endings: tuple[str, ...] = (), *, required: bool = False
) -> Callable[[Function], Function]:
    """Give a command -o/--output and --force; it gets ``output``, a Path or None, that has been checked."""
    shown = f"{what} ({', '.join(endings)})." if endings else f"{what}."

    def decorate(function: Function) -> Function:
        @wraps(function)
        def checked(*args: Any, output: str | None, force: bool, **options: Any) -> Any:
            if output is not None:
                _refuse_input(output)
            path = None if output is None else check_output(output, endings, force=force)
            return function(*args, output=path, **options)

        file = option("-o", "--output", section=SECTION, metavar="FILE", required=required, help=shown)
        return file(option("--force", section=SECTION, is_flag=True, help="Replace it if it is there.")(checked))

    return decorate


def _refuse_input(output: str) -> None:
    """The rows or the model that the command reads would be lost."""
    context = click.get_current_context()
    read = [p.name for p in context.command.params if isinstance(p, click.Argument) or p.name == "init"]
    for path in (context.params.get(name or "") for name in read):
        if isinstance(path, str) and os.path.exists(path) and os.path.realpath(path) == os.path.realpath(output):
            raise click.ClickException(f"{output} is what this command reads; give another output.")


def check_output(output: str | os.PathLike[str], endings: tuple[str, ...] = (), *, force: bool) -> Path:
    """The path, once it is clear that a file can be put there."""
    path = Path(output)
    if endings and path.suffix.lower() not in endings:
        raise click.ClickException(f"{path} must end in {' or '.join(endings)}: that says what is written.")
    if path.is_dir():
        raise click.ClickException(f"{path} is a directory; name a file in it.")
    if path.exists() and not path.is_file():
        raise click.ClickException(f"{path} is not a regular file, so it must not be replaced by one.")
    if path.exists() and not force:
        raise click.ClickException(f"{path} is there already; give --force to replace it.")
    return check_folder(path)


def need_matplotlib() -> None:
    """Refuse before any work if figures cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise ImportError("Figures are drawn by matplotlib: pip install 'quickmeans[plots]'.")


def check_folder(path: Path) -> Path:
    """The path, once it is clear that its directory is there and can be written to."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise click.ClickException(f"{path} cannot be written: there is no directory {folder}.")
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise click.ClickException(f"{path} cannot be written: {folder} takes no files ({reason}).") from None
    return path
