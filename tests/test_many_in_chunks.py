"""Many clusters and rows that are not in memory: passes look near the labels of before, or through groups."""

import os
import signal

import numpy as np
import pytest

from quickmeans import QKMeans, kernels, memory
from quickmeans.data import open_rows, stream
from quickmeans.kmeans import calibration, grouped_screens, neighbor_screen, start
from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.neighbor_screen import NeighborScreen

K = 1200
UNSEARCHED = {"init": "random", "search": "none", "tol": 0}


def mixture(rng, n=12000, D=24, k=1500):
    """Rows around some means in four dimensions."""
    means = rng.standard_normal((k, 4)) @ rng.standard_normal((4, D))
    return (means[rng.integers(k, size=n)] + 0.1 * rng.standard_normal((n, D))).astype(np.float32)


def squares(X, centers):
    Y, C = X.astype(np.float64), np.asarray(centers, np.float64)
    return (Y**2).sum(1)[:, None] - 2 * Y @ C.T + (C**2).sum(1)


@pytest.fixture
def many(monkeypatch):
    """Problems count as those of many clusters, and no file as one that fits in memory."""
    monkeypatch.setattr(start, "_FLAT_WORK", 1 << 16)
    monkeypatch.setattr(stream, "LOADED_BYTES", 0)
    monkeypatch.setattr(grouped_screens, "_SURELY", 1024)
    monkeypatch.setattr(grouped_screens, "_LEAST_ROWS", 1000)
    monkeypatch.setattr(calibration, "_LEAST_ROWS", 1000)


@pytest.fixture
def path(rng, tmp_path):
    np.save(tmp_path / "rows.npy", mixture(rng))
    return tmp_path / "rows.npy"


# ---- the comparison with neighbours ----------------------------------------------------------------------------------


def assigned(near, X, labels, far=np.inf, turn=0, n_threads=1):
    labels, best, norms = labels.copy(), np.empty(len(X), np.float32), np.empty(len(X), np.float32)
    near.assign(X, labels, best, norms, far=far, turn=turn, n_threads=n_threads)
    return labels, best, norms


@pytest.mark.parametrize("known", [False, True])
def test_with_few_centers_labels_are_the_nearest(rng, known):
    X, C = mixture(rng, 500), mixture(rng, 40)
    exact = squares(X, C)
    begin = rng.integers(40, size=500) if known else np.full(500, -1)
    labels, best, norms = assigned(kernels.NearCenters(C, 1), X, begin.astype(np.int32))
    np.testing.assert_array_equal(labels, exact.argmin(1))
    np.testing.assert_allclose(norms - 2 * best, exact.min(1), atol=1e-4)


def test_most_rows_find_the_nearest_of_many_centers_in_chunks_of_any_size(rng):
    X = mixture(rng, 5000, k=2000)
    C = X[rng.choice(5000, 1500, replace=False)]
    near, none = kernels.NearCenters(C, 2), np.full(5000, -1, np.int32)
    labels, best, norms = assigned(near, X, none, far=0.01, n_threads=2)
    assert (labels == squares(X, C).argmin(1)).mean() > 0.97
    for n in (1, 7, 300):
        part = assigned(near, X[:n], none[:n], far=0.01)
        for whole, some in zip((labels, best, norms), part, strict=True):
            np.testing.assert_array_equal(whole[:n], some)


def test_rows_that_are_far_are_looked_at_more_widely_in_one_of_four_turns(rng):
    """All rows begin with a wrong label whose neighbours are of no use."""
    C = np.concatenate([rng.standard_normal((200, 8)), 50 + rng.standard_normal((200, 8))]).astype(np.float32)
    X, near = (C[200:] + 0.01).astype(np.float32), kernels.NearCenters(C, 1)
    found = []
    for turn in range(4):
        labels, _, _ = assigned(near, X, np.zeros(200, np.int32), far=1.0, turn=turn)
        found.append(labels == np.arange(200, 400))
    assert (np.sum(found, axis=0) == 1).all()


def test_wrong_arguments_are_refused(rng):
    near = kernels.NearCenters(mixture(rng, 40), 1)
    with pytest.raises(ValueError, match="a label is no center"):
        assigned(near, mixture(rng, 3), np.array([1, 40, 2], np.int32))
    with pytest.raises(ValueError, match="wrong number of columns"):
        assigned(near, mixture(rng, 3, D=5), np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="wrong size of results"):
        near.assign(mixture(rng, 3), *(np.zeros(2, t) for t in (np.int32, "f4", "f4")), far=1, turn=0, n_threads=1)


