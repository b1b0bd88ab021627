"""``quickmeans export``: a model as an ONNX file."""

from pathlib import Path

import click

from quickmeans.cli.command import Command, option
from quickmeans.cli.data import load_model
from quickmeans.cli.outputs import output_option
from quickmeans.cli.values import Whole


@click.command(
    cls=Command,
    examples=["export model.safetensors -o model.onnx", "export model.safetensors -o model.onnx --opset 13"],
)
@click.argument("model", type=click.Path())
@output_option("The ONNX file", (".onnx",), required=True)
@option("--opset", type=Whole(1), help="Version of ONNX's operators, 13 or newer.  [default: 17]")
def export(model: str, output: Path, opset: int | None) -> None:
    """Write the assignment of rows to the clusters of MODEL as an ONNX file. Needs onnx.

    The graph takes rows X and gives labels and distances, like 'predict --exact'.
    """
    from quickmeans import QKMeans
    from quickmeans.cli.terminal import print_facts, size

    clustering = load_model(model, QKMeans)
    clustering.to_onnx(output, **({} if opset is None else {"opset": opset}))
    K, D = clustering.cluster_centers_.shape
    kind = clustering.assigner_.geometry.dtype
    print_facts(
        [
            ("ONNX", f"{K} clusters, {size(output.stat().st_size)}"),
            ("input", f"X, {kind}, n_rows x {D}"),
            ("outputs", f"labels, int64; distances, {kind}"),
            ("written to", str(output)),
        ]
    )
