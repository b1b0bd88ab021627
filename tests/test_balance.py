"""Clusters of bounded sizes: the bounds always hold, and the flow costs as little as an optimal one."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from commands import done, refused, run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from quickmeans import QKMeans, kernels, load

rng = np.random.default_rng(0)
SKEWED = np.concatenate([rng.normal(0, 0.1, (300, 4)), rng.normal(3, 1, (100, 4))]).astype(np.float32)


def least_cost(squares, least, most):
    """The cost of the best labels, by linear programming: its corners are whole numbers."""
    n, K = squares.shape
    by_cluster = np.tile(np.eye(K), n)
    return linprog(
        squares.ravel(),
        A_ub=np.vstack([by_cluster, -by_cluster]),
        b_ub=np.repeat([most, -least], K),
        A_eq=np.kron(np.eye(n), np.ones(K)),
        b_eq=np.ones(n),
    ).fun


def sizes_of(model, weights=None):
    return np.bincount(model.labels_, weights, model.n_clusters)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 40), K=st.integers(1, 6))
def test_the_flow_has_the_least_cost(seed, n, K):
    rng = np.random.default_rng(seed)
    X, centers = rng.standard_normal((n, 2)).astype(np.float32), 0.3 * rng.standard_normal((K, 2)).astype(np.float32)
    least, most = int(rng.integers(n // K + 1)), int(rng.integers(-(-n // K), n + 1))
    candidates, squares = kernels.CandidateLists(centers, 1).list(X, np.zeros(n, np.int32), K)
    prices = np.empty(K)
    labels, how, _ = kernels.balance(candidates, squares, least, most, prices)
    assert how == kernels.Balanced.ALL
    sizes = np.bincount(labels, minlength=K)
    assert least <= sizes.min()
    assert sizes.max() <= most
    every = ((X[:, None].astype(np.float64) - centers) ** 2).sum(axis=2)
    assert np.isclose(every[np.arange(n), labels].sum(), least_cost(every, least, most), rtol=1e-5, atol=1e-5)
    full, short = sizes == most, sizes == least
    assert (prices[~full] <= 1e-6).all()  # a place is worth something only in a cluster that is full,
    assert (prices[~short] >= -1e-6).all()  # and a row only in one that is short
    costs = every + prices
    assert (costs[np.arange(n), labels] <= costs.min(axis=1) + 1e-5).all()


def test_a_chain_by_hand():
    """Both rows of the first cluster are next to the second, which is full: its row must make room."""
    candidates = np.array([[0, 1], [0, 1], [1, 2]], np.int32)
    squares = np.array([[0, 1], [0, 2], [0, 5]], np.float32)
    labels, how, _ = kernels.balance(candidates, squares, 0, 1, np.zeros(3))
    assert how == kernels.Balanced.ALL
    assert labels.tolist() == [1, 0, 2]


def test_a_search_that_is_stuck_says_where():
    candidates, squares = np.array([[0, -1], [0, 1], [0, 1]], np.int32), np.zeros((3, 2), np.float32)
    _, how, reached = kernels.balance(candidates, squares, 0, 1, np.zeros(3))
    assert how == kernels.Balanced.NEEDS_MORE_OUTSIDE
    assert reached.tolist() == [True, True, False]
    _, how, reached = kernels.balance(candidates, squares, 1, 3, np.zeros(3))
    assert how == kernels.Balanced.NEEDS_MORE_INSIDE
    assert reached.tolist() == [False, False, True]


def test_lists_are_the_nearest_centers():
    X, centers = SKEWED[::7], SKEWED[::40]
    candidates, squares = kernels.CandidateLists(centers, 2).list(X, np.zeros(len(X), np.int32), 4)
    every = ((X[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, np.sort(every, axis=1)[:, :4], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(every, candidates.astype(np.int64), 1), squares, rtol=1e-4, atol=1e-5)


def test_lists_of_many_centers_are_near():
    X = np.random.default_rng(2).standard_normal((3000, 8)).astype(np.float32)
    centers = X[:600]
    every = ((X[:, None] - centers) ** 2).sum(axis=2)
    candidates, squares = kernels.CandidateLists(centers, 2).list(X, every.argmin(axis=1).astype(np.int32), 4)
    np.testing.assert_allclose(np.take_along_axis(every, candidates.astype(np.int64), 1), squares, rtol=1e-3, atol=1e-4)
    assert (
        np.isclose(squares, np.sort(every, axis=1)[:, :4], rtol=1e-3, atol=1e-4).mean() > 0.9
    )  # 64 of 600 centers are compared
    model = QKMeans(600, max_cluster_size=6, random_state=0, max_iter=3).fit(X)
    assert sizes_of(model).max() <= 6


def test_swaps_find_better_clusters():
    """One dense blob that must be shared out: without a search its rows crowd out the others."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(0, 0.2, (700, 4)), 4 * rng.standard_normal((20, 4))[rng.integers(20, size=500)]])
    X = (X + 0.1 * rng.standard_normal(X.shape)).astype(np.float32)
    plain, found = (
        QKMeans(24, max_cluster_size=60, random_state=0, search=search).fit(X) for search in ("none", "auto")
    )
    assert max(sizes_of(plain).max(), sizes_of(found).max()) <= 60
    assert found.inertia_ < plain.inertia_


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        ({"max_cluster_size": 50}, 0, 50),
        ({"max_cluster_size": 1.2}, 0, 48),
        ({"max_cluster_size": 1.0}, 40, 40),
        ({"min_cluster_size": 40}, 40, 40),
        ({"min_cluster_size": 0.5, "max_cluster_size": 60}, 20, 60),
        ({"max_cluster_size": 45, "metric": "cosine"}, 0, 45),
        ({"max_cluster_size": 45, "n_init": 2, "max_iter": 1}, 0, 45),
    ],
)
def test_bounds_hold(options, least, most):
    model = QKMeans(10, random_state=0, **options).fit(SKEWED)
    sizes = sizes_of(model)
    assert least <= sizes.min()
    assert sizes.max() <= most
    assert (sizes == model.weight_in_clusters_).all()
    X = SKEWED.astype(np.float64)
    if model.metric == "cosine":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert np.isclose(model.inertia_, ((X - model.cluster_centers_[model.labels_]) ** 2).sum(), rtol=1e-4)
    assert np.diff(model.objective_history_)[-1] <= 1e-6 * model.inertia_
    _, labels = model.nearest(SKEWED, 1)  # predict is not bounded
    assert (model.predict(SKEWED, exact=True) == labels[:, 0]).all()