@pytest.mark.parametrize("spherical", [False, True])
def test_distances_are_those_of_the_geometry(rng, spherical):
    X = mixture(rng, 300) + np.float32(3)
    mean = np.zeros(24) if spherical else X.mean(0, dtype=np.float64)
    C = mixture(rng, 30) + 3 - mean
    C /= np.linalg.norm(C, axis=1, keepdims=True) if spherical else 1
    screen = NeighborScreen(C.astype(np.float64), Geometry(mean, np.dtype(np.float32), spherical), 1, 0)
    found = Assignment.empty(300, np.dtype(np.float32))
    found.labels[:] = -1
    screen.assign(X, found, 1)
    Y = X / np.linalg.norm(X, axis=1, keepdims=True) if spherical else X - mean
    exact = squares(Y, C)
    np.testing.assert_array_equal(found.labels, exact.argmin(1))
    np.testing.assert_allclose(found.squared_distances(screen.geometry), exact.min(1), rtol=1e-3, atol=1e-4)


# ---- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}])
def test_a_fit_of_a_file_ends_like_one_of_the_array(many, path, options):
    X = np.load(path)
    model = QKMeans(K, random_state=0, **options).fit(path)
    assert model.assigner_.groups is not None
    assert model.inertia_ < 1.03 * QKMeans(K, random_state=0, **options).fit(X).inertia_
    assert (np.diff(model.objective_history_) <= 1e-3 * model.objective_history_[0]).all()
    np.testing.assert_array_equal(model.labels_, model.predict(path))


def test_passes_look_near_the_labels_of_before(many, path, monkeypatch):
    seen = []
    original = NeighborScreen.assign

    def assign(self, rows, assignment, n_threads, **options):
        seen.append((assignment.labels < 0).all())
        original(self, rows, assignment, n_threads, **options)

    monkeypatch.setattr(neighbor_screen.NeighborScreen, "assign", assign)
    model = QKMeans(K, random_state=0, max_iter=3, **UNSEARCHED).fit(path)
    assert model.n_iter_ == 3
    assert sorted(seen) == [False] * 2 + [True] * (len(seen) - 2)  # those of the chooser's sample have no labels


def test_the_size_of_chunks_and_the_number_of_threads_change_no_bit(many, path, monkeypatch):
    models = []
    for size, n_threads in ((16 << 20, 1), (5000, 2)):
        monkeypatch.setattr("quickmeans.data.source.CHUNK_BYTES", size)
        models.append(QKMeans(K, random_state=0, max_iter=4, **UNSEARCHED, n_threads=n_threads).fit(path))
    np.testing.assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_a_checkpoint_goes_on_with_the_same_groups(many, path, tmp_path):
    whole = QKMeans(K, random_state=0, max_iter=5, **UNSEARCHED, checkpoint=tmp_path / "whole").fit(path)

    def stop(iteration, objective):
        return iteration == 2

    QKMeans(K, random_state=0, max_iter=5, **UNSEARCHED, checkpoint=tmp_path / "part", callback=stop).fit(path)
    resumed = QKMeans(K, random_state=0, max_iter=5, **UNSEARCHED, checkpoint=tmp_path / "part").fit(path)
    assert whole.n_iter_ == resumed.n_iter_ == 5
    np.testing.assert_array_equal(whole.cluster_centers_, resumed.cluster_centers_)
    np.testing.assert_array_equal(whole.objective_history_, resumed.objective_history_)


def test_screens_keep_groups_reach_and_margin_while_centers_move(rng, many, path):
    rows = stream.StreamRows(open_rows(path))
    settings = QKMeans(K, checkpoint=path.parent / "c")._settings()
    points = rows.points(settings, [0])
    choose, X = start.chooser(settings, points, 0), np.load(path)
    C = X[rng.choice(len(X), K, replace=False)] - points.geometry.mean
    first = choose(C)
    second = choose(C + 0.01)
    assert first.groups is not None
    assert second.groups is first.groups
    assert second.margin == first.margin
    assert choose.once(C).groups is not first.groups
    assert choose.at_once(C).groups is first.groups


