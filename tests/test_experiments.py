"""The experiments of the paper: each of them on tiny data, their results, and their baselines."""

import time

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from quickmeans.cli.main import program
from quickmeans.experiments import EXPERIMENTS, figure1, figure2, figure3, figure4, figure5, journal, load_experiment
from quickmeans.experiments import data as data_sets
from quickmeans.experiments import run as run_module
from quickmeans.experiments.blobs import by_class
from quickmeans.experiments.classification import EXACT
from quickmeans.experiments.experiment import Experiment, line, perform
from quickmeans.experiments.figure2 import rises
from quickmeans.experiments.models import PAPER, StopWhenSettled, lloyd, qkmeans, start
from quickmeans.experiments.page import write_page
from quickmeans.experiments.plots import tiles
from quickmeans.experiments.results import Results
from quickmeans.experiments.run import Run
from quickmeans.experiments.search import cluster_search
from quickmeans.experiments.svm import CHOICES, LinearSVM, best_c
from quickmeans.timing import _seconds


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Threads cost more than they give on matrices this small."""
    with threadpool_limits(1, "blas"):
        yield


def once(calls, **_):
    """Seconds of one call each."""
    return {name: _seconds(call, 1, time.perf_counter) for name, call in calls.items()}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A run of one seed on tiny data."""
    digits = data_sets.load("digits", None)
    part = data_sets.Split(digits.X[:400], digits.test[:50], digits.y[:400], digits.test_y[:50])
    made = {"digits": part, "blobs": data_sets.blobs(400, 40, 48, 20)}
    made["breast-cancer"] = data_sets.load("breast-cancer", None)
    monkeypatch.setattr(journal, "CLUSTERS", dict.fromkeys(journal.CLUSTERS, 10))
    monkeypatch.setattr(run_module, "load", lambda name, folder, quick: made[name])
    monkeypatch.setattr(run_module, "QUICK_SEEDS", 1)
    monkeypatch.setattr(run_module, "BLOB_CLUSTERS", {True: (16,)})
    monkeypatch.setattr(run_module, "IMAGE_CLUSTERS", {True: (10,)})
    monkeypatch.setattr(figure2, "K", 10)
    for module in (figure1, figure3, figure4, figure5):
        monkeypatch.setattr(module, "alternate", once)
    run_module._load.cache_clear()
    yield Run(tmp_path / "results", quick=True, console=Console(quiet=True))
    run_module._load.cache_clear()


# ---- results -------------------------------------------------------------------------------------------------------


def test_results_are_on_disk_case_by_case(tmp_path):
    path = tmp_path / "some" / "figure.csv"
    results = Results(path)
    results.put({"data": "blobs", "K": 2}, [{"method": "a", "seed": i, "time": 1.0 + 2 * i} for i in range(2)])
    results.put({"data": "blobs", "K": "exact"}, [{"method": "a", "seed": 0, "error": 0.5}])
    again = Results(path)
    assert again.has({"data": "blobs", "K": 2})
    assert not again.has({"data": "blobs", "K": 3})
    assert again.select(K="exact")[0]["error"] == 0.5
    assert again.spread("time", K=2) == (2.0, 1.0)
    assert again.spread("time", K="exact") is None
    again.put({"data": "blobs", "K": 2}, [{"method": "b", "seed": 0, "time": 4.0}])
    assert Results(path).values("method", K=2) == ["b"]
    assert [file.name for file in path.parent.iterdir()] == ["figure.csv"]


def test_ratio_is_of_means(tmp_path):
    results = Results(tmp_path / "x.csv")
    results.put({"K": 1}, [{"method": "a", "time": 2.0}, {"method": "a", "time": 4.0}, {"method": "b", "time": 6.0}])
    assert results.ratio("time", "b", "a", K=1) == 2
    assert results.ratio("time", "b", "c", K=1) is None


def test_a_run_goes_on_where_it_was_cut_off(tmp_path):
    done = []

    def measure(run, K):
        if K == 3 and len(done) < 3:
            raise KeyboardInterrupt
        done.append(K)
        yield {"method": "a", "value": K}

    cases = [{"K": K} for K in (1, 2, 3)]
    fake = Experiment(
        "title", "about", lambda run: cases, measure, lambda results: line("x", 1, results.spread("value"))
    )
    done.clear()
    run = Run(tmp_path, console=Console(quiet=True))
    with pytest.raises(KeyboardInterrupt):
        perform("fake", fake, run)
    done.append(None)
    perform("fake", fake, run)
    assert done == [1, 2, None, 3]
    run.force = True
    perform("fake", fake, run)
    assert done[4:] == [1, 2, 3]
    assert len(Results(tmp_path / "fake.csv").rows) == 3


