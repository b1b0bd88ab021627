"""Mini-batches and fits that go on with rows as they come."""

import pickle

import numpy as np
import pytest
from mixture import X, chunked
from sklearn.cluster import KMeans

from quickmeans import QKMeans
from quickmeans.data import open_rows
from quickmeans.data.rows import as_rows
from quickmeans.data.stream import StreamRows
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.minibatch import MiniBatch
from quickmeans.kmeans.screen import Screen


class FixedScreens:
    """Stands in for a ScreenChooser: the dense centroids."""

    rows_between = 1.0

    def __init__(self, geometry):
        self.geometry = geometry

    def __call__(self, centers, counts):
        return Screen(centers, self.geometry)

    def is_outdated(self, listed, listed_at_first):
        return False


def test_a_batch_by_hand():
    geometry = Geometry(np.array([2.0]), np.dtype(np.float64))
    batch = MiniBatch(geometry, np.array([[-2.0], [8.0]]), np.array([0.0, 4.0]), FixedScreens(geometry))  # at 0 and 10
    result = batch.step(np.array([[1.0], [3.0], [12.0]]), None, 1)
    assert result.labels.tolist() == [0, 0, 1]
    assert result.objective == pytest.approx(1 + 9 + 4)
    assert batch.counts.tolist() == [2, 5]
    np.testing.assert_allclose(batch.centers + 2, [[2.0], [10.4]])  # the mean of 1 and 3; 10 + (12 - 10) / 5
    batch.step(np.array([[6.0], [13.0]]), np.array([2.0, 0.0]), 1)
    assert batch.counts.tolist() == [4, 5]
    np.testing.assert_allclose(batch.centers + 2, [[4.0], [10.4]])  # (1 + 3 + 2 * 6) / 4; no weight, no move


def test_a_centroid_that_rows_no_longer_come_to_moves():
    geometry = Geometry(np.zeros(1), np.dtype(np.float64))
    batch = MiniBatch(geometry, np.array([[0.0], [1000.0]]), np.array([5.0, 5.0]), FixedScreens(geometry))
    for _ in range(150):
        batch.step(np.array([[0.0], [7.0]]), None, 1)
    assert 0 < batch.centers[0, 0] < 3.5  # it had both kinds of rows for a while
    assert batch.centers[1, 0] == 7


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_cover_the_rows(path, monkeypatch, rng, on_disk, weighted):
    chunked(monkeypatch, 130)
    weights = rng.random(4000) if weighted else None
    rows = StreamRows(open_rows(path), weights) if on_disk else as_rows(X, weights)
    parts = list(rows.batches(300, rng))
    assert [len(rows) for _, rows, _ in parts] == [300] * 13 + [100]
    assert all(np.array_equal(X[which], rows) for which, rows, _ in parts)
    rows = np.concatenate([rows for _, rows, _ in parts])
    order = np.lexsort(rows.T), np.lexsort(X.T)
    np.testing.assert_array_equal(rows[order[0]], X[order[1]])
    if weighted:
        np.testing.assert_array_equal(np.concatenate([w for _, _, w in parts])[order[0]], weights[order[1]])
    else:
        assert parts[0][2] is None
    assert on_disk == np.array_equal(rows, X)  # rows in memory are shuffled


@pytest.mark.parametrize("on_disk", [False, True])
def test_mini_batches_come_close_to_full_passes(path, on_disk):
    full = QKMeans(100, random_state=0, max_iter=20).fit(X)
    model = QKMeans(100, random_state=0, max_iter=20, batch_size=256).fit(path if on_disk else X)
    assert model.inertia_ < 1.04 * full.inertia_
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert len(model.objective_history_) == model.n_iter_ > 1
    assert KMeans(100, init=model.cluster_centers_, n_init=1, max_iter=1).fit(X).inertia_ <= 1.001 * model.inertia_