def test_ctrl_c_between_passes_leaves_the_labels_that_are_known(many, path):
    def press(iteration, objective):
        if iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    model = QKMeans(K, random_state=0, **UNSEARCHED, callback=press)
    with pytest.raises(KeyboardInterrupt):
        model.fit(path)
    assert model.n_iter_ <= 3
    own = ((np.load(path) - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert own == pytest.approx(model.inertia_, rel=0.05)
    np.testing.assert_array_equal(model.weight_in_clusters_, np.bincount(model.labels_, minlength=K))
    assert len(model.predict(path)) == len(np.load(path))


def test_memory_that_does_not_suffice_is_refused_before_the_start(many, path, tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 100 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(start, "start_from_stream", None)
    with pytest.raises(MemoryError, match=r"12000 rows with 1200 clusters takes about 0\.0 GB .* are available"):
        QKMeans(K, random_state=0).fit(path)


def test_weights_of_zero_do_not_count(rng, many, path):
    X, w = np.load(path), rng.integers(0, 2, 12000).astype(float)
    model = QKMeans(K, random_state=0).fit(path, sample_weight=w)
    heavy = X[w > 0]
    assert model.inertia_ == pytest.approx(squares(heavy, model.cluster_centers_).min(1).sum(), rel=2e-3)
    assert model.weight_in_clusters_.sum() == w.sum()


def test_mini_batches_and_dask_look_through_groups(many, path):
    X = np.load(path)
    for model in (QKMeans(K, random_state=0, batch_size=1000, max_iter=2), QKMeans(K, random_state=0, max_iter=3)):
        rows = path
        if model.batch_size is None:
            dask_array = pytest.importorskip("dask.array")
            rows = dask_array.from_array(X, chunks=(4000, 24))
        model.fit(rows)
        assert model.assigner_.groups is not None
        assert squares(X, model.cluster_centers_).min(1).sum() < 1.3 * QKMeans(K, random_state=0).fit(X).inertia_


def test_slow_iterations_say_how_long_they_may_still_take(rng, capsys, monkeypatch):
    clock = iter(np.arange(0, 1e6, 7.0))
    monkeypatch.setattr("quickmeans.progress.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("quickmeans.progress._can_draw_bars", lambda: False)
    X = rng.standard_normal((3000, 4))
    QKMeans(30, init="random", search="none", tol=0, max_iter=6, random_state=0, verbose=1).fit(X)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Iteration")]
    assert "to go" not in lines[0]
    assert lines[1].endswith("at most 28 s to go")
    assert lines[-1].startswith("Iteration 6")
    assert "to go" not in lines[-1]


@pytest.mark.parametrize("kind", ["array", "file"])
def test_fewer_distinct_rows_than_clusters_end_in_time(rng, tmp_path, kind):
    """Distances of zero differ by rounding only, whatever the reach."""
    X = rng.standard_normal((300, 16)).astype(np.float32)[rng.integers(300, size=18000)]
    np.save(tmp_path / "rows.npy", X)
    with pytest.warns(UserWarning, match="300"):
        model = QKMeans(1100, random_state=0, max_iter=3).fit(X if kind == "array" else tmp_path / "rows.npy")
    assert model.inertia_ < 1e-6 * (X**2).sum()


def hard_rows(rng, case):
    X = rng.standard_normal((K + 3 if case == "hardly more rows" else 3 * K, 24)).astype(np.float32)
    if case == "one huge cluster":
        X[: 2 * K] *= 1e-3
    if case == "equal norms":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:K] if case == "as many rows" else X


@pytest.mark.parametrize("case", ["as many rows", "hardly more rows", "one huge cluster", "equal norms"])
def test_hard_rows_end_with_all_clusters_in_use(rng, many, tmp_path, case):
    X = hard_rows(rng, case)
    np.save(tmp_path / "rows.npy", X)
    for rows in (X, tmp_path / "rows.npy"):
        model = QKMeans(K, random_state=0, max_iter=5).fit(rows)
        assert len(np.unique(model.labels_)) == K
        np.testing.assert_array_equal(model.predict(rows), model.labels_)
        own = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
        assert own == pytest.approx(model.inertia_, rel=1e-3, abs=1e-5 * float((X**2).sum()))
