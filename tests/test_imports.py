"""Imports go one way: native <- transform <- lloyd <- estimators <- everything else."""

import ast
from pathlib import Path

import pytest

import quickmeans

ROOT = Path(quickmeans.__file__).parent

# What a layer may import of quickmeans, and which packages from outside the standard library.
RULES = {
    "threads.py": (set(), {"threadpoolctl"}),
    "testing.py": (set(), {"numpy"}),
    "transform": ({"_native", "threads", "transform"}, {"numpy", "scipy"}),
    "lloyd": ({"_native", "threads", "transform", "lloyd"}, {"numpy", "scipy"}),
    "container.py": ({"transform"}, {"numpy", "scipy", "safetensors"}),
    "search": (
        {
            "_native",
            "threads",
            "lloyd",
            "cluster",
            "neighbors",
            "neighbors_transformer",
            "container",
            "persistence",
            "search",
        },
        {"numpy", "faiss"},
    ),
    "neighbors.py": ({"threads", "cluster", "parameters", "search"}, {"numpy", "scipy", "sklearn"}),
    "neighbors_transformer.py": ({"cluster", "neighbors"}, {"scipy", "sklearn"}),
    "nystroem": ({"threads", "transform", "lloyd", "nystroem"}, {"numpy", "scipy"}),
    "kernel_approximation.py": (
        {"threads", "transform", "lloyd", "nystroem", "cluster", "parameters", "persistence"},
        {"numpy", "scipy", "sklearn"},
    ),
    "persistence.py": (
        {"transform", "lloyd", "cluster", "kernel_approximation", "nystroem", "container", "parameters", "search"},
        {"numpy", "sklearn"},
    ),
    "rows": ({"threads", "lloyd", "rows", "transform"}, {"numpy", "pyarrow", "h5py", "dask", "distributed"}),
    "report": (
        {"threads", "transform", "lloyd", "cluster", "container", "report"},
        {"numpy", "scipy", "sklearn", "threadpoolctl"},
    ),
    "checkpoint.py": ({"transform", "lloyd", "container"}, {"numpy"}),
}
OUTSIDE = {
    "numpy",
    "scipy",
    "sklearn",
    "rich",
    "matplotlib",
    "dask",
    "distributed",
    "h5py",
    "faiss",
    "pyarrow",
    "safetensors",
    "pandas",
    "threadpoolctl",
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = [(rule, path) for rule in RULES for path in [ROOT / rule, *(ROOT / rule).rglob("*.py")] if path.is_file()]


@pytest.mark.parametrize(("rule", "path"), FILES, ids=lambda value: getattr(value, "name", value))
def test_a_layer_imports_only_what_lies_below(rule, path):
    ours, theirs = RULES[rule]
    for name in imports(path):
        package, *rest = name.split(".")
        if package == "quickmeans":
            assert rest[0] in ours, f"{path.name} imports {name}"
        elif package in OUTSIDE:
            assert package in theirs, f"{path.name} imports {name}"


def test_the_rules_cover_the_layers():
    assert {rule for rule, _ in FILES} >= {"transform", "threads.py", "testing.py"}
