"""The command ``quickmeans``: its subcommands, each loaded when it is asked for."""

from importlib import import_module

import click

import quickmeans

# name: (module of quickmeans.cli with a click command of that name, one line for the help)
COMMANDS = {
    "demo": ("demo", "See it work: image patches clustered by scikit-learn and by QKMeans."),
}


class Lazy(click.Group):
    """A group that imports a subcommand only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"quickmeans.cli.{module}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line per subcommand, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(quickmeans.__version__, prog_name="quickmeans")
def main() -> None:
    """K-means for many clusters in high dimension."""
