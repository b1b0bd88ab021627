"""``quickmeans info``: what a saved model or index is made of."""

import click

from quickmeans.cli.command import Command
from quickmeans.cli.outputs import json_option


@click.command(cls=Command, examples=["info model.safetensors", "info model.safetensors --json"])
@click.argument("model", type=click.Path())
@json_option
def info(model: str, as_json: bool) -> None:
    """Show the shape, the factors, the size and the objective of MODEL, a file that quickmeans has written."""
    import quickmeans
    from quickmeans.cli.describe import describe, lines
    from quickmeans.cli.terminal import print_facts, print_json

    found = describe(quickmeans.load(model), model)
    if as_json:
        print_json(found)
    else:
        print_facts(lines(found))
