"""The command ``quickmeans``: its subcommands, each loaded when it is asked for, and what becomes of errors."""

import os
import signal
import sys
import threading
import traceback
import warnings
from importlib import import_module
from typing import Any

import click

import quickmeans
from quickmeans.cli.command import DEBUG, Interrupted, asks_for_traceback

# section of the help -> name -> (module of quickmeans.cli with a click command of that name, one line for the help)
COMMANDS = {
    "Start here": {
        "demo": ("demo", "See it work: image patches clustered by scikit-learn and by QKMeans."),
    },
    "Clusters": {
        "fit": ("fit", "Cluster the rows of a file."),
        "predict": ("predict", "Find the cluster of every row of a file."),
        "compare": ("compare", "Measure QKMeans beside other k-means libraries on your rows."),
        "info": ("info", "Show what a model or an index is made of."),
        "report": ("report", "Show a model on one HTML page: centroids, clusters, factors, time and size."),
    },
    "Neighbours and kernels": {
        "index": ("index", "Build an index of rows, and find nearest neighbours in it."),
        "nystroem": ("nystroem", "Features that approximate a kernel."),
    },
    "The paper": {
        "reproduce": ("reproduce", "Measure the tables and figures of the paper on QuicK-means."),
    },
}
HOMES = {name: module for section in COMMANDS.values() for name, (module, _) in section.items()}

_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)  # what bad input leads to


class Lazy(click.Group):
    """A group that imports a subcommand only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a newcomer meets them."""
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name."""
        if cmd_name not in HOMES:
            return None
        command: click.Command = getattr(import_module(f"quickmeans.cli.{HOMES[cmd_name]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line per subcommand, without importing any."""
        width = max(map(len, HOMES))
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Names of subcommands, without importing any, and options."""
        from click.shell_completion import CompletionItem

        lines = {name: line for section in COMMANDS.values() for name, (_, line) in section.items()}
        names = [CompletionItem(name, help=line) for name, line in lines.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Below the subcommands."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """With --debug, which subcommands take too."""
        return [*super().get_params(ctx), DEBUG]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; with --debug, print the traceback of an error before it is told in one line."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)  # those that are for the user
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise Interrupted("nothing was written.") from None  # outputs appear complete or not at all
            except Exception as error:
                if asks_for_traceback(ctx) and not isinstance(error, click.ClickException | click.exceptions.Exit):
                    traceback.print_exc()
                raise

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and end the process: 0, or 1 for an error, 2 for wrong usage, 130 for Ctrl-C, each with one line."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _terminate)
        try:
            code = super().main(*args, **extra | {"prog_name": "quickmeans", "standalone_mode": False})
            sys.stdout.flush()
        except click.UsageError as error:
            if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # not before click 8.2
                click.echo(error.format_message(), err=True)
                sys.exit(2)
            path = error.ctx.command_path if error.ctx else "quickmeans"
            say("error:", f"{error.format_message()} ('{path} --help' says more)")
            sys.exit(2)
        except click.ClickException as error:
            say("interrupted:" if isinstance(error, Interrupted) else "error:", error.format_message())
            sys.exit(error.exit_code)
        except click.Abort:  # Ctrl-C before there was anything to do
            sys.exit(Interrupted.exit_code)
        except BrokenPipeError:  # nobody reads any more, so there is nobody to tell
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except Exception as error:
            say("error:", _sentence(error))
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _terminate(*_: Any) -> None:
    """End as by an error: what is half done is removed."""
    sys.exit(128 + signal.SIGTERM)


def say(kind: str, text: str = "") -> None:
    """One line on stderr; its first word is red in a terminal with colours."""
    click.secho(kind, fg="red", err=True, nl=not text, color=False if os.environ.get("NO_COLOR") else None)
    if text:
        click.echo(" " + " ".join(text.split()), err=True)


def _sentence(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror.lower()}."
    if isinstance(error, MemoryError):
        return f"there is not enough memory. {error}".strip()
    if isinstance(error, _EXPECTED) and str(error):
        return str(error).splitlines()[0]  # scikit-learn goes on with advice for programmers
    return f"{type(error).__name__}: {error} (this should not happen; with --debug it says where it comes from)"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say("warning:", str(message))


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\n'quickmeans COMMAND --help' has examples. For completion with the Tab key, in .bashrc:\n"
    '  eval "$(_QUICKMEANS_COMPLETE=bash_source quickmeans)"      (or zsh_source, fish_source)',
)
@click.version_option(quickmeans.__version__, prog_name="quickmeans")
def main() -> None:
    """K-means for many clusters in high dimension, on your own data."""
