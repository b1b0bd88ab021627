"""The command ``quickmeans``: its subcommands, which are imported when they are used, and its exit codes."""

import os
import re
import signal
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

import quickmeans
from quickmeans.cli.command import DEBUG, Interrupted, Stopped, interruption, is_debug
from quickmeans.cli.data import STANDARD_INPUT

# section of the help -> name -> (module of quickmeans.cli with a click command of that name, its line in the help)
COMMANDS = {
    "Start here": {
        "demo": ("demo", "See it work: cluster image patches with scikit-learn and with QKMeans."),
    },
    "Clusters": {
        "fit": ("fit", "Cluster the rows of a file."),
        "predict": ("predict", "Find the cluster of every row of a file."),
        "sweep": ("sweep", "Try several numbers of clusters and suggest one."),
        "compare": ("compare", "Compare QKMeans with other k-means libraries on your rows."),
        "info": ("info", "Show what a model or an index contains."),
        "export": ("export", "Write a model as an ONNX file."),
        "report": ("report", "Write an HTML page on a model: centroids, clusters, factors, time and size."),
    },
    "Neighbours and kernels": {
        "index": ("index", "Build an index of rows and search it for nearest neighbours."),
        "nystroem": ("nystroem", "Compute features that approximate a kernel."),
    },
    "The paper": {
        "reproduce": ("reproduce", "Repeat the experiments of the paper on QuicK-means."),
    },
}
MODULES = {name: module for section in COMMANDS.values() for name, (module, _) in section.items()}

_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)  # the errors that bad input leads to


class Program(click.Group):
    """All subcommands; each is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand of that name."""
        if cmd_name not in MODULES:
            return None
        command: click.Command = getattr(import_module(f"quickmeans.cli.{MODULES[cmd_name]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per subcommand without importing any."""
        width = max(map(len, MODULES))
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return options and names of subcommands without importing any."""
        from click.shell_completion import CompletionItem

        lines = {name: line for section in COMMANDS.values() for name, (_, line) in section.items()}
        names = [CompletionItem(name, help=line) for name, line in lines.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the subcommands."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, --debug included."""
        return [*super().get_params(ctx), DEBUG]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand. Warnings for users become one line each, --debug prints tracebacks."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except (KeyboardInterrupt, Stopped):
                raise interruption(ctx) from None
            except BrokenPipeError:  # nobody reads the output any more: end like a command that SIGPIPE ends
                raise click.exceptions.Exit(128 + signal.SIGPIPE) from None
            except Exception as error:
                if is_debug(ctx) and not isinstance(error, click.ClickException | click.exceptions.Exit):
                    traceback.print_exc()
                raise

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run, then raise SystemExit: 0 for success, 1 for an error, 2 for wrong usage, 130 for Ctrl-C."""
        try:
            code = super().main(*args, **extra | {"prog_name": "quickmeans", "standalone_mode": False})
            code = code if isinstance(code, int) else 0
        except click.UsageError as error:
            code = 2
            if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2
                click.echo(error.format_message(), err=True)
            else:
                path = error.ctx.command_path if error.ctx else "quickmeans"
                print_message("error:", f"{error.format_message()} (see '{path} --help')")
        except click.ClickException as error:
            code = error.exit_code
            print_message("interrupted:" if isinstance(error, Interrupted) else "error:", error.format_message())
        except click.Abort:  # Ctrl-C before the subcommand began
            code = Interrupted.exit_code
        except Exception as error:
            code = 1
            print_message("error:", _sentence(error))
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter flushes it again
            code = code or 128 + signal.SIGPIPE
        sys.exit(code)


def main() -> NoReturn:
    """Run the command as a process of its own.

    It ends without the shutdown of the interpreter, which takes a while and in which Ctrl-C would be death by signal.
    """
    code: Any = Interrupted.exit_code
    try:
        signal.signal(signal.SIGTERM, _terminate)
        signal.signal(signal.SIGINT, _stop)
        program()
    except SystemExit as end:
        code = end.code
    except Exception:  # stderr is closed
        code = 1
    finally:
        os._exit(code)


def _stop(*_: Any) -> NoReturn:
    raise Stopped


def _terminate(*_: Any) -> NoReturn:
    """End like after an error, which removes unfinished files."""
    sys.exit(128 + signal.SIGTERM)


def print_message(kind: str, text: str) -> None:
    """Print one line to stderr; in a terminal with colours its first word is red."""
    click.secho(kind, fg="red", err=True, nl=False, color=False if os.environ.get("NO_COLOR") else None)
    for folder in STANDARD_INPUT:
        text = re.sub(re.escape(folder) + r"\S*standard-input\.\w+", "standard input", text)
    click.echo(" " + " ".join(text.split()), err=True)


def _sentence(error: Exception) -> str:
    """Return what went wrong in one line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror.lower()}."
    if isinstance(error, MemoryError):
        return f"there is not enough memory. {error}".strip()
    if isinstance(error, _EXPECTED) and str(error):
        return str(error).splitlines()[0]  # the lines after the first are scikit-learn's advice for programmers
    return f"{type(error).__name__}: {error} (a defect of quickmeans; --debug shows where)"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_message("note:" if type(message).__name__ == "Note" else "warning:", str(message))


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\n'quickmeans COMMAND --help' shows examples. For completion with the Tab key, add to .bashrc:\n"
    '  eval "$(_QUICKMEANS_COMPLETE=bash_source quickmeans)"      (or zsh_source, fish_source)',
)
@click.version_option(quickmeans.__version__, prog_name="quickmeans")
def program() -> None:
    """Cluster your own data with k-means, fast for many clusters in high dimension."""
