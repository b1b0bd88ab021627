"""``quickmeans info``: the contents of a saved model or index."""

import click

from quickmeans.cli.command import Command
from quickmeans.cli.outputs import json_option


@click.command(cls=Command, examples=["info model.safetensors", "info model.safetensors --json"])
@click.argument("model", type=click.Path())
@json_option
def info(model: str, as_json: bool) -> None:
    """Show the shape, factors, size and objective of MODEL, a file written by quickmeans."""
    import quickmeans
    from quickmeans.cli.describe import print_model

    print_model(quickmeans.load(model), model, as_json=as_json)
