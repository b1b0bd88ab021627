"""The nearest of all centers: the kernel behind exact screens, and the short way to it."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans

from quickmeans import QKMeans, kernels
from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.screen import Screen


def screen_of(centers, dtype, mean=None):
    mean = np.zeros(centers.shape[1]) if mean is None else mean
    return Screen(centers.astype(np.float64), Geometry(mean, np.dtype(dtype)))


def squares(X, C):
    return ((X[:, None, :].astype(np.float64) - C[None]) ** 2).sum(2)


def test_by_hand():
    """On a line with centers 0, 4 and 10: 2 is as far from 0 as from 4, and goes to the first of them."""
    screen = screen_of(np.array([[0.0], [4.0], [10.0]]), np.float32)
    rows = np.array([[1.0], [2.0], [3.0], [6.9], [7.1], [100.0]], np.float32)
    np.testing.assert_array_equal(screen.label(rows, 1)[0], [0, 0, 1, 1, 2, 2])
    assignment = Assignment.empty(len(rows), np.dtype(np.float32))
    screen.assign(rows, assignment, 1)
    np.testing.assert_array_equal(assignment.norms, rows[:, 0] ** 2)
    # Scores are x c - c^2 / 2.
    np.testing.assert_allclose(assignment.best, [0, 0, 4, 19.6, 21, 950], rtol=1e-6)
    np.testing.assert_allclose(assignment.second, [-4, 0, 0, 19, 20.4, 392], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("D", [1, 2, 3, 7, 8, 9, 16, 31, 257, 600])
@pytest.mark.parametrize("K", [1, 2, 3, 4, 5, 16, 17, 35])
def test_labels_are_those_of_the_formula(isa, rng, dtype, D, K):
    for n in (1, 2, 7, 8, 9, 25, 130):
        X = (rng.standard_normal((n, D)) + 3).astype(dtype)
        C, mean = rng.standard_normal((K, D)), np.full(D, 3.0)
        screen, distances = screen_of(C, dtype, mean), squares(X - mean, C)
        labels, n_settled = screen.label(X, 2)
        best = np.sort(distances, axis=1)
        chosen = distances[np.arange(n), labels]
        np.testing.assert_allclose(chosen, best[:, 0], rtol=1e-4 if dtype == np.float32 else 1e-12)
        assert labels.dtype == np.int32
        assert n_settled == 0
        assignment = Assignment.empty(n, np.dtype(dtype))
        screen.assign(X, assignment, 1)
        np.testing.assert_array_equal(assignment.labels, labels)
        accuracy = {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}
        np.testing.assert_allclose(assignment.norms - 2 * assignment.best, best[:, 0], **accuracy)
        if K > 1:
            np.testing.assert_allclose(assignment.norms - 2 * assignment.second, best[:, 1], **accuracy)
        else:
            assert (assignment.second == -np.inf).all()


def layouts(X):
    wide = np.full((len(X), X.shape[1] + 3), np.nan, X.dtype)
    wide[:, 1:-2] = X
    spread = np.full((2 * len(X), X.shape[1]), np.nan, X.dtype)
    spread[::2] = X
    yield "Fortran order", np.asfortranarray(X)
    yield "columns of a wider array", wide[:, 1:-2]
    yield "every second row", spread[::2]
    yield "backwards", X[::-1].copy()[::-1]
    yield "columns backwards", X[:, ::-1].copy()[:, ::-1]
    yield "byte order", X.astype(X.dtype.newbyteorder())
    yield "in the middle of a page", np.frombuffer(b"\0" * 4 + X.tobytes(), np.uint8)[4:].view(X.dtype).reshape(X.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("D", [1, 2, 5, 8, 13])
def test_layout_changes_no_bit(isa, rng, dtype, D):
    X, screen = rng.standard_normal((101, D)).astype(dtype), screen_of(rng.standard_normal((11, D)), dtype)
    expected = Assignment.empty(len(X), np.dtype(dtype))
    screen.assign(X, expected, 1)
    for name, other in layouts(X):
        assignment = Assignment.empty(len(X), np.dtype(dtype))
        screen.assign(other, assignment, 2)
        for field in ("labels", "best", "second", "norms"):
            np.testing.assert_array_equal(getattr(assignment, field), getattr(expected, field), err_msg=name)
        np.testing.assert_array_equal(screen.label(other, 2)[0], expected.labels, err_msg=name)


@pytest.mark.parametrize("D", [2, 10, 40])
def test_position_and_threads_change_no_bit(isa, rng, D):
    X, screen = rng.standard_normal((20000, D)).astype(np.float32), screen_of(rng.standard_normal((30, D)), np.float32)
    expected = Assignment.empty(len(X), np.dtype(np.float32))
    screen.assign(X, expected, 1)
    several = Assignment.empty(len(X), np.dtype(np.float32))
    screen.assign(X, several, 4)
    np.testing.assert_array_equal(several.best, expected.best)
    for i in (0, 1, 23, 24, 500, 19999):
        one = Assignment.empty(1, np.dtype(np.float32))
        screen.assign(X[i : i + 1], one, 1)
        assert (one.labels[0], one.best[0], one.second[0]) == (
            expected.labels[i],
            expected.best[i],
            expected.second[i],
        )
    index = np.sort(rng.choice(len(X), 777, replace=False))
    some = Assignment.empty(len(X), np.dtype(np.float32))
    some.best[:] = 0
    screen.assign(X, some, 2, index=index)
    np.testing.assert_array_equal(some.best[index], expected.best[index])
    assert np.count_nonzero(some.best) == len(index)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("D", [1, 2, 9])
def test_rows_that_cannot_be_compared_are_found(isa, rng, bad, D):
    X = rng.standard_normal((3000, D)).astype(np.float32)
    model = QKMeans(3, random_state=0, n_init=1).fit(X)
    X[2000, D - 1] = bad
    name = {True: "NaN", False: "infinity"}[bool(np.isnan(bad))]
    message = f"contains {name} \\(row 2000, column {D - 1}\\)" if not np.isfinite(bad) else "too large for float32"
    for method in (model.predict, model.score, model.transform):
        if bad == 1e30 and method == model.transform:
            continue
        with pytest.raises(ValueError, match=message):
            method(X)


def test_label_wants_a_plain_screen(rng):
    centers = rng.standard_normal((5, 3)).astype(np.float32)
    screen = kernels.Screen(None, centers, np.zeros(3), None, np.zeros(5), None, shortlist=2)
    with pytest.raises(ValueError, match="only a screen of the centers themselves can label"):
        screen.label(centers)


# ---- the short way to the kernel -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_arrays_get_the_messages_of_others(rng, dtype):
    X = rng.standard_normal((50, 4)).astype(dtype)
    model = QKMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.predict(X.tolist()))
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(QKMeans(3, random_state=0).fit(frozen).labels_, model.labels_)
    with pytest.raises(ValueError, match="X has 3 features, but QKMeans is expecting 4 features"):
        model.predict(X[:, :3].copy())
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.predict(X[:0])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.predict(X[0])
    for array in (X[:, :0], X[:0]):
        with pytest.raises(ValueError, match="Found array with 0"):
            QKMeans(3).fit(array)


def test_names_of_features_are_still_compared(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.standard_normal((40, 2)), columns=["a", "b"])
    model = QKMeans(2, random_state=0).fit(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(frame.to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(frame.to_numpy())
        assert not hasattr(model, "feature_names_in_")
        model.predict(frame.to_numpy())


def test_seeds_are_those_that_scikit_learn_takes():
    X = np.random.default_rng(0).standard_normal((60, 2))
    for state in (0, 2**32 - 1, np.int64(3), np.random.RandomState(0), None):
        QKMeans(2, random_state=state).fit(X)
    fits = [QKMeans(5, random_state=state).fit(X).cluster_centers_ for state in (3, np.int64(3), np.uint8(3))]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])
    for state in (-1, 2**32, "a"):
        with pytest.raises(ValueError, match=r"[Ss]eed"):
            QKMeans(2, random_state=state).fit(X)


@pytest.mark.parametrize(("n", "D", "K"), [(500, 2, 3), (3000, 10, 8), (2000, 30, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_iterations_from_the_same_start_are_those_of_scikit_learn(rng, n, D, K, dtype):
    X = rng.standard_normal((n, D)).astype(dtype)
    start = X[:K].copy()
    ours = QKMeans(K, init=start, n_init=1, max_iter=7, tol=0).fit(X)
    theirs = KMeans(K, init=start, n_init=1, max_iter=7, tol=0).fit(X)
    assert ours.n_iter_ == theirs.n_iter_ == 7
    assert (ours.labels_ == theirs.labels_).mean() >= 0.999
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-5)
    assert len(ours.objective_history_) == 14


def test_an_observer_changes_no_bit(rng):
    X = rng.standard_normal((2000, 5))
    seen = []
    alone = QKMeans(12, random_state=0).fit(X)
    watched = QKMeans(12, random_state=0, callback=lambda i, objective: seen.append((i, objective))).fit(X)
    np.testing.assert_array_equal(alone.cluster_centers_, watched.cluster_centers_)
    np.testing.assert_array_equal(alone.objective_history_, watched.objective_history_)
    assert max(i for i, _ in seen) == alone.n_iter_


@pytest.mark.parametrize(("n", "D", "K"), [(3000, 60, 200), (20000, 30, 100)])
def test_no_screen_is_tried_where_none_can_pay(rng, monkeypatch, n, D, K):
    def refuse(*_):
        raise AssertionError("a screen was tried")

    monkeypatch.setattr(ScreenChooser, "_calibrated", refuse)
    model = QKMeans(K, random_state=0, max_iter=2, search="none").fit(rng.standard_normal((n, D)).astype(np.float32))
    assert model.product_ is None


def test_ctrl_c_keeps_the_iterations_that_were_complete(rng):
    """The handler is called from inside the native call that runs all iterations."""
    X = rng.standard_normal((200000, 24)).astype(np.float32)
    model = QKMeans(300, init=X[:300].copy(), n_init=1, max_iter=10000, tol=0)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    finally:
        timer.cancel()
    assert model.n_iter_ < 10000
    assert len(model.objective_history_) == 2 * model.n_iter_
    assert np.isfinite(model.cluster_centers_).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    if model.n_iter_:  # with sanitizers, half a second is not enough for one
        assert model.inertia_ <= model.objective_history_[-1] * (1 + 1e-6)
