"""The command line, used like a person or a script would."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from commands import QUICKMEANS, done, files, refused, run

import quickmeans
from quickmeans import QKMeans
from quickmeans.cli import data
from quickmeans.cli.main import COMMANDS, MODULES, program
from quickmeans.cli.terminal import console, count, seconds, size, sparkline
from quickmeans.data import open_rows
from quickmeans.transform.solvers import SOLVERS

# ---- help -----------------------------------------------------------------------------------------------------------


def commands(command=program, path=()):
    """Return the paths of all subcommands."""
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command)
    return [
        subcommand
        for name in command.list_commands(context)
        for subcommand in commands(command.get_command(context, name), (*path, name))
    ]


def test_help_lists_every_command_once():
    text = done("--help")
    for section in COMMANDS:
        assert f"{section}:" in text
    for name in MODULES:
        assert text.count(f"\n  {name} ") == 1


def test_help_loads_no_numerical_library():
    code = "import sys, quickmeans.cli; assert not {'numpy', 'sklearn', 'scipy', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys, quickmeans.cli.fit, quickmeans.cli.index; assert not {'numpy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_explains_itself(path):
    text = done(*path, "--help")
    assert max(map(len, text.splitlines())) <= 120
    for example in re.findall(r"^  quickmeans (.*)", text.partition("Examples:")[2], re.MULTILINE):
        assert example.startswith(" ".join(path))


def test_completion():
    env = os.environ | {"_QUICKMEANS_COMPLETE": "bash_complete", "COMP_WORDS": "quickmeans pre", "COMP_CWORD": "1"}
    out = subprocess.run([QUICKMEANS], env=env, capture_output=True, text=True, check=True).stdout
    assert out == "plain,predict\n"


# ---- clusters -------------------------------------------------------------------------------------------------------


def test_fit_predict_info(here):
    text = done("fit", "rows.npy", "-k", 6, "--seed", 0, "-o", "model.safetensors")
    assert "6 clusters, 12 features" in text
    assert "written to  model.safetensors" in text
    text = done("predict", "model.safetensors", "rows.npy", "-o", "labels.npy")
    assert "6 of 6 have rows; the largest has 50" in text
    X = np.load("rows.npy")
    expected = QKMeans(6, random_state=0).fit(X)
    np.testing.assert_array_equal(np.load("labels.npy"), expected.labels_)
    facts = json.loads(done("info", "model.safetensors", "--json"))
    assert facts["objective"] == expected.inertia_
    assert facts["objective_history"] == expected.objective_history_.tolist()
    assert facts["file_bytes"] == os.path.getsize("model.safetensors")
    assert files() == {"rows.npy", "model.safetensors", "labels.npy"}


def test_a_file_too_large_for_memory_is_streamed(here, monkeypatch):
    done("fit", "rows.npy", "-k", 6, "--seed", 0, "-o", "memory.safetensors")
    assert len(data.read_if_small(open_rows("rows.npy"))) == 300
    monkeypatch.setattr(data, "MEMORY_LIMIT", 1000)
    assert data.read_if_small(open_rows("rows.npy")) is None
    done("fit", "rows.npy", "-k", 6, "--seed", 0, "-o", "stream.safetensors")
    memory, stream = quickmeans.load("memory.safetensors"), quickmeans.load("stream.safetensors")
    np.testing.assert_allclose(memory.cluster_centers_, stream.cluster_centers_, rtol=1e-5)


@pytest.mark.parametrize(("stored", "kept"), [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("i4", "f8"), ("f8", "f8")])
def test_rows_are_kept_in_the_type_that_models_compute_in(here, monkeypatch, stored, kept):
    X = np.arange(24, dtype=stored).reshape(8, 3)
    np.save("x.npy", X)
    rows = data.read_if_small(open_rows("x.npy"))
    assert rows.dtype == kept
    np.testing.assert_array_equal(rows, X)
    monkeypatch.setattr(data, "MEMORY_LIMIT", rows.nbytes - 1)
    assert data.read_if_small(open_rows("x.npy")) is None


def test_the_parameters_arrive(here):
    np.save("start.npy", np.load("rows.npy")[::50])
    options = "--solver hierarchical --sparsity-level 3 --n-factors 2 --max-iter 4 --tol 0.5 --n-init 1 --threads 1"
    options += " --search none"
    done("fit", "rows.npy", "-k", 6, "--paper", *options.split(), "--init", "start.npy", "-o", "m.safetensors")
    model = quickmeans.load("m.safetensors")
    given = {"solver": "hierarchical", "sparsity_level": 3, "n_factors": 2, "shortlist": 0, "max_iter": 4, "tol": 0.5}
    given["search"] = "none"
    assert given.items() <= model.get_params().items()
    assert model.cluster_centers_.shape == (6, 12)
    done("fit", "rows.npy", "-k", 6, "--paper", "--max-iter", 2, "-o", "p.safetensors")
    paper = quickmeans.load("p.safetensors").get_params()
    assert (paper["solver"], paper["sparsity_level"], paper["shortlist"]) == ("palm4msa", 5, 0)
    assert paper["n_factors"] == "paper"
    done("fit", "rows.npy", "-k", 6, "--with-labels", "--batch-size", 50, "--compression", 2, "-o", "l.safetensors")
    assert len(quickmeans.load("l.safetensors").labels_) == 300


def test_columns_and_keys(here):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    X = np.load("rows.npy")
    pyarrow.parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "word": ["x"] * 300}), "table.parquet")
    np.savez("two.npz", x=X, y=X[:, :3])
    done("fit", "table.parquet", "--columns", "a, b", "-k", 3, "-o", "a.safetensors")
    assert quickmeans.load("a.safetensors").feature_names_in_.tolist() == ["a", "b"]
    done("predict", "a.safetensors", "table.parquet", "--columns", "a,b", "-o", "labels.parquet")
    assert pyarrow.parquet.read_table("labels.parquet").num_rows == 300
    refused(run("predict", "a.safetensors", "table.parquet", "--columns", "b,a"), "a, b")
    done("fit", "table.parquet", "-k", 3, "-o", "all.safetensors")
    assert quickmeans.load("all.safetensors").feature_names_in_.tolist() == ["a", "b"]
    refused(run("fit", "table.parquet", "-k", 3, "--columns", "a,word", "-o", "c.safetensors"), "'word'", "columns")
    refused(run("fit", "two.npz", "-k", 3, "-o", "b.safetensors"), "key", "'x', 'y'")
    done("fit", "two.npz", "--key", "y", "-k", 3, "-o", "b.safetensors")
    assert quickmeans.load("b.safetensors").n_features_in_ == 3


def test_predict_without_a_file_shows_sizes(here):
    done("fit", "rows.npy", "-k", 6, "--seed", 0, "-o", "m.safetensors")
    assert "16.67 %" in done("predict", "m.safetensors", "rows.npy")
    facts = json.loads(done("predict", "m.safetensors", "rows.npy", "--exact", "--json"))
    assert facts["sizes"] == [50] * 6
    assert facts["rows"] == 300


# ---- neighbours and kernels -----------------------------------------------------------------------------------------


def test_index(here):
    pytest.importorskip("faiss")
    np.save("queries.npy", np.load("rows.npy")[:15])
    assert "300 rows, 12 features, euclidean" in done("index", "build", "rows.npy", "--seed", 0, "-o", "rows.index")
    assert "300 rows" in done("index", "info", "rows.index")
    assert json.loads(done("info", "rows.index", "--json"))["lists"] > 1
    assert "and 5 more" in done("index", "query", "rows.index", "queries.npy", "-k", 3)
    before = files()
    done("index", "query", "rows.index", "queries.npy", "-k", 3, "-o", "NEIGHBOURS.NPZ")
    assert files() == before | {"NEIGHBOURS.NPZ"}
    done("index", "query", "rows.index", "queries.npy", "-k", 3, "-o", "neighbours.npz")
    with np.load("neighbours.npz") as arrays:
        assert arrays["ids"].shape == arrays["distances"].shape == (15, 3)
        np.testing.assert_array_equal(arrays["ids"][:, 0], np.arange(15))
        shown = json.loads(done("index", "query", "rows.index", "queries.npy", "-k", 3, "--json"))
        assert shown["ids"] == arrays["ids"].tolist()
    refused(run("predict", "rows.index", "rows.npy"), "QKNeighbors", "QKMeans")
    refused(run("index", "query", "rows.index", "queries.npy", "-k", 301), "300", "301")


def test_nystroem(here, monkeypatch):
    monkeypatch.setattr("quickmeans.data.source.CHUNK_BYTES", 1000)  # several chunks
    done("nystroem", "fit", "rows.npy", "-k", 20, "--gamma", "scale", "--seed", 0, "-o", "kernel.safetensors")
    assert "300 x 20" in done("nystroem", "transform", "kernel.safetensors", "rows.npy", "-o", "features.npy")
    expected = quickmeans.load("kernel.safetensors").transform(np.load("rows.npy"))
    np.testing.assert_allclose(np.load("features.npy"), expected, atol=1e-3)
    assert "20 landmarks" in done("info", "kernel.safetensors")
    refused(run("nystroem", "fit", "rows.npy", "-k", 5, "--gamma", "x", "-o", "b"), "--gamma", "'scale'", code=2)
    refused(run("nystroem", "fit", "rows.npy", "-k", 5, "--kernel", "x", "-o", "b"), "--kernel", "'rbf'", code=2)


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [(), ("index",), ("nystroem",)])
def test_a_group_alone_shows_its_help(group):
    result = run(*group)
    assert (result.output or result.stderr).splitlines() == done(*group, "--help").splitlines()
    assert "..." not in (result.output or result.stderr).partition("Commands:")[2]  # every line is whole


def test_names_with_brackets(here):
    pytest.importorskip("faiss")
    done("index", "build", "rows.npy", "--seed", 0, "-o", "rows[a].index")
    parts = sum(file.stat().st_size for file in here.iterdir() if file.name.startswith("rows[a]"))
    assert json.loads(done("info", "rows[a].index", "--json"))["file_bytes"] == parts
    console().print("The plot is in [red]/plot[/old].png.")


def test_a_file_that_changes_while_it_is_read(here, monkeypatch):
    done("fit", "rows.npy", "-k", 6, "-o", "model")
    monkeypatch.setattr("quickmeans.cli.progress.RowMeter.__call__", lambda meter, n: os.utime("rows.npy", (0, 0)))
    refused(run("predict", "model", "rows.npy", "-o", "labels.npy"), "rows.npy was written to meanwhile")
    assert not os.path.exists("labels.npy")


def test_wrong_usage():
    refused(run("nonsense"), "nonsense", "quickmeans --help", code=2)
    refused(run("demo", "--nonsense"), "--nonsense", "quickmeans demo --help", code=2)
    refused(run("fit", "rows.npy", "-k", "many", "-o", "x"), "many", "-k", code=2)
    refused(run("fit", "rows.npy", "-k", 0, "-o", "x"), "0", "-k", code=2)
    refused(run("fit", "rows.npy", "-k", 3.5, "-o", "x"), "3.5", "whole number", code=2)
    for seed in (-1, 2**32):
        refused(run("fit", "rows.npy", "-k", 2, "--seed", seed, "-o", "x"), "--seed must be", f"got {seed}", code=2)
    refused(run("fit", "rows.npy", "-k", 2, "--tol", "x", "-o", "x"), "--tol must be a number, got 'x'", code=2)
    refused(run("fit", "rows.npy", "-k", 2, "--n-init", 0, "-o", "x"), "--n-init", "'auto'", "got 0", code=2)
    refused(run("fit", "rows.npy", "-k", 2, "--solver", "x", "-o", "x"), "--solver", *map(repr, SOLVERS), code=2)


def test_numbers_are_checked_like_those_of_the_estimators(here):
    with pytest.raises(ValueError, match="n_clusters must be") as error:
        QKMeans(0).fit(np.load("rows.npy"))
    message = str(error.value).replace("n_clusters", "-k")
    refused(run("fit", "rows.npy", "-k", 0, "-o", "x"), f"error: {message} (see", code=2)


def test_the_help_states_the_defaults_of_the_estimator():
    defaults = {name: parameter.default for name, parameter in inspect.signature(QKMeans).parameters.items()}
    shown = {
        param.name: re.search(r"\[default: (.*)\]", param.help)[1]
        for param in program.get_command(None, "fit").params
        if "[default:" in (getattr(param, "help", None) or "") and param.name in defaults
    }
    assert len(shown) > 8
    assert shown.pop("n_threads") == "all"
    assert shown == {name: str(defaults[name]) for name in shown}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("fit none.npy -k 2 -o m.safetensors", ["none.npy", "no such file"]),
        ("fit rows.dat -k 2 -o m.safetensors", ["rows.dat", ".parquet"]),
        ("fit bad.npy -k 2 -o m.safetensors", ["bad.npy", "no .npy file"]),
        ("fit nan.npy -k 2 -o m.safetensors", ["NaN", "row 7 of nan.npy, column 3"]),
        ("nystroem fit nan.npy -k 2 -o m.safetensors", ["NaN", "row 7 of nan.npy, column 3"]),
        ("index build nan.npy -o m.index", ["NaN", "row 7 of nan.npy, column 3"]),
        ("compare nan.npy -k 2", ["NaN", "row 7 of nan.npy, column 3"]),
        ("compare nan.npy -k 2 --sample 300", ["NaN", "nan.npy"]),
        ("fit rows.npy -k 301 -o m.safetensors", ["300 rows", "301"]),
        ("nystroem fit rows.npy -k 301 -o m.safetensors", ["300 rows", "301"]),
        ("fit rows.npy -k 2 -o none/m.safetensors", ["none/m.safetensors", "no directory"]),
        ("fit rows.npy -k 2 -o taken", ["taken", "--force"]),
        ("fit rows.npy -k 2 -o .", ["is a directory"]),
        ("fit rows.npy -k 2 -o m.safetensors --checkpoint none/c", ["none/c", "no directory"]),
        ("fit rows.npy -k 2 -o m.safetensors --init nowhere", ["nowhere", "random"]),
        ("fit rows.npy -k 2 -o m.safetensors --init rows.npy", ["does not match the number of clusters 2"]),
        ("fit rows.npy -k 2 -o rows.npy --force", ["rows.npy is an input of this command"]),
        ("fit rows.npy -k 2 -o ./rows.npy", ["rows.npy is an input of this command"]),
        ("predict taken rows.npy -o rows.npy --force", ["rows.npy is an input of this command"]),
        ("fit rows.npy -k 2 --init start.npy -o start.npy --force", ["start.npy is an input of this command"]),
        ("predict taken rows.npy", ["taken", "no safetensors file"]),
        ("predict none rows.npy", ["none", "no such file"]),
        ("info rows.npy", ["rows.npy", "no safetensors file"]),
        ("predict taken rows.npy -o labels.txt", ["labels.txt", ".npy or .parquet"]),
    ],
)
def test_bad_input(here, args, words):
    Path("taken").write_text("something")
    Path("rows.dat").write_text("1 2 3")
    Path("bad.npy").write_text("1 2 3")
    X = np.load("rows.npy")
    X[7, 3] = np.nan
    np.save("nan.npy", X)
    np.save("start.npy", X[:2])
    before = files()
    refused(run(*args.split()), *words)
    assert files() == before
    assert Path("taken").read_text() == "something"


def test_force(here):
    Path("taken").write_text("something")
    done("fit", "rows.npy", "-k", 2, "-o", "taken", "--force")
    assert json.loads(done("info", "taken", "--json"))["clusters"] == 2


def test_an_output_that_cannot_be_written(here):
    folder = "/proc" if os.geteuid() == 0 else "closed"  # root may write anywhere that is a directory of files
    Path("closed").mkdir(mode=0o500)
    refused(run("fit", "rows.npy", "-k", 2, "-o", f"{folder}/model"), f"{folder}/model", "cannot be written")


def test_debug_shows_the_traceback(here):
    for args in (["--debug", "fit", "none.npy"], ["fit", "--debug", "none.npy"]):
        result = run(*args, "-k", 2, "-o", "m")
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert result.stderr.splitlines()[-1].startswith("error: none.npy")


def test_errors_that_nobody_expects_are_one_line_too(here, monkeypatch):
    def fail(path):
        raise KeyError("surprise")

    monkeypatch.setattr("quickmeans.models.load", fail)
    monkeypatch.setattr(quickmeans, "load", fail)
    refused(run("info", "rows.npy"), "KeyError", "surprise", "--debug")


def test_warnings_are_one_line(here):
    np.save("same.npy", np.ones((20, 3), np.float32))
    result = run("fit", "same.npy", "-k", 3, "-o", "m.safetensors")
    assert result.exit_code == 0
    assert re.fullmatch(
        r"warning: Number of distinct clusters \(1\) found smaller than n_clusters \(3\)\. .*\n", result.stderr
    )


# ---- numbers for people ---------------------------------------------------------------------------------------------


def test_numbers_for_people():
    assert [size(n) for n in (999, 1000, 803_000, 2_500_000_000)] == ["999 B", "1 kB", "803 kB", "2.5 GB"]
    assert [seconds(t) for t in (0.0123, 5, 125)] == ["12.3 ms", "5.0 s", "2 min 05 s"]
    assert [count(n) for n in (9999, 12_345, 4_560_000, 7.8e9)] == ["9999", "12.3k", "4.56M", "7.8G"]
    assert sparkline([3, 2, 0]) in ("█▆▁", "#=_")
    assert len(sparkline(range(1000))) == 24
    assert sparkline([5, 5]) in ("██", "##")
