"""Distances of rows from all centroids, and squared distances from their own."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from layouts import layouts

from quickmeans import QKMeans, kernels
from quickmeans.kmeans.distances import CenterDistances
from quickmeans.kmeans.geometry import Geometry

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DTYPES = pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])


def distances(X, centers, mean, dtype, n_threads=2, **options):
    result, bad = kernels.Distances(centers, mean, dtype, **options).compute(X, dtype, n_threads)
    assert bad == -1
    return result


# ---- all centers ----------------------------------------------------------------------------------------------------


def test_distances_in_hand():
    centers, rows = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 0.0], [6.0, 8.0]])
    np.testing.assert_array_equal(distances(rows, centers, np.zeros(2), FLOAT64), [[0, 5], [3, 4], [10, 5]])
    wide = np.zeros((3, 40)), np.zeros((2, 40))
    wide[0][:, 7:9], wide[1][:, 7:9] = rows, centers
    np.testing.assert_array_equal(distances(*wide, np.ones(40), FLOAT64), [[0, 5], [3, 4], [10, 5]])


def test_directions_in_hand():
    rows, centers = np.array([[5.0, 0.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    found = distances(rows, centers, np.zeros(2), FLOAT64, spherical=True)
    np.testing.assert_allclose(found**2, [[0, 4, 2], [2 - 2 * 0.6, 2 + 2 * 0.6, 2 - 2 * 0.8]], rtol=1e-15)


@DTYPES
@pytest.mark.parametrize("D", [1, 12, 13, 31, 128, 129, 700])  # few columns, and blocks of columns that are not full
@pytest.mark.parametrize(("n", "K"), [(1, 1), (7, 3), (97, 33), (200, 70)])
def test_distances_against_the_formula(isa, rng, n, K, D, dtype):
    X, centers = ((rng.standard_normal((m, D)) + 2).astype(dtype) for m in (n, K))
    centers[0] = X[-1]
    found = distances(X, centers, X.mean(axis=0), dtype)
    assert found.dtype == dtype
    assert found[-1, 0] == 0
    np.testing.assert_allclose(found, reference.distances(X, centers), rtol=16 * np.finfo(dtype).eps)


@DTYPES
@pytest.mark.parametrize("D", [5, 100])
@given(st.floats(1e-9, 1.0), st.floats(0, 1e4))
def test_small_distances_are_as_accurate_as_large_ones(D, dtype, spread, offset):
    rng = np.random.default_rng(0)
    centers = (offset + rng.standard_normal((20, D))).astype(dtype)
    X = (centers + spread * rng.standard_normal((20, D))).astype(dtype)
    expected = reference.distances(X, centers)
    for mean in (centers.mean(axis=0), np.zeros(D)):
        rtol = 1e-5 if dtype == FLOAT32 else 1e-11  # the bounds of native/kernels/distances.hpp
        np.testing.assert_allclose(distances(X, centers, mean, dtype), expected, rtol=rtol)


@pytest.mark.parametrize("D", [3, 50])
@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e15])
def test_distances_of_any_size_in_float32(rng, D, scale):
    X, centers = ((scale * rng.standard_normal((n, D))).astype(np.float32) for n in (30, 20))
    found = distances(X, centers, np.zeros(D), FLOAT32)
    np.testing.assert_allclose(found, reference.distances(X, centers), rtol=1e-6)


@pytest.mark.parametrize("D", [8, 40])
def test_distances_of_every_layout_and_type(isa, rng, D):
    X, centers = rng.integers(0, 127, (50, D)).astype(np.float64), rng.integers(0, 127, (9, D)).astype(np.float64)
    expected = distances(X, centers, X.mean(axis=0), FLOAT64)
    for name, variant in layouts(X):
        if isinstance(variant, np.ndarray) and variant.dtype.kind in "fiu":
            found = distances(variant, centers, X.mean(axis=0), FLOAT64)
            np.testing.assert_array_equal(found, expected, err_msg=name)


@DTYPES
@pytest.mark.parametrize("D", [4, 60])
def test_distances_do_not_depend_on_threads_and_neighbours(isa, rng, D, dtype):
    X, centers = (rng.standard_normal((n, D)).astype(dtype) for n in (20000, 50))
    together = distances(X, centers, np.zeros(D), dtype, n_threads=1)
    for n_threads in (2, 7):
        np.testing.assert_array_equal(distances(X, centers, np.zeros(D), dtype, n_threads), together)
    for i in (0, 4, 777, 19999):
        np.testing.assert_array_equal(distances(X[i : i + 1], centers, np.zeros(D), dtype), together[i : i + 1])


def test_float64_arithmetic_with_results_in_float32(rng):
    X, centers = rng.standard_normal((50, 20)).astype(np.float32), rng.standard_normal((7, 20))
    found, bad = kernels.Distances(centers, np.zeros(20), FLOAT64).compute(X, FLOAT32, 1)
    assert bad == -1
    assert found.dtype == FLOAT32
    np.testing.assert_array_equal(found, distances(X, centers, np.zeros(20), FLOAT64).astype(np.float32))


@pytest.mark.parametrize("D", [3, 50])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_rows_that_cannot_be_compared_are_found(rng, D, value):
    X = rng.standard_normal((5000, D))
    X[3000, D - 1] = value
    _, bad = kernels.Distances(X[:40], np.zeros(D), FLOAT64).compute(X, FLOAT64, 2)
    assert 0 <= bad <= 3000


def test_bad_arrays_are_refused():
    found = kernels.Distances(np.ones((3, 2)), np.zeros(2), FLOAT64)
    with pytest.raises(ValueError, match="rows do not fit"):
        found.compute(np.ones((4, 3)), FLOAT64, 1)
    with pytest.raises(ValueError, match="wrong shape of out"):
        found.native.compute(np.ones((4, 2)), np.ones((4, 2)), 1)
    with pytest.raises(ValueError, match="wrong size of mean"):
        kernels.Distances(np.ones((3, 2)), np.zeros(3), FLOAT64)
    with pytest.raises(ValueError, match="wrong shape of centers"):
        kernels.Distances(np.ones((0, 2)), np.zeros(2), FLOAT64)


@pytest.mark.parametrize("D", [6, 30])
def test_rows_too_large_for_float32_are_compared_in_float64(rng, D):
    centers = rng.standard_normal((9, D)).astype(np.float32)
    X = (1e25 * rng.standard_normal((30, D))).astype(np.float32)
    found = CenterDistances(centers, Geometry(np.zeros(D), FLOAT32), np.float32)(1, 0, X)
    np.testing.assert_allclose(found, reference.distances(X, centers), rtol=1e-6)


# ---- transform ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "u1"])
@pytest.mark.parametrize("spherical", [False, True])
def test_transform(rng, dtype, spherical):
    X = (10 + 3 * rng.standard_normal((300, 30))).astype(dtype)
    model = QKMeans(12, metric="cosine" if spherical else "euclidean", random_state=0).fit(X)
    found = model.transform(X)
    assert found.dtype == (np.float32 if dtype == "f4" else np.float64)
    rows = X.astype(np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True) if spherical else rows
    rtol = 1e-6 if dtype == "f4" else 1e-12
    np.testing.assert_allclose(found, reference.distances(rows, model.cluster_centers_), rtol=rtol)


def test_centers_of_float64_are_not_rounded(rng):
    X = 1 + 1e-9 * rng.standard_normal((200, 20))
    model = QKMeans(5, random_state=0).fit(X)
    single = X.astype(np.float32)
    expected = reference.distances(single, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(single), expected, rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_transform_refuses(rng, value):
    X = rng.standard_normal((300, 20))
    model, bad = QKMeans(5, random_state=0).fit(X), X.copy()
    bad[77, 3] = value
    kind = {np.nan: r"NaN \(row 77, column 3\)", np.inf: r"infinity \(row 77"}.get(value, "too large for float64")
    with pytest.raises(ValueError, match=kind):
        model.transform(bad)


# ---- the own center -------------------------------------------------------------------------------------------------


def test_squared_differences_in_hand():
    X, centers = np.array([[1, 2], [3, 4], [5, 6]], np.int8), np.array([[1.0, 2.0], [0.0, 0.0]])
    labels = np.array([0, 1, 1], np.int32)
    assert kernels.squared_differences(X, labels, centers, 1).tolist() == [0, 25, 61]
    shifted = kernels.squared_differences(X, labels, centers, 1, shift=np.array([1.0, 0.0]))
    assert shifted.tolist() == [1, 4 + 16, 16 + 36]
    X = np.array([[0.0, 9.0], [3.0, 4.0]])
    found = kernels.squared_differences(X, np.array([0, 0]), np.array([[0.0, 1.0]]), 1, spherical=True)
    np.testing.assert_allclose(found, [0, 0.36 + 0.04])


@pytest.mark.parametrize("D", [1, 7, 40, 301])
@pytest.mark.parametrize("labels_dtype", [np.int32, np.int64])
def test_squared_differences_of_every_layout_and_type(isa, rng, D, labels_dtype):
    X, centers = rng.integers(0, 127, (50, D)).astype(np.float64), 60 * rng.standard_normal((9, D))
    labels, shift = rng.integers(0, 9, 50).astype(labels_dtype), rng.standard_normal(D)
    expected = ((X - shift - centers[labels]) ** 2).sum(axis=1)
    for name, variant in layouts(X):
        if isinstance(variant, np.ndarray) and variant.dtype.kind in "fiu":
            found = kernels.squared_differences(variant, labels, centers, 2, shift=shift)
            np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)


def test_squared_differences_do_not_depend_on_threads(isa, rng):
    X, centers = rng.standard_normal((50000, 30)).astype(np.float32), rng.standard_normal((20, 30))
    labels = rng.integers(0, 20, len(X)).astype(np.int32)
    one = kernels.squared_differences(X, labels, centers, 1)
    for n_threads in (2, 7):
        np.testing.assert_array_equal(kernels.squared_differences(X, labels, centers, n_threads), one)


@pytest.mark.parametrize("label", [-1, 3, 2**32])
def test_labels_out_of_range_are_refused(label):
    with pytest.raises(ValueError, match="a label is out of range"):
        kernels.squared_differences(np.ones((2, 2)), np.array([0, label]), np.ones((3, 2)), 1)


def test_squared_differences_refuse_arrays_that_do_not_fit():
    X, labels, centers = np.ones((4, 2)), np.zeros(4, np.int32), np.ones((3, 2))
    for bad in ((X[:, :1], labels, centers), (X, labels[:3], centers), (X, labels, centers[:, :1])):
        with pytest.raises(ValueError, match=r"fit the product|wrong size"):
            kernels.squared_differences(*bad, 1)
    with pytest.raises(ValueError, match="wrong size of shift"):
        kernels.squared_differences(X, labels, centers, 1, shift=np.ones(3))


@pytest.mark.parametrize("spherical", [False, True])
def test_score_is_minus_the_weighted_squares(rng, spherical):
    X, weights = rng.standard_normal((200, 6)).astype(np.float32), rng.random(200)
    model = QKMeans(5, metric="cosine" if spherical else "euclidean", random_state=0).fit(X)
    rows = X.astype(np.float64)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True) if spherical else rows
    squares = ((rows - model.cluster_centers_[model.predict(X)]) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.score(X), -squares.sum(), rtol=1e-12)
    np.testing.assert_allclose(model.score(X, sample_weight=weights), -(squares @ weights), rtol=1e-12)


def test_score_looks_at_its_rows_once(rng, monkeypatch):
    X = rng.standard_normal((50, 3))
    model, calls = QKMeans(2, random_state=0).fit(X), []
    check = QKMeans._check_new_rows
    monkeypatch.setattr(QKMeans, "_check_new_rows", lambda self, X: calls.append(1) or check(self, X))
    model.score(X, sample_weight=np.ones(50))
    assert len(calls) == 1
