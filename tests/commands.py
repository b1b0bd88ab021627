"""Commands as a person or a script would run them."""

import sys
from pathlib import Path

from click.testing import CliRunner

from quickmeans.cli.main import main

QUICKMEANS = Path(sys.executable).with_name("quickmeans")


def run(*args, env=None):
    """A subcommand in this process."""
    return CliRunner(env=env).invoke(main, [str(arg) for arg in args])


def done(*args, **settings):
    """The output of a subcommand that must succeed."""
    result = run(*args, **settings)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result, *words, code=1):
    """It must have ended with one line that says so."""
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert str(word) in result.stderr


def files():
    """The names in the current directory."""
    return {path.name for path in Path().iterdir()}
