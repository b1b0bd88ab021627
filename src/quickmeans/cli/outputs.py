"""Output files: a command refuses one that it cannot or must not write before it does any work."""

import os
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from quickmeans.cli.command import on_interrupt, option

Function = Callable[..., Any]
SECTION = "Output"

json_option = option("--json", "as_json", section=SECTION, is_flag=True, help="Print JSON.")


def output_option(
    what: str, endings: tuple[str, ...] = (), *, required: bool = False
) -> Callable[[Function], Function]:
    """Give a command the options -o/--output and --force; it gets ``output``, a checked Path or None."""
    shown = f"{what} ({', '.join(endings)})." if endings else f"{what}."

    def decorate(function: Function) -> Function:
        @wraps(function)
        def checked(*args: Any, output: str | None, force: bool, **options: Any) -> Any:
            path = None
            if output is not None:
                _refuse_input(output)
                path = check_output(output, endings, force=force)
                on_interrupt(output_note(path))
            return function(*args, output=path, **options)

        file = option("-o", "--output", section=SECTION, metavar="FILE", required=required, help=shown)
        return file(option("--force", section=SECTION, is_flag=True, help="Replace the file if it exists.")(checked))

    return decorate


def output_note(path: Path, hint: Callable[[], str] = lambda: "") -> Callable[[], str]:
    """Return a function that says whether the file has been written since; if not, with a hint."""
    before = _version(path)
    return lambda: f"{path} was not written{hint()}." if _version(path) == before else f"{path} has been written."


def _version(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _refuse_input(output: str) -> None:
    """Refuse to replace the rows or the model that the command reads."""
    context = click.get_current_context()
    inputs = [p.name for p in context.command.params if isinstance(p, click.Argument) or p.name == "init"]
    for path in (context.params.get(name or "") for name in inputs):
        if isinstance(path, str) and os.path.exists(path) and os.path.realpath(path) == os.path.realpath(output):
            raise click.ClickException(f"{output} is an input of this command; give another output.")


def check_output(output: str | os.PathLike[str], endings: tuple[str, ...] = (), *, force: bool) -> Path:
    """Return the path if a file can be written there."""
    path = Path(output)
    if endings and path.suffix.lower() not in endings:
        raise click.ClickException(f"{path} must end in {' or '.join(endings)}, which selects the format.")
    if path.is_dir():
        raise click.ClickException(f"{path} is a directory; give the name of a file.")
    if path.exists() and not path.is_file():
        raise click.ClickException(f"{path} is not a regular file, so it must not be replaced by one.")
    if path.exists() and not force:
        raise click.ClickException(f"{path} exists already; give --force to replace it.")
    return check_folder(path)


def check_labels(labels: str | None) -> Path | None:
    """Return the path of a second output of the command, which has labels."""
    if labels is None:
        return None
    force: bool = click.get_current_context().params["force"]
    return check_output(labels, (".npy", ".parquet", ".csv"), force=force)


def check_folder(path: Path) -> Path:
    """Return the path if its directory exists and can be written to."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise click.ClickException(f"{path} cannot be written: there is no directory {folder}.")
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise click.ClickException(f"{path} cannot be written to {folder}: {reason}.") from None
    return path


def need_matplotlib() -> None:
    """Refuse before any work if figures cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise ImportError("Figures need matplotlib: pip install 'quickmeans[plots]'.")
