"""The parts of the iteration: screens, sums, starts."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from points import points_of

from quickmeans.kmeans import calibration
from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.calibration import TARGET, ScreenChooser, leading_directions
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.memory_pass import MemoryPass, cluster_sums, compute_sums
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.screen import Screen
from quickmeans.kmeans.start import kmeans_plusplus, random_rows
from quickmeans.transform import SparseProduct


def scores(X, centers, mean):
    """<x, c> - |c|^2 / 2 - <m, c>, the way it stands."""
    return X.astype(np.float64) @ centers.T - ((centers**2).sum(axis=1) / 2 + centers @ mean)


def assigned(screen, X, n_threads=1, index=None):
    assignment = Assignment.empty(len(X), screen.dtype)
    assignment.labels[:] = -1
    screen.assign(X, assignment, n_threads, index=index)
    return assignment


@pytest.fixture
def problem(rng):
    """Rows with a mean, centroids about it, and a product at some distance from them."""

    def make(n, K, D, dtype=np.float32, noise=0.3):
        mean = rng.standard_normal(D)
        X = (mean + rng.standard_normal((n, D))).astype(dtype)
        centers = rng.standard_normal((K, D))
        basis = np.linalg.qr(rng.standard_normal((D, max(1, D // 3))))[0]
        product = SparseProduct([(centers @ basis).astype(dtype), basis.T.astype(dtype)])
        return X, mean, centers, product

    return make


@pytest.mark.parametrize(("n", "K", "D"), [(1, 5, 3), (2, 40, 17), (70, 33, 8), (300, 200, 50), (129, 700, 20)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certain_screen_finds_the_nearest_centroid(problem, isa, n, K, D, dtype):
    X, mean, centers, product = problem(n, K, D, dtype)
    exact = scores(X, centers, mean)
    assignment = assigned(Screen(centers, Geometry(mean, np.dtype(dtype)), product).certain, X)
    rows = np.arange(n)
    np.testing.assert_allclose(exact[rows, assignment.labels], exact.max(axis=1), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(assignment.best, exact.max(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(assignment.norms, ((X - mean) ** 2).sum(axis=1), rtol=1e-4)
    exact[rows, assignment.labels] = -np.inf
    assert (assignment.second >= exact.max(axis=1) - 1e-3).all()
    np.testing.assert_array_equal(assignment.labels, reference.nearest_rows(X, centers + mean, 1)[:, 0])


@pytest.mark.parametrize("margin", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("shortlist", [0, 3])
def test_a_row_does_not_depend_on_the_others(problem, isa, margin, shortlist):
    X, mean, centers, product = problem(203, 300, 24)
    screen = Screen(centers, Geometry(mean, np.dtype(np.float32)), product, margin=margin, shortlist=shortlist)
    whole = assigned(screen, X)
    for begin, end in [(0, 1), (7, 9), (20, 63), (100, 203)]:
        part = assigned(screen, X[begin:end])
        for name in ("labels", "best", "second", "norms"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[begin:end], name)


def test_threads_change_nothing(problem):
    X, mean, centers, product = problem(4000, 300, 60)
    screen = Screen(centers, Geometry(mean, np.dtype(np.float32)), product, margin=0.1)
    one, four = assigned(screen, X, 1), assigned(screen, X, 4)
    for name in ("labels", "best", "second", "norms", "n_settled", "n_listed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(four, name))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float64, np.int64])
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_all_kinds_of_rows(rng, isa, dtype, layout):
    X = rng.integers(0, 100, (150, 21))
    centers, mean = rng.standard_normal((40, 21)) * 30, np.full(21, 50.0)
    basis = leading_directions(centers, rng.standard_normal((21, 6)))
    screen = Screen.low_rank(centers, Geometry(mean, np.dtype(np.float32)), basis, margin=0.2)
    given = np.asarray(X.astype(dtype), order="F" if layout == "F" else "C")
    if layout == "strided":
        given = np.repeat(given, 2, axis=1)[:, ::2]
    expected, assignment = assigned(screen, X.astype(np.float32)), assigned(screen, given)
    np.testing.assert_array_equal(assignment.labels, expected.labels)
    np.testing.assert_array_equal(assignment.best, expected.best)


def test_index_names_the_rows(problem, isa):
    X, mean, centers, product = problem(200, 64, 30)
    screen = Screen(centers, Geometry(mean, np.dtype(np.float32)), product, margin=0.1)
    index = np.array([3, 4, 77, 150, 199])
    whole, some = assigned(screen, X), assigned(screen, X, index=index)
    np.testing.assert_array_equal(some.labels[index], whole.labels[index])
    assert (np.delete(some.labels, index) == -1).all()


def test_shortlist_of_a_given_length(problem, isa):
    X, mean, centers, product = problem(100, 50, 12)
    V = product.toarray().astype(np.float64)
    best = np.argsort(-scores(X, V, mean), axis=1, kind="stable")[:, :4]
    exact = np.take_along_axis(scores(X, centers, mean), best, axis=1)
    assignment = assigned(Screen(centers, Geometry(mean, np.dtype(np.float32)), product, shortlist=4), X)
    np.testing.assert_array_equal(assignment.labels, best[np.arange(100), exact.argmax(axis=1)])
    assert assignment.n_settled == 400


def test_ties_go_to_the_lower_index():
    centers = np.ones((100, 3))
    assignment = assigned(Screen(centers, Geometry(np.zeros(3), np.dtype(np.float64))), np.ones((5, 3)))
    assert (assignment.labels == 0).all()


def test_low_rank_screen_is_a_projection(rng):
    centers, mean = rng.standard_normal((30, 12)), rng.standard_normal(12)
    basis = leading_directions(centers, rng.standard_normal((12, 5)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)
    screen = Screen.low_rank(centers, Geometry(mean, np.dtype(np.float64)), basis)
    other = Screen(centers, Geometry(mean, np.dtype(np.float64)), screen.product)
    np.testing.assert_allclose(screen._slack, other._slack)
    np.testing.assert_allclose(screen._offset, other._offset)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_screens_refuse_what_is_not_finite(problem, value):
    X, mean, centers, product = problem(100, 20, 10)
    X[77, 3] = value
    with pytest.raises(ValueError, match="NaN, infinity"):
        assigned(Screen(centers, Geometry(mean, np.dtype(np.float32)), product), X)
    with pytest.raises(ValueError, match="row 77, column 3"):
        points_of(X, n_threads=1)


def test_rows_of_a_product_as_centroids(problem):
    X, mean, _, product = problem(90, 25, 9)
    assignment = Assignment.empty(90, product.dtype)
    ProductRows(product, Geometry(mean, product.dtype)).assign(X, assignment, 1)
    assignment.fill_norms(X, Geometry(mean, product.dtype))
    expected = reference.distances(X, product.toarray() + mean)
    np.testing.assert_array_equal(assignment.labels, expected.argmin(axis=1))
    np.testing.assert_allclose(
        assignment.squared_distances(Geometry(mean, product.dtype)), expected.min(axis=1) ** 2, rtol=1e-3
    )


# ---- points, sums ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_moments(rng, isa, weighted, kind):
    X = 1e3 + rng.standard_normal((5000, 7))
    w = rng.integers(0, 4, 5000).astype(float) if weighted else None
    points = points_of(kind(X), w, 2)
    repeated = X if w is None else np.repeat(X, w.astype(int), axis=0)
    np.testing.assert_allclose(points.geometry.mean, repeated.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(points.variances, repeated.var(axis=0), rtol=1e-9)
    assert points.total == len(repeated)
    np.testing.assert_allclose(points.scatter, ((repeated - repeated.mean(axis=0)) ** 2).sum(), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_working_type(scale):
    X = (np.arange(12, dtype=np.float32).reshape(4, 3) * scale).astype(np.float32)
    assert points_of(X, n_threads=1).geometry.dtype == (np.float32 if 1e-12 < scale < 1e12 else np.float64)


class Labels:
    """Stands in for an assigner: gives the labels that it is told."""

    gives_bounds, projected = False, None

    def __init__(self, labels, centers):
        self.labels, self.centers = labels, centers

    def assign(self, rows, assignment, n_threads, *, index=None, projected=None, exact_scores=True):
        assignment.labels[:] = self.labels


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_sums_are_those_of_the_labels(seed, weighted):
    rng = np.random.default_rng(seed)
    n, K, D = rng.integers(1, 200), rng.integers(1, 9), rng.integers(1, 9)
    X = rng.standard_normal((n, D)).astype(np.float32)
    w = rng.random(n) if weighted else None
    weights = np.ones(n) if w is None else w
    points = points_of(X, w, 2)
    passes = MemoryPass(points, K)
    labels = rng.integers(0, K, n).astype(np.int32)
    for share in (1.0, 0.1, 0.02, 0.9):
        moved = rng.random(n) < share
        labels[moved] = rng.integers(0, K, moved.sum())
        before = passes.assignment.labels.copy()
        changed = passes.assign(Labels(labels, np.zeros((K, D))))
        assert changed == (n if share == 1.0 else (before != labels).sum())
        one_hot = np.eye(K)[labels] * weights[:, None]
        np.testing.assert_allclose(passes.sums.raw, one_hot.T @ X, atol=1e-9)
        np.testing.assert_allclose(passes.sums.weights, one_hot.sum(axis=0), atol=1e-9)
        centers = rng.standard_normal((K, D))
        direct = (weights * ((X - points.geometry.mean - centers[labels]) ** 2).sum(axis=1)).sum()
        np.testing.assert_allclose(passes.sums.objective(centers), direct, rtol=1e-9, atol=1e-9)


def test_sums_do_not_depend_on_threads(rng, isa):
    X = rng.standard_normal((20000, 60)).astype(np.float32)
    labels = rng.integers(0, 30, 20000).astype(np.int32)
    results = []
    for n_threads in (1, 2, 7):
        passes = MemoryPass(points_of(X, n_threads=n_threads), 30)
        passes.assign(Labels(labels, np.zeros((30, 60))))
        moved = labels.copy()
        moved[::50] = 3
        passes.assign(Labels(moved, np.zeros((30, 60))))
        results.append(passes.sums.raw)
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


def test_refill_takes_far_rows_whose_cluster_has_others():
    X = np.array([[0.0], [0.1], [5.0], [9.0], [9.1], [100.0]])
    passes = MemoryPass(points_of(X), 4)
    labels, mean = np.array([0, 0, 0, 0, 0, 2], np.int32), X.mean()
    passes.assign(Labels(labels, np.array([[0.0], [50], [100], [50]]) - mean))
    passes.assignment.best[:] = [0, 0, 0, 0, 0, 1e9]
    moves = passes.refill()
    assert moves == [(4, 0, 1), (2, 0, 3)]  # row 5 is alone in its cluster and stays, row 3 is too near to row 4
    assert passes.assignment.labels.tolist() == [0, 0, 3, 0, 1, 2]
    assert passes.sums.sizes.tolist() == [3, 1, 1, 1]
    assert passes.refill() == []
    passes.undo(moves)
    assert passes.assignment.labels.tolist() == labels.tolist()
    assert passes.sums.sizes.tolist() == [5, 0, 1, 0]


# ---- starts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [random_rows, kmeans_plusplus])
def test_starts_are_different_rows(rng, isa, draw):
    X = rng.standard_normal((3000, 5)).astype(np.float32)
    rows = points_of(X, n_threads=1).dense()
    centers = draw(rows, 50, rng) + rows.origin
    assert (reference.distances(centers, X).min(axis=1) < 1e-5).all()
    assert len(np.unique(centers.round(4), axis=0)) == 50


def test_kmeans_plusplus_finds_well_separated_clusters(rng):
    true = rng.standard_normal((30, 20)) * 100
    X = np.repeat(true, 200, axis=0) + rng.standard_normal((6000, 20))
    rows = points_of(X, n_threads=1).dense()
    centers = kmeans_plusplus(rows, 30, rng) + rows.origin
    assert set(reference.distances(centers, true).argmin(axis=1)) == set(range(30))


@pytest.mark.parametrize("draw", [random_rows, kmeans_plusplus])
def test_rows_without_weight_do_not_start(rng, draw):
    X = rng.standard_normal((5000, 4))
    w = np.zeros(5000)
    w[:100] = 1
    rows = points_of(X, w, 1).dense()
    centers = draw(rows, 20, rng) + rows.origin
    assert (reference.distances(centers, X).argmin(axis=1) < 100).all()


def test_weights_stand_for_repetition(rng):
    X = rng.standard_normal((40, 3))
    w = rng.integers(0, 5, 40).astype(float)
    order = rng.permutation(40)
    weighted = points_of(X[order], w[order], 1).dense()
    repeated = points_of(np.repeat(X, w.astype(int), axis=0), n_threads=1).dense()
    np.testing.assert_allclose(weighted.rows, repeated.rows, atol=1e-6)
    np.testing.assert_array_equal(weighted.weights, repeated.weights)


# ---- screens --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, 12.0])
def test_screener_meets_its_target(rng, compression, monkeypatch):
    monkeypatch.setattr(calibration, "_LEAST_ROWS", 0)
    basis = rng.standard_normal((12, 120))
    X = (rng.standard_normal((2000, 12)) @ basis + 0.3 * rng.standard_normal((2000, 120))).astype(np.float32)
    points = points_of(X, n_threads=2)
    choose = ScreenChooser(points, 0, compression=compression)
    centers = random_rows(points.dense(), 200, rng)
    for _ in range(4):
        screen = choose(centers)
        assignment = assigned(screen, X)
        exact = (reference.distances(X, centers + points.geometry.mean) ** 2).min(axis=1).sum()
        assert assignment.squared_distances(points.geometry).sum() <= (1 + 5 * TARGET) * exact
        sums = cluster_sums(points, 200)
        compute_sums(sums, points, assignment.labels)
        centers = sums.means(centers)
    screen = choose.last(choose(centers), centers)
    assignment = assigned(screen, X)
    assert assignment.squared_distances(points.geometry).sum() <= (1 + 5 * TARGET) * (
        (reference.distances(X, centers + points.geometry.mean) ** 2).min(axis=1).sum()
    )
    assert screen.macs <= centers.size / (compression or 3)
    assert assignment.n_settled < 20 * len(X)


def test_screens_and_projected_rows_share_a_basis(rng):
    X = rng.standard_normal((1500, 300)).astype(np.float32)
    points = points_of(X, n_threads=1)
    choose = ScreenChooser(points, rng)
    centers = random_rows(points.dense(), 400, rng)
    for _ in range(3):
        screen = choose(centers)
        if screen.projected is not None:
            np.testing.assert_allclose(screen.projected, X @ screen.product.factors[1].T, atol=1e-4)


def test_screener_is_dense_where_nothing_can_be_saved(rng):
    points = points_of(rng.standard_normal((500, 4)), None, 1)
    assert ScreenChooser(points, rng)(random_rows(points.dense(), 5, rng)).product is None
