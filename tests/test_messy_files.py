"""The commands on a table as a new user has it: ids, text, missing values, semicolons and decimal commas."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from commands import done, refused, run

from quickmeans import QKMeans, load
from quickmeans.cli.main import program

N = 60
AGE, INCOME = 20.0 + 15 * (np.arange(N) % 3), 1000.5 * (np.arange(N) % 3) + np.arange(N) % 7
FIT = ("fit", "people.csv", "-k", "3", "--seed", "0", "-o", "m.safetensors")
PREDICT = ("predict", "m.safetensors", "people.csv")


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch):
    """A table whose row 7 has no age."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({
        "id": 1000 + np.arange(N),
        "name, full": [f"P{i}" if i % 5 else 'a "b";\nc' for i in range(N)],
        "age": np.where(np.arange(N) == 7, np.nan, AGE),
        "income": INCOME,
    })  # fmt: skip
    frame.to_csv("people.csv", index=False, sep=";", decimal=",")
    return frame


def test_from_the_table_to_clusters_and_back(people):
    error = run(*FIT).stderr
    assert "note: people.csv: columns left out, because they are no numbers: 'name, full'." in error
    assert "error: Input X has no number in column 'age' (row 7 of people.csv)" in error
    fitted = run(*FIT, "--missing", "drop")
    assert fitted.exit_code == 0, fitted.stderr
    assert "warning: Column 'id' of people.csv looks like an id" in fitted.stderr
    assert "note: people.csv: 1 of 60 rows have missing values and are left out." in fitted.stderr
    fitted = run(*FIT, "--missing", "drop", "--exclude", "id", "--force")
    assert "warning" not in fitted.stderr
    assert load("m.safetensors").feature_names_in_.tolist() == ["age", "income"]
    predicted = run(
        *PREDICT, "--missing", "mean", "--keep", '"name, full",id', "--distance", "--second", "-o", "out.csv"
    )
    assert predicted.stderr == ""
    out, model = pd.read_csv("out.csv"), load("m.safetensors")
    assert out.columns.tolist() == ["name, full", "id", "label", "distance", "second", "second_distance"]
    assert out["name, full"].tolist() == people["name, full"].tolist()
    assert out["id"].tolist() == people["id"].tolist()
    X = people[["age", "income"]].fillna({"age": model.mean_[0]}).to_numpy()
    distances = np.linalg.norm(X[:, None] - model.cluster_centers_, axis=2)
    order = distances.argsort(axis=1)
    np.testing.assert_array_equal(out[["label", "second"]], order[:, :2])
    np.testing.assert_allclose(
        out[["distance", "second_distance"]], np.take_along_axis(distances, order[:, :2], axis=1), atol=1e-9
    )


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_left_out_rows_are_left_out_of_the_output(name):
    done(*FIT, "--missing", "drop", "--columns", "age,income")
    done(*PREDICT, "--missing", "drop", "--keep", "id", "-o", name)
    out = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
    assert out["id"].astype(int).tolist() == [i for i in range(1000, 1000 + N) if i != 1007]
    assert out["label"].dtype.kind == "i"
    done(*PREDICT, "--missing", "drop", "-o", "plain.csv")
    assert pd.read_csv("plain.csv")["label"].tolist() == out["label"].tolist()
    done("report", "m.safetensors", "people.csv", "--missing", "drop", "-o", "r.html")


def test_standard_input():
    done(*FIT, "--missing", "drop", "--columns", "age,income")
    expected = json.loads(done(*PREDICT, "--missing", "drop", "--json"))["sizes"]
    with open("people.csv", "rb") as file:
        result = CliRunner().invoke(
            program, ["predict", "m.safetensors", "-", "--missing", "drop", "--json"], input=file
        )
    assert json.loads(result.stdout)["sizes"] == expected
    np.save("x.npy", np.arange(12.0).reshape(6, 2))
    with open("x.npy", "rb") as file:
        result = CliRunner().invoke(program, ["fit", "-", "-k", "2", "-o", "n.safetensors"], input=file)
    assert result.exit_code == 0, result.stderr
    refused(CliRunner().invoke(program, ["fit", "-", "-k", "2", "-o", "o.safetensors"], input=b""), "is empty")


def test_columns_in_the_shell():
    done(*FIT, "--columns", "a*", "--columns", "income", "--missing", "mean")
    assert load("m.safetensors").feature_names_in_.tolist() == ["age", "income"]
    done(*FIT, "--columns", "age:income", "--missing", "mean", "--force")
    assert load("m.safetensors").feature_names_in_.tolist() == ["age", "income"]
    for option in ("--columns", "--exclude"):
        refused(run(*FIT, "--force", option, "agee"), "people.csv has no column 'agee'; did you mean 'age'?")


@pytest.mark.parametrize("more", [["--keep", "id"], ["--distance"], ["--second"]])
@pytest.mark.parametrize("output", [[], ["-o", "labels.npy"]])
def test_more_than_labels_needs_a_table(more, output):
    done(*FIT, "--missing", "drop", "--columns", "age,income")
    refused(run(*PREDICT, "--missing", "drop", *more, *output), "need -o FILE, which ends in .parquet or .csv", code=2)


def test_rows_without_columns_have_none_to_keep():
    np.save("x.npy", np.arange(12.0).reshape(6, 2))
    done("fit", "x.npy", "-k", "2", "-o", "m.safetensors")
    refused(run("predict", "m.safetensors", "x.npy", "--keep", "id", "-o", "out.csv"), "x.npy is no table", "'id'")
    done("predict", "m.safetensors", "x.npy", "--distance", "-o", "out.csv")
    assert pd.read_csv("out.csv").columns.tolist() == ["label", "distance"]
    done("fit", "x.npy", "-k", "1", "-o", "one.safetensors")
    refused(run("predict", "one.safetensors", "x.npy", "--second", "-o", "o.csv"), "needs two clusters or more")


@pytest.mark.parametrize("options", [{}, {"compression": 2}, {"shortlist": 0, "compression": 2}, {"metric": "cosine"}])
def test_second_nearest(options, rng):
    X = rng.standard_normal((500, 8))
    model = QKMeans(20, random_state=0, **options).fit(X)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if "metric" in options else X
    distances = np.linalg.norm(rows[:, None] - model.cluster_centers_, axis=2)
    ((_, labels, squares, others, other_squares),) = model.assign(X, exact=True, second=True)
    np.testing.assert_array_equal(np.stack([labels, others], axis=1), distances.argsort(axis=1)[:, :2])
    np.testing.assert_allclose([squares, other_squares], np.sort(distances**2, axis=1)[:, :2].T, atol=1e-9)


def test_the_help_names_the_options():
    text = done("predict", "--help")
    for option in (
        "--columns",
        "--exclude",
        "--missing",
        "--separator",
        "--decimal",
        "--no-header",
        "--keep",
        "--second",
    ):
        assert re.search(rf"{option}\b", text)
