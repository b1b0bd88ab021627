"""The command ``quickmeans``."""

from quickmeans.cli.main import main

__all__ = ["main"]