def test_every_experiment_is_listed_and_runs(tiny):
    for name in EXPERIMENTS:
        this = load_experiment(name)
        perform(name, this, tiny)
        results = Results(tiny.directory / f"{name}.csv")
        assert all(results.has(case) for case in this.cases(tiny))
        assert this.compare(results)
        for ending in ("png", "svg"):
            assert (tiny.directory / f"{name}.{ending}").exists() == (this.draw is not None)
    page = tiny.directory.parent / "page.md"
    write_page(page, tiny)
    text = page.read_text()
    assert all(load_experiment(name).title in text for name in EXPERIMENTS)
    assert "(page/figure3.png)" in text
    assert (page.parent / "page" / "figure3.png").exists()


def test_a_page_whose_figures_are_beside_it_already(tmp_path):
    run = Run(tmp_path / "page", quick=False)
    run.directory.mkdir()
    Results(run.directory / "table3.csv").put(
        {"data": "blobs", "K": 128, "seed": 0}, [{"method": "1NN K-means", "accuracy": 1.0}]
    )
    (run.directory / "table3.png").write_bytes(b"figure")
    write_page(tmp_path / "page.md", run)
    text = (tmp_path / "page.md").read_text()
    assert "(page/table3.png)" in text
    assert (run.directory / "table3.png").read_bytes() == b"figure"
    assert "What changes it" in text  # only a full run shows where it differs from the paper
    run.quick = True
    write_page(tmp_path / "page.md", run)
    assert "What changes it" not in (tmp_path / "page.md").read_text()


# ---- what the paper says beside ours ---------------------------------------------------------------------------------


def test_table_3_sets_the_papers_numbers_beside_ours(tmp_path):
    results = Results(tmp_path / "table3.csv")
    results.put({"data": "blobs", "K": EXACT}, [{"method": "1NN KD Tree", "seed": 0, "accuracy": 1.0}])
    rows = [{"method": "1NN QK-means", "seed": i, "accuracy": 0.5 + i / 2} for i in range(2)]
    results.put({"data": "blobs", "K": 256}, rows)
    assert load_experiment("table3").compare(results) == [
        ("blobs, 1NN KD Tree", "N/A", "1.000"),
        ("blobs, 1NN QK-means 256 clusters", "0.66", "0.750 ± 0.250"),
    ]


def test_rises_are_counted(tmp_path):
    results = Results(tmp_path / "figure2.csv")
    curves = {0: (5.0, 4.0, 3.0), 1: (5.0, 4.0, 4.4)}
    results.put({"data": "mnist"}, [{"method": "QK-means, sparsity 5", "seed": seed, "iteration": i, "objective": value}
                                    for seed, curve in curves.items() for i, value in enumerate(curve)])  # fmt: skip
    assert rises(results, "mnist", "QK-means, sparsity {}") == "1 of 2 runs, by 10 % at most"


# ---- baselines -------------------------------------------------------------------------------------------------------


def test_lloyd_is_scikit_learns():
    X = load_digits().data
    begin = start(X, 12, 0)
    ours = lloyd(X, begin, 300)
    theirs = KMeans(12, init=begin, n_init=1, max_iter=300, tol=0).fit(X)
    np.testing.assert_allclose(ours.history[-1], theirs.inertia_, rtol=1e-5)
    assert (ours.labels == theirs.labels_).mean() > 0.99
    assert (np.diff(ours.history) <= 0).all()
    assert len(lloyd(X, begin, 3).history) == 3


def test_settled_follows_the_papers_rule():
    settled = StopWhenSettled()
    assert [settled(i, value) for i, value in enumerate((10.0, 9.0, 9.0 - 1e-5, 9.0 - 1.5e-5))] == [False] * 3 + [True]


def test_all_methods_start_from_the_same_rows_and_models_are_kept(tiny):
    model = qkmeans(tiny, "digits", 10, 0, PAPER)
    X = tiny.split("digits").X
    np.testing.assert_array_equal(start(X, 10, 0), start(X, 10, 0))
    assert (start(X, 10, 1) != start(X, 10, 0)).any()
    assert (model.solver, model.sparsity_level, model.shortlist) == ("palm4msa", 5, 0)
    before = [(file, file.stat().st_mtime_ns) for file in (tiny.directory / "models").iterdir()]
    again = qkmeans(tiny, "digits", 10, 0, PAPER)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert [(file, file.stat().st_mtime_ns) for file in (tiny.directory / "models").iterdir()] == before


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_svm_is_linear_svc(C):
    X, y = load_digits(return_X_y=True)
    F = X / 16
    theirs = LinearSVC(dual=False, tol=1e-6, C=C).fit(F, y)
    ours = LinearSVM(C, max_iter=3000, tol=1e-8).fit(F, y)
    expected = np.vstack([theirs.coef_.T, theirs.intercept_])
    np.testing.assert_allclose(ours.coef_, expected, atol=1e-3 * np.abs(expected).max())
    assert ours.score(F, y) == theirs.score(F, y)
    assert abs(LinearSVM(C).fit(F.astype(np.float32), y).score(F, y) - theirs.score(F, y)) < 0.005


