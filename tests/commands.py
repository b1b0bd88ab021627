"""Helpers that run commands like a person or a script."""

import sys
from pathlib import Path

from click.testing import CliRunner

from quickmeans.cli.main import program

QUICKMEANS = Path(sys.executable).with_name("quickmeans")


def run(*args, env=None):
    """Run a subcommand in this process."""
    return CliRunner(env=env).invoke(program, [str(arg) for arg in args])


def done(*args, **settings):
    """Return the output of a subcommand that must succeed."""
    result = run(*args, **settings)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result, *words, code=1):
    """Check that a command ended with an error of one line that has these words."""
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert str(word) in result.stderr


def files():
    """Return the names of the files in the current directory."""
    return {path.name for path in Path().iterdir()}
