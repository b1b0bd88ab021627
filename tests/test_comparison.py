"""K-means libraries side by side."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import done, files, refused, run
from sklearn.cluster import KMeans

import quickmeans
from quickmeans.comparison.methods import METHODS, Start
from quickmeans.comparison.objective import objective
from quickmeans.comparison.runner import Result, compare, installed


@pytest.fixture
def two_methods(monkeypatch):
    """Compare two methods only, because starting processes takes time."""
    two = {name: METHODS[name] for name in ("scikit-learn KMeans", "QKMeans")}
    monkeypatch.setattr("quickmeans.comparison.runner.METHODS", two)
    monkeypatch.setattr("quickmeans.comparison.runner._ONE_ROUND", 0)  # no second round


def test_compare(here, two_methods):
    options = ("--sample", 200, "--max-iter", 3, "-o", "plot.svg", "--threads", 1)
    result = run("compare", "rows.npy", "-k", 6, *options, env={"COLUMNS": None})  # as wide as in a file
    assert result.exit_code == 0, result.output
    assert " failed: " not in result.stdout
    parts = ["scikit-learn KMeans", "QKMeans", "default call of scikit-learn KMeans", "default call of QKMeans"]
    assert result.stderr == "".join(f"{part} ...\n" for part in parts)
    same, own = result.stdout.split("Its own default call, start included\n")
    assert same.startswith("From the same rows, 3 passes\n")
    for part in (same, own):
        numbers = re.search(r"\n +QKMeans +\S+ m?s \(\d+\.\dx\) +\S+ m?s \(\d+\.\dx\) +(\S+) ", part)
        assert float(numbers[1]) == pytest.approx(1, abs=1e-3)
    assert "<svg" in Path("plot.svg").read_text()
    assert files() == {"rows.npy", "plot.svg"}


def test_compare_in_json_and_a_method_that_fails(here, two_methods, monkeypatch):
    failing = {"scikit-learn KMeans": METHODS["scikit-learn KMeans"], "nonsense": METHODS["QKMeans"]}
    monkeypatch.setattr("quickmeans.comparison.runner.METHODS", failing)
    answer = json.loads(done("compare", "rows.npy", "-k", 6, "--json"))
    assert (answer["rows"], answer["features"], answer["clusters"], answer["iterations"]) == (300, 12, 6, 10)
    X = np.load("rows.npy")
    same = quickmeans.QKMeans(6, init=X[np.random.default_rng(0).permutation(300)[:6]]).fit(X)
    own = KMeans(6, random_state=0).fit(X)
    assert own.inertia_ < 0.5 * same.inertia_
    for part, model in (("methods", same), ("defaults", own)):
        good, bad = answer[part]
        assert good["objective"] == pytest.approx(model.inertia_, rel=1e-4)
        assert good["peak_bytes"] > good["fit_bytes"]
        assert good["model_bytes"] == 6 * 12 * 4
        assert bad["error"] == "KeyError: 'nonsense'"
    refused(run("compare", "rows.npy", "-k", 301), "300 rows", "301")


def test_the_shorter_times_of_two_rounds_count(monkeypatch):
    times = {10: iter([5.0, 7.0, 6.0, 4.0]), None: iter([3.0, 2.0, 1.0, 8.0])}

    def measure(name, *, n_iter, **_):
        return Result(name, next(times[n_iter]), 1.0, 9.0)

    monkeypatch.setattr("quickmeans.comparison.runner.installed", lambda: ["a", "b"])
    monkeypatch.setattr("quickmeans.comparison.runner._run", measure)
    names = []
    results = compare(np.zeros((3, 2)), 2, progress=names.append)
    assert [result.fit_seconds for result in results.methods] == [5.0, 4.0]
    assert [result.fit_seconds for result in results.defaults] == [1.0, 2.0]
    round_ = ["a", "b", "a again", "b again"]
    assert names == [*round_, *(f"default call of {name}" for name in round_)]


def test_a_default_call_that_fails(here, two_methods, monkeypatch):
    def measure(name, *, n_iter, **_):
        error = "no memory" if name in failing and n_iter is None else None
        return Result(name, 1.0, 1.0, 1.0, 1, 1, 1, error)

    monkeypatch.setattr("quickmeans.comparison.runner._run", measure)
    failing = ["QKMeans"]
    same, own = done("compare", "rows.npy", "-k", 6, "-o", "plot.svg").split("Its own default call, start included\n")
    assert "\n QKMeans " in same
    assert "failed" not in same
    assert "\n QKMeans " not in own
    assert "\nQKMeans failed: no memory\n" in own
    failing = ["scikit-learn KMeans"]
    result = run("compare", "rows.npy", "-k", 6)
    assert result.exit_code == 1
    assert result.stderr.endswith("error: scikit-learn KMeans failed: no memory\n")


@pytest.mark.parametrize("name", installed())
@pytest.mark.parametrize("own", [False, True])
def test_every_method_finds_plain_clusters(here, name, own):
    X = np.load("rows.npy")
    fitted = METHODS[name].fit(X, 6, 2**32 - 1, None if own else Start(X[::50].copy(), 5))
    assert np.shape(fitted.centers) == (6, 12)
    # one draws its own start, as another does by default, at random; the third compresses
    if name not in ("SuperKMeans", "QKMeans, shortlist 0") and not (own and name == "faiss Kmeans"):
        assert objective(X, np.asarray(fitted.centers)) < 1.5 * 300 * 12 * 1e-4
    labels = fitted.assign(X)
    labels = np.ravel(labels[1] if isinstance(labels, tuple) else labels)  # faiss gives distances too
    assert len(labels) == 300


def test_the_objective_is_that_of_the_labels_or_of_the_nearest_centroids(rng):
    X, centers = rng.standard_normal((5000, 3)), rng.standard_normal((4, 3))
    squares = ((X[:, None] - centers) ** 2).sum(axis=2)
    labels = rng.integers(4, size=5000)
    assert objective(X, centers) == pytest.approx(squares.min(axis=1).sum())
    assert objective(X, centers, labels) == pytest.approx(squares[np.arange(5000), labels].sum())