def test_many_clusters_and_lists_that_do_not_suffice():
    """100 centroids, 16 candidates each, and most rows in one place."""
    X = np.concatenate([np.zeros((300, 3)), rng.standard_normal((100, 3)) + 5]).astype(np.float32)
    X[:300] += 1e-3 * rng.standard_normal((300, 3)).astype(np.float32)
    start = np.concatenate([X[:2], X[300:398]])
    model = QKMeans(100, init=start, max_cluster_size=4, min_cluster_size=4, max_iter=1).fit(X)
    assert (sizes_of(model) == 4).all()


def test_equal_rows():
    model = QKMeans(4, max_cluster_size=5, init=np.zeros((4, 2)), max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(4\)"):
        QKMeans(4, init=np.zeros((4, 2)), max_iter=2).fit(np.ones((20, 2)))
    assert (sizes_of(model.fit(np.ones((20, 2)))) == 5).all()


@pytest.mark.parametrize("bounds", [{"max_cluster_size": 1.05}, {"min_cluster_size": 0.9}, {"max_cluster_size": 60}])
def test_weights_count(bounds):
    weights = np.random.default_rng(1).random(len(SKEWED)) + 0.5
    weights[:20] = 0
    model = QKMeans(10, random_state=0, **bounds).fit(SKEWED, sample_weight=weights)
    sizes, mean = sizes_of(model, weights), weights.sum() / 10
    np.testing.assert_allclose(model.weight_in_clusters_, sizes)
    factor = bounds.get("max_cluster_size", np.inf)
    assert sizes.max() <= (factor * mean if isinstance(factor, float) else factor) * (1 + 1e-8)
    assert sizes.min() >= bounds.get("min_cluster_size", 0) * mean * (1 - 1e-8)


def test_equal_weights_are_rows():
    plain = QKMeans(10, random_state=0, max_cluster_size=44).fit(SKEWED)
    weighted = QKMeans(10, random_state=0, max_cluster_size=88).fit(SKEWED, sample_weight=np.full(len(SKEWED), 2.0))
    assert sizes_of(weighted).max() <= 44
    assert np.isclose(weighted.inertia_, 2 * plain.inertia_, rtol=1e-2)


@pytest.mark.parametrize("kind", ["csr", "file", "float64"])
def test_rows_of_other_kinds(kind, tmp_path):
    np.save(tmp_path / "x.npy", SKEWED)
    rows = {"csr": sp.csr_array(SKEWED), "file": tmp_path / "x.npy", "float64": SKEWED.astype(np.float64) + 1e3}[kind]
    model = QKMeans(10, random_state=0, max_cluster_size=44).fit(rows)
    assert sizes_of(model).max() <= 44


def test_the_command(tmp_path):
    np.save(tmp_path / "x.npy", SKEWED)
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    done("fit", tmp_path / "x.npy", "-k", 10, "--seed", 0, "--max-cluster-size", 1.2, "--with-labels", "-o", first)
    assert sizes_of(load(first)).max() <= 48
    more = ("--min-cluster-size", 20, "--init", first)
    done("fit", tmp_path / "x.npy", "-k", 12, "--seed", 0, *more, "--with-labels", "-o", second)
    assert sizes_of(load(second)).min() >= 20
    refused(run("fit", tmp_path / "x.npy", "-k", 10, "--max-cluster-size", 39, "-o", tmp_path / "c"), "40 or more")


def test_a_fit_as_good_as_the_one_without_bounds_ends():
    """Bounds that do not bind cost one assignment, and do not change the clusters."""
    free = QKMeans(10, random_state=0).fit(SKEWED)
    bound = QKMeans(10, random_state=0, max_cluster_size=400).fit(SKEWED)
    np.testing.assert_array_equal(free.labels_, bound.labels_)
    assert bound.n_iter_ == free.n_iter_ + 1


def test_a_row_heavier_than_a_cluster_is_refused():
    weights = np.r_[1000.0, np.ones(399)]
    message = "max_cluster_size=1.5 allows clusters of weight 209.85, but row 0 alone has 1000; that or more would do"
    with pytest.raises(ValueError, match=message):
        QKMeans(10, max_cluster_size=1.5).fit(SKEWED, sample_weight=weights)


def test_bounds_that_cannot_hold_are_refused():
    for bounds, message in [
        ({"max_cluster_size": 39}, "max_cluster_size=39 leaves room for 390 of 400 rows in 10 clusters; 40 or more"),
        ({"min_cluster_size": 41}, "min_cluster_size=41 needs 410 rows for 10 clusters, and there are 400; 40 or less"),
        ({"min_cluster_size": 30, "max_cluster_size": 20}, "leaves room"),
        ({"max_cluster_size": 0.5}, "a factor of the mean size not below 1, got 0.5"),
        ({"min_cluster_size": 1.5}, "a factor of the mean size from 0 to 1, got 1.5"),
        ({"max_cluster_size": 0}, "max_cluster_size must be a whole number not below 1, or a factor"),
        ({"max_cluster_size": "50"}, "max_cluster_size must be None, a whole number"),
        ({"max_cluster_size": np.nan}, "max_cluster_size must be None"),
        ({"max_cluster_size": 50, "shortlist": 0}, "do not go with shortlist=0"),
        ({"max_cluster_size": 50, "batch_size": 10}, "do not go with batch_size=10"),
        ({"max_cluster_size": 50, "checkpoint": "x"}, "do not go with a checkpoint"),
    ]:
        with pytest.raises(ValueError, match=message):
            QKMeans(10, **bounds).fit(SKEWED)
    with pytest.raises(ValueError, match="not for Dask arrays"):
        QKMeans(10, max_cluster_size=50).fit(da.from_array(SKEWED, chunks=(100, 4)))
    with pytest.raises(ValueError, match="No way was found to share out"):
        QKMeans(3, max_cluster_size=4).fit(SKEWED[:6], sample_weight=[2.5, 2.5, 2.5, 2.5, 1, 1])