def test_c_is_the_best_on_rows_held_back(rng):
    y = rng.integers(2, size=1000)
    F = np.column_stack([0.001 * (2 * y - 1), rng.standard_normal((1000, 5))])  # a faint feature needs a large C
    n = 800
    scores = {C: LinearSVC(dual=False, C=C).fit(F[:n], y[:n]).score(F[n:], y[n:]) for C in CHOICES}
    assert best_c(F, y) == max(scores, key=scores.get) == 100


def test_search_looks_at_the_rows_of_one_cluster(rng):
    X, Q = (rng.standard_normal((n, 6)).astype(np.float32) for n in (60, 20))
    labels = rng.integers(3, size=60)
    labels[labels == 2] = 0  # of the clusters 0, 1, 2 the last is empty
    asked = np.arange(20) % 3
    found = cluster_search(X, X[:3], labels, lambda _: asked)(Q)
    for q, k, i in zip(Q, asked, found, strict=True):
        rows = np.flatnonzero(labels == k)
        assert i == (rows[((X[rows] - q) ** 2).sum(axis=1).argmin()] if len(rows) else -1)


def test_one_test_row_of_every_class():
    data = data_sets.blobs(90, 10, 4, 5)
    split = by_class(data)
    assert (len(split.X), len(split.test)) == (95, 5)
    assert sorted(split.test_y) == [0, 1, 2, 3, 4]
    together = np.vstack([split.X, split.test])
    assert set(map(bytes, together)) == set(map(bytes, np.vstack([data.X, data.test])))


def test_tiles_do_not_touch():
    image = tiles(np.arange(12.0).reshape(3, 4), per_row=2, gap=1)
    expected = [
        [0, 1, np.nan, 4, 5],
        [2, 3, np.nan, 6, 7],
        [np.nan] * 5,
        [8, 9, *[np.nan] * 3],
        [10, 11, *[np.nan] * 3],
    ]
    np.testing.assert_array_equal(image, expected)


# ---- data and the command --------------------------------------------------------------------------------------------


def test_what_is_missing_is_said(tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "train-images-idx3-ubyte.gz").touch()
    message = data_sets.missing("mnist", tmp_path)
    assert "train-labels-idx1-ubyte.gz" in message
    assert "train-images" not in message
    assert str(tmp_path) in message
    assert "https://" in message
    assert "QUICKMEANS_DATA" in data_sets.missing("fashion-mnist", None)
    assert data_sets.missing("blobs", None) is None
    with pytest.raises(FileNotFoundError, match="t10k-images"):
        data_sets.load("mnist", tmp_path)


def test_command_without_data(tmp_path, monkeypatch):
    monkeypatch.delenv("QUICKMEANS_DATA", raising=False)
    folder, call = tmp_path / "out", CliRunner().invoke
    done = call(program, ["reproduce", "table2", "--quick", "-o", str(folder)])
    assert done.exit_code == 0, done.output
    assert "Left out: mnist needs" in done.output
    assert "digits" in (folder / "table2.csv").read_text()
    assert "Table 2" in (folder / "README.md").read_text()
    assert "already in" in call(program, ["reproduce", "table2", "--quick", "-o", str(folder)]).output
    refused = call(program, ["reproduce", "table2", "-o", str(folder)])
    assert refused.exit_code == 1
    assert "with --quick" in refused.output
    nowhere = call(
        program, ["reproduce", "table2", "--quick", "-o", str(folder), "--page", str(tmp_path / "no" / "p.md")]
    )
    assert nowhere.exit_code == 1
    assert "there is no directory" in nowhere.output


def test_a_page_of_something_else_stays(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("mine")
    refused = CliRunner().invoke(program, ["reproduce", "table2", "--quick", "-o", str(tmp_path)])
    assert refused.exit_code == 1
    assert "give another --output" in refused.output
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]
    assert page.read_text() == "mine"


def test_ctrl_c_keeps_what_was_measured(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("quickmeans.experiments.experiment.perform", interrupted)
    done = CliRunner().invoke(program, ["reproduce", "table2", "--quick", "-o", str(tmp_path)])
    assert done.exit_code == 130
    assert f"the measurements are in {tmp_path}" in done.output


def test_command_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(program, ["reproduce", "--list"])
    assert done.exit_code == 0
    assert all(name in done.output for name in EXPERIMENTS)
    assert not list(tmp_path.iterdir())
    assert CliRunner().invoke(program, ["reproduce", "figure9"]).exit_code == 2
