"""Groups of centroids: how a row finds its nearest one without looking at all, and when that is certain."""

import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
from test_nearest import layouts

import quickmeans
from quickmeans import QKMeans, kernels
from quickmeans.kmeans.assignment import Assignment, NotComparableError
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.groups import Groups, first_directions, grouped, usual_count
from quickmeans.kmeans.reach import needed_reaches, with_least_margin, with_reach
from quickmeans.kmeans.screen import CERTAIN, Screen

FLOAT = [np.float32, np.float64]


def clustered(rng, n, D, n_blobs=40, noise=0.5):
    return 3 * rng.standard_normal((n_blobs, D))[rng.integers(n_blobs, size=n)] + noise * rng.standard_normal((n, D))


def in_groups(centers, dtype, rank, margin, reach, *, mean=None, spherical=False, labels=None):
    mean = np.zeros(centers.shape[1]) if mean is None else mean
    geometry = Geometry(mean, np.dtype(dtype), spherical)
    screen = Screen.low_rank(centers, geometry, first_directions(centers, rank), margin=margin)
    return screen.with_groups(
        Groups(grouped(screen.points[:, :-1], max(len(centers) // 12, 1), 1) if labels is None else labels, reach)
    )


def assigned(screen, rows, n_threads=1, **options):
    assignment = Assignment.empty(len(rows), screen.dtype)
    screen.assign(rows, assignment, n_threads, **options)
    return assignment


def squares(X, C):
    return (X.astype(np.float64) ** 2).sum(1)[:, None] - 2 * X.astype(np.float64) @ C.T + (C**2).sum(1)


def found(distances, labels):
    return distances[np.arange(len(labels)), labels]


# ---- the kernel ------------------------------------------------------------------------------------------------------


def test_by_hand():
    """Centers 0, 1, 10 and 11 on a line, in groups around 0.5 and 10.5.

    From row 6 the squares of the distances from the groups, 5.5 and 4.5, differ by 10. The best center of the nearer
    group is 4 away, and a center from its group 0.5: a reach of 5.1 is enough, one of 4.9 is not.
    """
    centers = np.array([[0.0], [1.0], [10.0], [11.0]])
    line = np.ones((1, 1)), np.column_stack([centers, np.zeros(4)]), np.array([0, 0, 1, 1], np.int32)
    groups = kernels.Groups(centers, -(centers[:, 0] ** 2) / 2, np.zeros(1), *line, 2, 1)
    for row, reach, n_groups, label in (
        (1.4, 2, 1, 1),
        (6.0, 4.9, 1, 2),
        (6.0, 5.1, 2, 2),
        (0.4, 2, 1, 0),
        (99, 1, 1, 3),
    ):
        assignment = kernels.make_assignment(1, np.float64)
        bad, n_compared = groups.assign(np.array([[row]]), assignment, reach=reach)
        assert (bad, assignment.labels[0]) == (-1, label)
        assert n_compared == 16 * n_groups  # a group fills a panel of 16
        assert assignment.best[0] == row * centers[label, 0] - centers[label, 0] ** 2 / 2
        assert assignment.norms[0] == row**2
    # For certainty a row looks as far as its best center and a radius of 0.5: from 6.2, 3.8 + 0.5 and not 5.7.
    assignment = kernels.bind_assignment(np.array([2], np.int32), np.array([12.0]), np.zeros(1), np.zeros(1))
    assert groups.assign(np.array([[6.2]]), assignment, reach=1.0, known=True) == (-1, 16)


def test_what_the_directions_miss_counts_by_its_length():
    """Centers (3, 4) and (3, -4) have one point of the first direction; exact scores of rows (3, +-1) decide."""
    centers = np.array([[3.0, 4.0], [3.0, -4.0], [40.0, 0.0]])
    points = np.array([[3.0, 4.0], [3.0, 4.0], [40.0, 0.0]])
    offset, zero = -(centers**2).sum(1) / 2, np.zeros(2)
    groups = kernels.Groups(centers, offset, zero, np.eye(2)[:1], points, np.array([0, 0, 1], np.int32), 2, 1)
    assignment = kernels.make_assignment(2, np.float64)
    groups.assign(np.array([[3.0, 1.0], [3.0, -1.0]]), assignment, reach=1.0)
    np.testing.assert_array_equal(assignment.labels, [0, 1])
    assert (assignment.n_listed, assignment.n_settled) == (4, 4)
    np.testing.assert_array_equal(assignment.second, [9 - 4 - 12.5] * 2)


def oracle(screen, row):
    """The candidates of a row by the formulas of native/kernels/groups.hpp, and which of them are settled whatever
    the order.
    """
    B, points, groups = screen.product.factors[1].T, screen.points.astype(np.float64), screen.groups.labels
    C, y = screen.centers.astype(np.float64), row - screen.geometry.mean
    middles = np.array([points[groups == g, :-1].mean(0) for g in range(groups.max() + 1)])
    rest = np.sqrt(max(y @ y - (y @ B) @ (y @ B), 0))
    upper = points @ np.append(y @ B, rest) - (points**2).sum(1) / 2
    lower = upper - 2 * rest * points[:, -1]
    distances = ((middles - y @ B) ** 2).sum(1)
    usual = ((points[:, :-1] - middles[groups]) ** 2).sum(1).mean()
    scores = C @ y - (C**2).sum(1) / 2
    few = min(16, screen.n_narrow)  # coordinates choose the group that the row looks into first
    at_first = groups == ((middles[:, :few] - (y @ B)[:few]) ** 2).sum(1).argmin()
    first = np.where(at_first, upper, -np.inf).argmax()

    def seen_from(score, part=1.0):
        """The centers in sight, or in a part of the sight, if the best one so far has this score."""
        away = np.sqrt(max(y @ y - 2 * score, 0))
        return (distances <= distances.min() + part * screen.groups.reach * away * np.sqrt(usual))[groups] | at_first

    near = seen_from(scores[first], 0.25)
    most, least = seen_from(scores[first]), near | seen_from(scores[near].max())  # of those near, any may be settled
    candidates = np.union1d(np.flatnonzero(most & (upper >= lower[least].max())), np.flatnonzero(at_first))
    surely = np.flatnonzero(least & (upper >= lower[most].max()))
    gain = ((C**2).sum(1) - (points**2).sum(1)) / 2
    settled = surely[(upper + gain)[surely] >= scores[candidates].max()]
    return candidates, np.append(settled, first), scores


@pytest.mark.parametrize(("D", "K", "rank"), [(5, 40, 2), (24, 300, 8), (300, 200, 20)])
def test_labels_are_those_of_the_formula(isa, rng, D, K, rank):
    X = clustered(rng, 200, D)
    for margin, reach in ((0.05, 0.1), (0.2, 0.7), (0.5, 3.0)):
        screen = in_groups(clustered(rng, K, D), np.float64, rank, margin, reach, mean=np.full(D, 0.7))
        for row, label in zip(X, assigned(screen, X).labels, strict=True):
            candidates, settled, scores = oracle(screen, row)
            assert label in candidates
            assert scores[label] >= scores[settled].max() - 1e-9


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize(("D", "K", "rank"), [(1, 20, 1), (3, 70, 3), (17, 500, 4), (130, 333, 30), (300, 50, 1)])
def test_certainty(isa, rng, dtype, spherical, D, K, rank):
    X, C = clustered(rng, 400, D).astype(dtype), clustered(rng, K, D)
    if spherical:
        C /= np.linalg.norm(C, axis=1, keepdims=True)
    screen = in_groups(C, dtype, rank, CERTAIN, CERTAIN, spherical=spherical)
    assignment = assigned(screen, X, 2)
    rows = X / np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True) if spherical else X
    distances = squares(rows, C)
    np.testing.assert_allclose(
        found(distances, assignment.labels), distances.min(1), rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-5
    )
    exact = screen.geometry.squared_distances(assignment.norms, assignment.best)
    np.testing.assert_allclose(exact, distances.min(1), rtol=1e-3, atol=1e-3 if dtype == np.float32 else 1e-9)


def test_one_huge_group_and_groups_of_one(isa, rng):
    X, C = clustered(rng, 300, 20), clustered(rng, 700, 20)
    expected = squares(X, C).argmin(1)
    for labels in (np.zeros(700, np.int32), np.arange(700, dtype=np.int32), np.minimum(np.arange(700), 3)):
        screen = in_groups(C, np.float64, 6, CERTAIN, CERTAIN, labels=labels.astype(np.int32))
        np.testing.assert_array_equal(assigned(screen, X).labels, expected)


def test_equal_centroids(isa, rng):
    """A thousand centroids at ten places: all are candidates, and more than a list holds."""
    places = clustered(rng, 10, 12)
    C, X = np.repeat(places, 100, axis=0), clustered(rng, 200, 12)
    screen = in_groups(C, np.float32, 4, CERTAIN, CERTAIN)
    distances = squares(X, C)
    assert screen.groups.count <= 10
    labels = assigned(screen, X).labels
    np.testing.assert_allclose(found(distances, labels), distances.min(1), rtol=1e-4)
    np.testing.assert_array_equal(labels % 100, 0)  # the first of equals


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("D", [2, 7, 40])
def test_layout_changes_no_bit(isa, rng, dtype, D):
    X = clustered(rng, 101, D).astype(dtype)
    screen = in_groups(clustered(rng, 200, D), dtype, min(D, 5), 0.2, 1.0)
    expected = assigned(screen, X)
    for name, other in layouts(X):
        assignment = assigned(screen, other, 2)
        for field in ("labels", "best", "second", "norms"):
            np.testing.assert_array_equal(getattr(assignment, field), getattr(expected, field), err_msg=name)


def test_position_and_threads_change_no_bit(isa, rng):
    X, C = clustered(rng, 70000, 30).astype(np.float32), clustered(rng, 500, 30)
    screen = in_groups(C, np.float32, 8, 0.1, 0.7)
    expected = assigned(screen, X)
    for n_threads in (2, 5):
        several = assigned(screen, X, n_threads)
        for field in ("labels", "best", "second", "norms", "n_listed", "n_settled", "n_compared"):
            np.testing.assert_array_equal(getattr(several, field), getattr(expected, field), err_msg=field)
    for i in (0, 1, 23, 24, 65535, 65536, 69999):
        one = assigned(screen, X[i : i + 1])
        assert (one.labels[0], one.best[0]) == (expected.labels[i], expected.best[i])
    index = np.sort(rng.choice(len(X), 777, replace=False))
    some = Assignment.empty(len(X), screen.dtype)
    some.best[:] = 0
    screen.assign(X, some, 2, index=index)
    np.testing.assert_array_equal(some.best[index], expected.best[index])
    assert np.count_nonzero(some.best) == len(index)
    np.testing.assert_array_equal(screen.label(X, 2)[0], expected.labels)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_rows_that_cannot_be_compared_are_found(isa, rng, bad):
    X = clustered(rng, 3000, 9).astype(np.float32)
    screen = in_groups(clustered(rng, 100, 9), np.float32, 3, 0.1, 0.7)
    X[2000, 8] = bad
    with pytest.raises(NotComparableError) as caught:
        screen.assign(X, Assignment.empty(len(X), screen.dtype), 2)
    assert 2000 - 512 < caught.value.row <= 2000  # a chunk has 512 rows


def test_sizes_are_checked(rng):
    C, D, K = rng.standard_normal((6, 3)), 3, 6
    parts = {
        "center_offset": np.zeros(K),
        "mean": np.zeros(D),
        "directions": np.eye(D)[:2],
        "points": np.zeros((K, 3)),
        "labels": np.zeros(K, np.int32),
        "n_groups": 2,
        "n_narrow": 1,
    }
    for name, wrong in (
        ("center_offset", np.zeros(K + 1)),
        ("mean", np.zeros(D + 1)),
        ("directions", np.zeros((2, D + 1))),
        ("points", np.zeros((K, 2))),
        ("points", np.zeros((K - 1, 3))),
        ("labels", np.zeros(K - 1, np.int32)),
        ("labels", np.full(K, 2, np.int32)),
        ("labels", np.full(K, -1, np.int32)),
        ("n_groups", 0),
        ("n_groups", K + 1),
        ("n_narrow", 0),
        ("n_narrow", 3),
    ):
        with pytest.raises(ValueError, match=r"wrong|Label|n_groups|n_narrow"):
            kernels.Groups(C, **(parts | {name: wrong}))
    groups = kernels.Groups(C, **parts)
    with pytest.raises(ValueError, match="do not fit"):
        groups.assign(rng.standard_normal((5, D + 1)), kernels.make_assignment(5, np.float64), reach=1)
    with pytest.raises(ValueError, match="do not fit"):
        groups.assign(rng.standard_normal((5, D)), kernels.make_assignment(4, np.float64), reach=1)
    with pytest.raises(ValueError, match="negative"):
        groups.assign(rng.standard_normal((5, D)), kernels.make_assignment(5, np.float64), reach=-1)


def test_ctrl_c(rng):
    X = rng.standard_normal((400000, 64)).astype(np.float32)
    screen = in_groups(rng.standard_normal((4096, 64)), np.float32, 60, 0.99, 99.0)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            screen.label(X, 2)
    finally:
        timer.cancel()


# ---- groups of points ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 50, 5000])
def test_groups_are_numbered_and_filled(rng, K):
    points = clustered(rng, K, 6).astype(np.float32)
    labels = grouped(points, min(K, 70), 2)
    assert labels.shape == (K,)
    assert (np.bincount(labels) > 0).all()
    np.testing.assert_array_equal(labels, grouped(points, min(K, 70), 1))
    assert (grouped(np.ones_like(points), min(K, 70), 1) == 0).all()
    assert 1 <= usual_count(K) <= K


# ---- the reach and the margin that rows need -------------------------------------------------------------------------


def looks_into(screen, row, reach, square):
    """The centroids in the groups that a row looks into, by the formula, if its first one is so far away, squared."""
    points, labels, r = screen.points[:, : screen.n_narrow].astype(np.float64), screen.groups.labels, screen.n_narrow
    a = (row - screen.geometry.mean) @ screen.directions.T[:, :r]
    middles = np.array([points[labels == g].mean(0) for g in range(screen.groups.count)])
    scale = ((points - middles[labels]) ** 2).sum(1).mean()
    distances = ((a - middles) ** 2).sum(1)
    return (distances <= distances.min() + reach * np.sqrt(square * scale))[labels]


def test_the_reach_that_a_row_needs(rng):
    X, C = clustered(rng, 60, 12), clustered(rng, 90, 12)
    screen = in_groups(C, np.float64, 5, 0.1, 0.0, mean=rng.standard_normal(12))
    labels = rng.integers(90, size=60).astype(np.int32)
    squares = rng.random(60) + 0.1
    needed = needed_reaches(screen, X, labels, squares)
    assert (needed > 0.1).any()
    for row, label, reach, square in zip(X, labels, needed, squares, strict=True):
        assert looks_into(screen, row, reach + 1e-9, square)[label]
        if reach > 1e-6:
            assert not looks_into(screen, row, 0.999 * reach, square)[label]
    squares[3] = 0
    assert needed_reaches(screen, X, labels, squares)[3] == 0


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_a_screen_with_groups_is_calibrated_with_few_searches(rng, noise):
    C = 3 * rng.standard_normal((300, 20))
    rows, new = (C[rng.integers(300, size=n)] + noise * rng.standard_normal((n, 20)) for n in (3000, 20000))
    screen, dense, searches = (
        in_groups(C, np.float64, 8, 0.0, 0.0),
        Screen(C, Geometry(np.zeros(20), np.dtype("f8"))),
        [],
    )

    def assign(other, rows):
        searches.append(other)
        return assigned(other, rows)

    exact = assigned(dense, rows)
    found, cost = with_least_margin(with_reach(screen, rows, exact, assign), rows, exact, assign)
    assert 0 < cost < np.inf
    assert len(searches) <= 10
    excess = assigned(found, new).squared_distances(dense.geometry).sum()
    assert excess <= 1.0005 * assigned(dense, new).squared_distances(dense.geometry).sum()
    assert found.margin < CERTAIN  # the search is not made certain for it


EMPTY = pytest.mark.filterwarnings("ignore:Number of distinct clusters")

# ---- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(3)
    X = clustered(rng, 34000, 96, 600, 1.0).astype(np.float32)
    X, new = X[:30000], X[30000:]
    with warnings.catch_warnings(action="ignore"):  # of a few empty clusters
        fitted = QKMeans(1200, init=X[:1200].copy(), n_init=1, max_iter=2, random_state=0).fit(X)
    assert fitted.assigner_.groups is not None
    return fitted, new


def test_new_rows_find_nearly_their_nearest_centroids(model):
    fitted, new = model
    distances = squares(new, fitted.cluster_centers_.astype(np.float64))
    labels = fitted.predict(new)
    assert found(distances, labels).sum() <= 1.0005 * distances.min(1).sum()
    np.testing.assert_allclose(-fitted.score(new), found(distances, labels).sum(), rtol=1e-4)
    exact = fitted.predict(new, exact=True)
    np.testing.assert_allclose(found(distances, exact), distances.min(1), rtol=1e-5)
    assert (exact == distances.argmin(1)).mean() > 0.999
    np.testing.assert_array_equal(fitted.predict(new[:1]), labels[:1])


def test_a_model_with_groups_travels(model, tmp_path):
    fitted, new = model
    fitted.save(tmp_path / "model")
    for other in (quickmeans.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        assert other.assigner_.groups.reach == fitted.assigner_.groups.reach
        np.testing.assert_array_equal(other.assigner_.groups.labels, fitted.assigner_.groups.labels)
        np.testing.assert_array_equal(other.predict(new), fitted.predict(new))


def test_groups_in_a_file_are_checked(model):
    results = np.zeros(1), 1.0, 1.0, 1
    fitted = FittedClusters(model[0].assigner_, model[0].cluster_centers_, None, *results)
    for name, wrong in (
        ("groups", np.zeros(7, np.uint8)),
        ("groups", np.full(1200, 1200, np.uint16)),
        ("group_reach", -1.0),
        ("group_reach", None),
    ):
        state = fitted.to_state(labels=False)
        (state.tensors if name == "groups" else state.facts)[name] = wrong
        with pytest.raises(ValueError, match="group"):
            FittedClusters.from_state(state)


@EMPTY
def test_spherical_models(rng):
    X = clustered(rng, 22000, 80, 500, 1.0).astype(np.float32)
    X, new = X[:20000], X[20000:].copy()
    fitted = QKMeans(1100, init=X[:1100].copy(), n_init=1, max_iter=1, metric="cosine", random_state=0).fit(X)
    rows = new / np.linalg.norm(new, axis=1, keepdims=True)
    distances = squares(rows, fitted.cluster_centers_.astype(np.float64))
    assert found(distances, fitted.predict(new)).sum() <= 1.0005 * distances.min(1).sum()
    np.testing.assert_allclose(found(distances, fitted.predict(new, exact=True)), distances.min(1), rtol=1e-4)
    new[7] = 0
    with pytest.raises(ValueError, match="Row 7 of X is zero"):
        fitted.predict(new)


def test_nearly_as_many_clusters_as_rows(rng):
    X = rng.standard_normal((1500, 20))
    X[1400:] = X[:100]  # fewer different rows than clusters
    with pytest.warns(Warning, match="distinct|duplicate|different|clusters"):
        fitted = QKMeans(1450, n_init=1, max_iter=2, random_state=0).fit(X)
    new = rng.standard_normal((300, 20))
    distances = squares(new, fitted.cluster_centers_)
    np.testing.assert_allclose(found(distances, fitted.predict(new, exact=True)), distances.min(1), rtol=1e-6)


def test_no_groups_with_few_centroids_or_rows_or_a_shortlist(rng, monkeypatch):
    def refuse(*_):
        raise AssertionError("groups were tried")

    monkeypatch.setattr(ScreenChooser, "_in_groups", refuse)
    X = clustered(rng, 17000, 40).astype(np.float32)
    for K, options, n in ((200, {}, 17000), (1100, {}, 5000), (1100, {"shortlist": 5}, 17000)):
        QKMeans(K, init=X[:K].copy(), n_init=1, max_iter=1, **options).fit(X[:n])
