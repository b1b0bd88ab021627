"""The commands on a table as a new user has it: ids, text, missing values, semicolons and decimal commas."""

import json
import re
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from commands import done, refused, run

from quickmeans import QKMeans, load, open_rows
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


def test_ids_and_texts_of_a_messy_table_reach_indexes_and_pages(people):
    """Semicolons, decimal commas, gzip and rows that are left out, also where columns are no features."""
    people.to_csv("people.csv.gz", index=False, sep=";", decimal=",")
    built = run("index", "build", "people.csv.gz", "--missing", "drop", "--ids", "id", "--seed", "0", "-o", "p.index")
    assert built.exit_code == 0, built.stderr
    assert "looks like an id" not in built.stderr
    index = load("p.index")
    assert index.n_features_in_ == 2
    frame = people.drop(index=7)[["age", "income"]]
    rows = frame.to_numpy()
    assert index.kneighbors(frame[7:9], 1)[1].ravel().tolist() == [1008, 1009]
    fit = [arg if arg != "people.csv" else "people.csv.gz" for arg in FIT]
    done(*fit, "--missing", "drop", "--exclude", "id")
    done("report", "m.safetensors", "people.csv.gz", "--missing", "drop", "--text", "name, full", "-o", "r.html")
    page, model = Path("r.html").read_text("utf-8"), load("m.safetensors")
    nearest = np.linalg.norm(rows[:, None] - model.cluster_centers_, axis=2).argmin(axis=0)
    for row in nearest:  # counted without row 7
        name = people.drop(index=7)["name, full"].iloc[row]
        assert f'title="row {row}">{" ".join(name.split())}<'.replace('"b"', "&quot;b&quot;") in page


def test_texts_stay_as_they_are(people):
    people["id"] = [f"{i:04d}" for i in range(N)]
    people.to_csv("people.csv", index=False, sep=";", decimal=",")
    done("index", "build", "people.csv", "--missing", "drop", "--ids", "id", "-o", "p.index")
    assert load("p.index").kneighbors(people[["age", "income"]][:1], 1)[1][0, 0] == "0000"


def test_warnings_point_at_the_users_line(people):
    with pytest.warns(UserWarning, match="people.csv") as given:
        QKMeans(3).fit(open_rows("people.csv", missing="drop"))
    assert len(given) == 3  # a column of text, an id, a row with a missing value
    assert {warning.filename for warning in given} <= {__file__, threading.__file__}
    assert __file__ in {warning.filename for warning in given}


def test_standard_input_has_a_name(people):
    text = people.to_csv(index=False)
    result = CliRunner().invoke(program, ["fit", "-", *FIT[2:]], input=text)
    assert "note: standard input: columns left out" in result.stderr
    assert "in column 'age' (row 7 of standard input)" in result.stderr


def test_a_column_that_decides_all_is_noted(people):
    people["income"] *= 1000
    people.to_csv("people.csv", index=False, sep=";", decimal=",")
    drop = ("--missing", "drop", "--exclude", "id", "--force")
    assert "note: column 'income' of people.csv has 100 % of the variance" in run(*FIT, *drop).stderr
    assert "variance" not in run(*FIT, *drop, "--standardize").stderr


def test_labels_of_the_fit_can_be_written(people):
    options = ("--missing", "drop", "--exclude", "id", "--max-cluster-size", "20", "--with-labels")
    text = done(*FIT, *options, "--labels", "l.csv")
    assert "19 to 20 rows" in text
    assert re.search(r"^labels +l.csv$", text, re.M)
    np.testing.assert_array_equal(pd.read_csv("l.csv")["label"], load("m.safetensors").labels_)
    for name, message in [("l.csv", "l.csv exists already"), ("l.txt", "l.txt must end in .npy")]:
        again = run(*FIT[:-1], "n.safetensors", *options, "--labels", name)
        assert message in again.stderr
        assert not Path("n.safetensors").exists()


def test_more_clusters_than_rows_are_refused_alike(people):
    options = ("--missing", "drop", "--exclude", "id", "-o", "x.safetensors")
    error = run("fit", "people.csv", "-k", "60", *options).stderr
    assert "error: -k must not exceed the 59 rows of people.csv, got 60" in error


def test_frames_in_memory_name_what_holds_no_numbers(people):
    with pytest.raises(ValueError, match="X has columns that hold no numbers: 'name, full'; select those that do"):
        QKMeans(3).fit(people.drop(columns="age"))
    people["vector"] = list(np.ones((N, 3)))
    with pytest.raises(ValueError, match=r"'vector'; the lists in 'vector' can be the rows, X\['vector'\]"):
        QKMeans(3).fit(people)
