"""K-means libraries side by side."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import done, files, refused, run

import quickmeans
from quickmeans.comparison.methods import METHODS
from quickmeans.comparison.objective import objective
from quickmeans.comparison.runner import Result, compare, installed


@pytest.fixture
def two_methods(monkeypatch):
    """Compare two methods only, because starting processes takes time."""
    two = {name: METHODS[name] for name in ("scikit-learn KMeans", "QKMeans")}
    monkeypatch.setattr("quickmeans.comparison.runner.METHODS", two)
    monkeypatch.setattr("quickmeans.comparison.runner._ONE_ROUND", 0)  # no second round


def test_compare(here, two_methods):
    result = run("compare", "rows.npy", "-k", 6, "--sample", 200, "--max-iter", 3, "-o", "plot.svg", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert result.stderr == "scikit-learn KMeans ...\nQKMeans ...\n"
    numbers = re.search(r"\n +QKMeans +\S+ m?s \(\d+\.\dx\) +\S+ m?s \(\d+\.\dx\) +(\S+) ", result.stdout)
    assert float(numbers[1]) == pytest.approx(1, abs=1e-3)
    assert "<svg" in Path("plot.svg").read_text()
    assert files() == {"rows.npy", "plot.svg"}


def test_compare_in_json_and_a_method_that_fails(here, two_methods, monkeypatch):
    failing = {"scikit-learn KMeans": METHODS["scikit-learn KMeans"], "nonsense": METHODS["QKMeans"]}
    monkeypatch.setattr("quickmeans.comparison.runner.METHODS", failing)
    answer = json.loads(done("compare", "rows.npy", "-k", 6, "--json"))
    assert (answer["rows"], answer["features"], answer["clusters"], answer["iterations"]) == (300, 12, 6, 10)
    good, bad = answer["methods"]
    centers = quickmeans.QKMeans(6, init=np.load("rows.npy")[np.random.default_rng(0).permutation(300)[:6]])
    assert good["objective"] == pytest.approx(centers.fit(np.load("rows.npy")).inertia_, rel=1e-4)
    assert good["peak_bytes"] > good["fit_bytes"]
    assert good["model_bytes"] == 6 * 12 * 4
    assert bad["error"] == "KeyError: 'nonsense'"
    refused(run("compare", "rows.npy", "-k", 301), "300 rows", "301")


def test_the_shorter_times_of_two_rounds_count(monkeypatch):
    times = iter([5.0, 7.0, 6.0, 4.0])
    monkeypatch.setattr("quickmeans.comparison.runner.installed", lambda: ["a", "b"])
    monkeypatch.setattr("quickmeans.comparison.runner._run", lambda name, *_: Result(name, next(times), 1.0, 9.0))
    names = []
    a, b = compare(np.zeros((3, 2)), 2, progress=names.append)
    assert (a.fit_seconds, b.fit_seconds) == (5.0, 4.0)
    assert names == ["a", "b", "a again", "b again"]


@pytest.mark.parametrize("name", installed())
def test_every_method_finds_plain_clusters(here, name):
    X = np.load("rows.npy")
    fitted = METHODS[name].fit(X, X[::50].copy(), 5)
    assert np.shape(fitted.centers) == (6, 12)
    if name not in ("SuperKMeans", "QKMeans, shortlist 0"):  # one draws its own start, the other compresses
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
