"""The command line, as a person or a script would use it."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from quickmeans.cli.main import COMMANDS, HOMES, main


def run(*args):
    """A subcommand in this process."""
    return CliRunner().invoke(main, [str(arg) for arg in args])


def refused(result, *words, code=1):
    """Whether it ended with one line that says so."""
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert str(word) in result.stderr


def commands(command=main, path=()):
    """All subcommands with their paths."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    return [
        found
        for name in command.list_commands(context)
        for found in commands(command.get_command(context, name), (*path, name))
    ]


# ---- help -----------------------------------------------------------------------------------------------------------


def test_help_lists_every_command_once():
    result = run("--help")
    assert result.exit_code == 0
    for section in COMMANDS:
        assert f"{section}:" in result.stdout
    for name in HOMES:
        assert result.stdout.count(f"\n  {name} ") == 1


def test_help_loads_no_numerical_library():
    code = "import sys, quickmeans.cli; assert not {'numpy', 'sklearn', 'scipy', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_explains_itself(path):
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 120


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_wrong_usage():
    refused(run("nonsense"), "nonsense", "quickmeans --help", code=2)
    refused(run("demo", "--nonsense"), "--nonsense", "quickmeans demo --help", code=2)
