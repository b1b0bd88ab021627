"""Imports go one way: the layers of docs/design.md, no circle, no exception."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import quickmeans

ROOT = Path(quickmeans.__file__).parent

# From the bottom up. A module imports from its own layer and those below.
LAYERS = [
    ["_native", "callers", "checks", "threads", "timing", "atomic", "memory", "rollback", "testing", "timing"],
    ["kernels"],
    ["transform"],
    ["state"],
    ["kmeans"],
    ["data", "distributed"],
    ["files"],
    ["search", "nystroem", "export"],
    ["validation", "progress", "warned", "scaling"],
    ["inspection"],
    ["cluster"],
    ["neighbors", "neighbors_transformer", "kernel_approximation", "sweeps"],
    ["models"],
    ["report"],
    ["comparison"],
    ["experiments"],
    ["cli"],
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# Packages from outside, and the lowest layer that may import them.
OUTSIDE = {
    "sklearn": "data",
    "safetensors": "files",
    "faiss": "search",
    "dask": "distributed",
    "pyarrow": "data",
    "onnx": "export",
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def imports(path):
    """Everything a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(name):
    """The module of quickmeans that an imported name belongs to, or None."""
    if not name.startswith("quickmeans."):
        return None
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in MODULES and parts != ["_native"]:
        parts.pop()
    return ".".join(parts) or None


GRAPH = {name: {own(target) for target in imports(path)} - {None, name} for name, path in MODULES.items() if name}


def test_every_module_has_a_layer():
    assert {name.split(".")[0] for name in GRAPH} <= RANK.keys()


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_no_module_imports_from_above(name):
    for target in GRAPH[name]:
        assert RANK[target.split(".")[0]] <= RANK[name.split(".")[0]], f"{name} imports {target}"


def test_there_is_no_circle():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_only_kernels_imports_the_native_module():
    assert {name.split(".")[0] for name, targets in GRAPH.items() if "_native" in targets} == {"kernels"}


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_packages_from_outside_come_in_at_their_layer(name):
    for target in imports(MODULES[name]):
        package = target.split(".")[0]
        if package in OUTSIDE:
            assert RANK[name.split(".")[0]] >= RANK[OUTSIDE[package]], f"{name} imports {target}"
