"""Nearest centroids, distances, examples and summaries of fitted clusters."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from quickmeans import QKMeans

rng = np.random.default_rng(0)
X = (3 * rng.standard_normal((12, 7))[rng.integers(12, size=900)] + rng.standard_normal((900, 7))).astype(np.float32)
MODEL = QKMeans(12, random_state=0, max_iter=5).fit(X)


def all_distances(model, rows):
    rows = np.asarray(rows, np.float64)
    if model.metric == "cosine":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.linalg.norm(rows[:, None] - model.cluster_centers_.astype(np.float64), axis=2)


@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}, {"shortlist": 0, "compression": 2}, {"n_clusters": 300}])
@pytest.mark.parametrize("m", [1, 3, 12])
def test_nearest_are_the_smallest_of_all_distances(options, m):
    model = QKMeans(**{"n_clusters": 12, "max_iter": 3, "random_state": 0} | options).fit(X)
    distances, labels = model.nearest(X[:200], m)
    expected = all_distances(model, X[:200])
    assert distances.dtype == np.float32
    assert labels.dtype == np.int32
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :m], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(expected, labels, 1), distances, rtol=1e-5, atol=1e-5)


def test_nearest_by_hand():
    model = QKMeans(3, init=[[0.0], [10.0], [16.0]], max_iter=1).fit([[0.0], [10.0], [16.0]])
    distances, labels = model.nearest([[4.0], [13.0]], 2)
    np.testing.assert_allclose(distances, [[4, 6], [3, 3]], rtol=1e-6)
    assert np.sort(labels).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("kind", ["csr", "file", "dask"])
def test_rows_of_any_kind(kind, tmp_path):
    np.save(tmp_path / "x.npy", X)
    rows = {"csr": sp.csr_array(X), "file": tmp_path / "x.npy", "dask": da.from_array(X, chunks=(250, 7))}[kind]
    for found, expected in zip(MODEL.nearest(rows, 3), MODEL.nearest(X, 3), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    for found, expected in zip(
        MODEL.predict(rows, return_distance=True), MODEL.predict(X, return_distance=True), strict=True
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    for found, expected in zip(MODEL.examples(rows, 3), MODEL.examples(X, 3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    weights = np.linspace(0, 2, len(X))
    for name, value in vars(MODEL.summary(rows, weights)).items():
        np.testing.assert_allclose(value, vars(MODEL.summary(X, weights))[name], rtol=1e-9)
    assert np.isclose(MODEL.score(rows), MODEL.score(X), rtol=1e-6)


def test_predict_with_distances():
    labels, distances = MODEL.predict(X, return_distance=True)
    assert (labels == MODEL.predict(X)).all()
    np.testing.assert_allclose(distances, all_distances(MODEL, X)[np.arange(len(X)), labels], rtol=1e-5)


def test_examples_by_hand():
    model = QKMeans(3, init=[[0.0], [10.0], [50.0]], max_iter=1, tol=0).fit(
        [[-1.0], [1.0], [9.0], [10.0], [11.0], [50]]
    )
    found = model.examples([[3.0], [9.0], [10.0], [1.0], [11.5], [9.0]], 2)
    assert found.indices.tolist() == [[3, 0], [2, 1], [-1, -1]]
    np.testing.assert_allclose(found.distances, [[1, 3], [0, 1], [np.inf, np.inf]], atol=1e-5)


def test_summary_by_hand():
    rows = [[-1.0], [1.0], [9.0], [11.0], [50.0]]
    model = QKMeans(3, init=[[0.0], [10.0], [50.0]], max_iter=1).fit(rows)
    found = model.summary([[-1.0], [1.0], [4.9], [10.0], [10.0]], sample_weight=[1, 1, 2, 1, 3])
    assert found.size.tolist() == [4, 4, 0]
    np.testing.assert_allclose(found.spread, [((1 + 1 + 2 * 4.9**2) / 4) ** 0.5, 0, np.nan], atol=1e-5)
    assert found.nearest.tolist() == [1, 0, 1]
    np.testing.assert_allclose(found.nearest_distance, [10, 10, 40], rtol=1e-6)
    np.testing.assert_allclose(found.border, [0.5, 0, np.nan])
    assert len(str(found).splitlines()) == 4


def test_one_cluster_has_no_neighbour():
    found = QKMeans(1).fit(X).summary(X)
    assert found.nearest.tolist() == [-1]
    assert found.border.tolist() == [0]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="m must be a whole number from 1 to n_clusters=12, got 13"):
        MODEL.nearest(X, 13)
    with pytest.raises(ValueError, match="per_cluster must be a whole number not below 1"):
        MODEL.examples(X, 0)
    with pytest.raises(ValueError, match="with output only labels"):
        MODEL.predict(X, return_distance=True, output="labels.npy")
    with pytest.raises(ValueError, match="5 features"):
        MODEL.nearest(X[:, :5], 2)
    with pytest.raises(ValueError, match=r"row 3, column 1"):
        MODEL.summary(np.where(np.arange(7) == 1, np.where(np.arange(900)[:, None] == 3, np.nan, X), X))
    with pytest.raises(ValueError, match=r"Row 2 of X is zero"):
        QKMeans(3, metric="cosine").fit(X).nearest(np.where(np.arange(900)[:, None] == 2, 0, X), 2)