def test_spherical_mini_batches():
    model = QKMeans(40, random_state=0, batch_size=500, metric="cosine").fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, rtol=1e-6)
    assert model.inertia_ < 1.1 * QKMeans(40, random_state=0, metric="cosine").fit(X).inertia_


def test_rows_that_cancel_leave_a_direction_as_it_was():
    rows, init = np.array([[0.0, 1, 0], [0, -1, 0], [1, 0, 0]]), np.array([[0.0, 0, 1], [1, 0, 0]])
    model = QKMeans(2, metric="cosine", init=init, batch_size=3, max_iter=1).fit(rows)
    np.testing.assert_allclose(model.cluster_centers_, init)


def test_labels_of_a_partial_fit_in_several_batches_are_those_of_its_rows():
    centers = 100 * np.eye(5)
    rows = centers[np.arange(200) % 5] + np.random.default_rng(0).standard_normal((200, 5))
    model = QKMeans(5, init=centers, batch_size=32, random_state=0).partial_fit(rows)
    np.testing.assert_array_equal(model.labels_, np.arange(200) % 5)


def test_partial_fit_follows_the_rows():
    model = QKMeans(100, random_state=0)
    for begin in range(0, 4000, 500):
        model.partial_fit(X[begin : begin + 500])
        if begin == 1500:
            model = pickle.loads(pickle.dumps(model))
    assert model.n_iter_ == 8
    assert len(model.labels_) == 500
    assert -model.score(X) < 1.1 * QKMeans(100, random_state=0).fit(X).inertia_
    shifted = X + 50
    left_behind = -model.score(shifted)
    for _ in range(12):  # some windows of 100 rows per centroid
        model.partial_fit(shifted)
    assert -model.score(shifted) < 1.1 * QKMeans(100, random_state=0).fit(shifted).inertia_ < 0.001 * left_behind


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("on_disk", [False, True])
def test_products_in_mini_batches(path, on_disk):
    options = {"n_clusters": 40, "shortlist": 0, "compression": 4, "random_state": 0}
    full = QKMeans(**options, max_iter=20).fit(X)
    model = QKMeans(**options, max_iter=10, batch_size=400).fit(path if on_disk else X)
    assert model.product_.nnz <= 40 * 60 / 4
    np.testing.assert_allclose(model.cluster_centers_, model.product_.toarray() + model.mean_, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.inertia_, ((X - model.cluster_centers_[model.labels_]) ** 2).sum(), rtol=1e-4)
    assert model.inertia_ < 1.05 * full.inertia_
    assert model.objective_history_[-1] < 1.1 * model.inertia_  # of batches while the centroids moved


@pytest.mark.filterwarnings("ignore:Only")
def test_a_product_follows_partial_fits():
    options = {"n_clusters": 40, "shortlist": 0, "compression": 4, "random_state": 0}
    model = QKMeans(**options)
    for begin in range(0, 4000, 500):
        model.partial_fit(X[begin : begin + 500])
        if begin == 1500:
            model = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(model.cluster_centers_, model.product_.toarray() + model.mean_, rtol=1e-5)
    assert -model.score(X) < 1.15 * QKMeans(**options).fit(X).inertia_


def test_partial_fit_goes_on_from_a_fit():
    model = QKMeans(30, random_state=0).fit(X)
    before = model.cluster_centers_
    model.partial_fit(X[:100])
    assert 0 < np.abs(model.cluster_centers_ - before).max() < 2
    np.testing.assert_array_equal(model.predict(X[:5]).shape, (5,))


def test_bad_partial_fits(tmp_path):
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=8 in the first batch"):
        QKMeans().partial_fit(X[:3])
    model = QKMeans(3, random_state=0).partial_fit(X[:50])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:50, :4])
    model.save(tmp_path / "m")
    from quickmeans import load

    with pytest.raises(ValueError, match="A loaded model does not know how many rows"):
        load(tmp_path / "m").partial_fit(X)
