"""The search for better clusters: native moves, their policy, and what they do for a fit."""

import itertools
from functools import partial

import clusters
import numpy as np
import pytest
import scipy.sparse as sp
from clusters import lloyd, squares

from quickmeans import QKMeans, kernels
from quickmeans.kmeans.levels import quotas
from quickmeans.kmeans.settings import Effort, Settings
from quickmeans.kmeans.swaps import improve

search_of = partial(clusters.search_of, kernels.Search)


def quiet(move, objective):
    return False


SHAPES = [(60, 1, 3), (200, 2, 7), (500, 5, 17), (300, 33, 16), (700, 64, 40)]


@pytest.mark.parametrize(("n", "D", "K"), SHAPES)
@pytest.mark.parametrize("spherical", [False, True])
def test_iterations_are_those_of_lloyd(rng, n, D, K, spherical):
    X = rng.standard_normal((n, D + spherical)).astype(np.float32)
    if spherical:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.integers(0, 4, n).astype(np.float64)
    start = X[rng.choice(n, K, replace=False)].astype(np.float64)
    search = search_of(X, start, w, spherical=spherical)
    done = 0
    for n_iter in (1, 1, 3, 10):
        done += search.iterate(n_iter)
        labels, _, objective = lloyd(X, start, w, done, spherical=spherical)
        assert (labels != search.labels()).mean() <= 0.01  # ties in float32
        np.testing.assert_allclose(search.objective, objective, rtol=1e-4)
        np.testing.assert_allclose(search.cluster_weights().sum(), w.sum())


def test_bounds_prove_what_they_skip(rng):
    """After many iterations and moves every row is with its nearest center."""
    X = np.concatenate([c + 0.3 * rng.standard_normal((80, 6)) for c in 4 * rng.standard_normal((12, 6))])
    search = search_of(X, X[rng.choice(len(X), 12, replace=False)])
    search.iterate(2)
    improve(search, Effort(100), 0.0, quiet)
    search.iterate(100)
    assert search.converged
    d = squares(X.astype(np.float32), search.means())
    chosen = d[np.arange(len(X)), search.labels()]
    assert (chosen <= d.min(1) * (1 + 1e-5)).all()
    np.testing.assert_allclose(search.objective, chosen.sum(), rtol=1e-6)


def test_a_swap_worked_by_hand():
    """Two centers share a cluster, one holds two: the cheap one of the pair goes where the split gains 32."""
    X = np.array([[0.0], [1], [10], [14], [18], [22]]) - 10
    search = search_of(X, [[-10.0], [-9], [6]])  # clusters {0}, {1}, {10, 14, 18, 22}
    search.iterate(5)
    assert search.labels().tolist() == [0, 1, 2, 2, 2, 2]
    assert search.objective == pytest.approx(80)
    # Removing {0} costs 1 (its row goes to 1). Splitting {10 .. 22} into pairs saves 80 - 8 - 8 = 64.
    assert search.swap(3) == 1
    search.iterate(5)
    assert search.objective == pytest.approx(0.5 + 8 + 8)
    assert search.swap(3) == 0


def test_shrink_removes_the_cheapest_and_grow_splits_the_widest():
    X = np.array([[0.0], [1], [10], [14], [18], [22]]) - 10
    search = search_of(X, [[-10.0], [-9], [6]])
    search.iterate(5)
    assert search.grow(1) == 1
    search.iterate(5)
    assert search.n_centers == 4
    assert search.objective == pytest.approx(16)
    search.shrink(1)
    search.iterate(5)
    assert search.n_centers == 3
    assert search.objective == pytest.approx(16.5)


def test_go_back_undoes_a_move(rng):
    X = rng.standard_normal((300, 4))
    search = search_of(X, X[:10])
    search.iterate(5)
    labels, means, objective = search.labels(), search.means(), search.objective
    search.keep()
    search.grow(3)
    search.iterate(3)
    search.shrink(2)
    search.go_back()
    np.testing.assert_array_equal(labels, search.labels())
    np.testing.assert_array_equal(means, search.means())
    assert search.objective == objective


def test_moves_before_the_first_iteration_are_refused(rng):
    X = rng.standard_normal((30, 4))
    for move in ("swap", "grow", "shrink"):
        with pytest.raises(ValueError, match="iterate first"):
            getattr(search_of(X, X[:3]), move)(1)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_change_no_bit(rng, n_threads):
    X = rng.standard_normal((9000, 40)).astype(np.float32)
    results = []
    for n in (1, n_threads):
        first = int(rng.integers(1)), np.random.default_rng(1).random((60, 5))
        chosen = kernels.seed(X, np.ones(len(X)), *first, n)
        search = search_of(X, X[chosen], n_threads=n)
        search.iterate(3)
        improve(search, Effort(10), 0.0, quiet)
        results.append((chosen, search.labels(), search.means(), search.objective))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def best_of_all(X, K):
    """The least objective of all partitions into K clusters of few rows."""
    best = np.inf
    for labels in itertools.product(range(K), repeat=len(X)):
        labels = np.array(labels)
        best = min(best, sum(((X[labels == k] - X[labels == k].mean(0)) ** 2).sum() for k in set(labels.tolist())))
    return best


def test_small_problems_are_mostly_solved(rng):
    rows = [rng.standard_normal((7, 2)) for _ in range(10)]
    over = [QKMeans(3, random_state=0, tol=0).fit(X).inertia_ / best_of_all(X, 3) for X in rows]
    assert np.median(over) <= 1 + 1e-6
    assert np.mean(over) <= 1.05


@pytest.mark.parametrize("D", [2, 20, 300])
def test_separated_blobs_are_found(D):
    rng = np.random.default_rng(D)
    K = 25
    centers = 20 * rng.standard_normal((K, D))
    X = np.concatenate([c + rng.standard_normal((60, D)) for c in centers]).astype(np.float32)
    true = sum(((X[60 * k : 60 * k + 60] - X[60 * k : 60 * k + 60].mean(0)) ** 2).sum() for k in range(K))
    for seed in range(5):
        assert QKMeans(K, random_state=seed).fit(X).inertia_ <= 1.0005 * true


def test_the_search_lowers_the_objective(rng):
    X = rng.random((3000, 5))
    none, auto, thorough = (
        np.mean([QKMeans(50, search=search, random_state=seed).fit(X).inertia_ for seed in range(3)])
        for search in ("none", "auto", "thorough")
    )
    assert auto < 0.985 * none
    assert thorough < auto


def test_a_given_start_is_not_searched_unless_asked(rng):
    X = rng.random((1000, 3))
    init = X[:20]
    _, means, _ = lloyd(X, init, np.ones(len(X)), 5)
    plain = QKMeans(20, init=init, max_iter=5, tol=0).fit(X)
    np.testing.assert_allclose(plain.cluster_centers_, means, atol=1e-5)
    asked = QKMeans(20, init=init, search="thorough").fit(X)
    assert asked.inertia_ < 0.99 * plain.inertia_


def test_history_and_callback_show_the_moves(rng, capsys):
    X = rng.random((2000, 4))
    seen = []
    model = QKMeans(30, random_state=0, verbose=1, callback=lambda *a: seen.append(a)).fit(X)
    moves = [objective for iteration, objective in seen if iteration == 0]
    assert moves
    assert sorted(moves, reverse=True) == moves
    np.testing.assert_allclose(model.objective_history_[: len(moves)], moves)
    assert len(model.objective_history_) == len(moves) + 2 * model.n_iter_
    assert "Search: " in capsys.readouterr().out


def test_callback_ends_the_search(rng):
    X = rng.random((2000, 4))
    model = QKMeans(30, random_state=0, callback=lambda iteration, objective: True).fit(X)
    assert model.n_iter_ == 0
    assert len(model.objective_history_) == 1


def test_quotas_add_up():
    np.testing.assert_array_equal(quotas(np.array([1.0, 1, 2]), np.array([9, 9, 9]), 8), [2, 2, 4])
    np.testing.assert_array_equal(quotas(np.array([1.0, 1, 98]), np.array([9, 9, 5]), 10), [3, 2, 5])
    np.testing.assert_array_equal(quotas(np.array([0.0, 0]), np.array([3, 3]), 4), [2, 2])
    assert quotas(np.array([5.0, 1]), np.array([2, 1]), 6).sum() == 6


def test_many_clusters_start_by_levels(rng):
    X = rng.standard_normal((12000, 100)).astype(np.float32)
    flat, levels = 500, 1200  # 64 K^2 D is below and above the limit
    for K in (flat, levels):
        model = QKMeans(K, random_state=0, max_iter=2).fit(X)
        assert (model.weight_in_clusters_ > 0).all()
        none = QKMeans(K, random_state=0, max_iter=2, init="random", search="none").fit(X)
        assert model.inertia_ < none.inertia_


BAD = {
    "duplicates": lambda rng: np.repeat(rng.standard_normal((7, 3)), 50, axis=0),
    "constant": lambda rng: np.full((100, 4), 3.0),
    "one feature": lambda rng: rng.standard_normal((300, 1)),
    "huge": lambda rng: 1e150 * rng.standard_normal((200, 3)),
    "tiny": lambda rng: 1e-150 * rng.standard_normal((200, 3)),
    "far": lambda rng: 1e9 + rng.standard_normal((200, 3)),
    "heavy tails": lambda rng: rng.standard_cauchy((500, 3)),
    "two scales": lambda rng: np.concatenate([rng.standard_normal((200, 2)), 1e6 + rng.standard_normal((5, 2))]),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("K", [2, 10, 99])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_difficult_rows(rng, kind, K, dtype):
    X = BAD[kind](rng)
    if dtype == np.float32 and np.abs(X).max() > 1e38:
        pytest.skip("float32 has no numbers of that size")
    X = X.astype(dtype)
    w = rng.integers(0, 3, len(X)).astype(np.float64)
    for weights in (None, w):
        model = QKMeans(K, random_state=0).fit(X, sample_weight=weights)
        assert np.isfinite(model.cluster_centers_).all()
        assert np.isfinite(model.inertia_)
        assert (model.objective_history_ >= 0).all()
        distinct = len(np.unique(X if weights is None else X[w > 0], axis=0))
        assert len(np.unique(model.labels_)) <= max(distinct, 1) + (weights is not None) * len(X)
        if distinct <= K and kind in ("duplicates", "constant"):
            assert model.inertia_ <= 1e-9 * max(np.square(X, dtype=np.float64).sum(), 1e-300)


def test_weights_stand_for_repetition(rng):
    X = rng.standard_normal((200, 3))
    w = rng.integers(1, 4, 200)
    weighted = QKMeans(15, random_state=0).fit(X, sample_weight=w)
    repeated = QKMeans(15, random_state=0).fit(np.repeat(X, w, axis=0))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-6)


# ---- what once went wrong -------------------------------------------------------------------------------------------


def test_centers_too_far_for_float32(rng):
    X = rng.standard_normal((3000, 2))
    model = QKMeans(2, init=np.array([[1e25, 0], [2e25, 1]]), n_init=1).fit(X)
    assert len(np.unique(model.labels_)) == 2
    search = search_of(X, np.full((2, 2), 1e30))
    search.iterate(2)
    assert set(search.labels()) <= {0, 1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_group_of_equal_rows_ends(rng):
    X = np.zeros((20000, 64), np.float32)
    X[:2000] = rng.standard_normal((2000, 64))
    assert np.isfinite(QKMeans(1700, random_state=0, max_iter=2).fit(X).inertia_)


def test_nothing_is_tried_once_the_objective_is_zero(rng):
    X = np.repeat(rng.standard_normal((100, 4)).astype(np.float32), 50, axis=0)
    search = search_of(X, X[::50])
    search.iterate(3)
    before = search.work
    improve(search, Effort(1000), 0.0, quiet)
    assert search.objective == 0
    assert search.work == before


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_weights_of_any_size(factor):
    rng = np.random.default_rng(0)
    X = np.concatenate([c + 0.01 * rng.standard_normal((50, 2)) for c in rng.random((30, 2))])
    plain = QKMeans(30, init="random", random_state=0).fit(X)
    weighted = QKMeans(30, init="random", random_state=0).fit(X, sample_weight=np.full(len(X), factor))
    assert weighted.inertia_ == pytest.approx(factor * plain.inertia_, rel=1e-6)


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**36])
def test_rows_of_any_size(scale):
    rng = np.random.default_rng(0)
    X = np.concatenate([c + 0.01 * rng.standard_normal((50, 2)) for c in rng.random((30, 2))]).astype(np.float32)
    plain = QKMeans(30, init="random", random_state=0).fit(X)
    scaled = QKMeans(30, init="random", random_state=0).fit(np.float32(scale) * X)
    assert scaled.inertia_ == pytest.approx(scale**2 * plain.inertia_, rel=1e-3)


def test_nearly_as_many_clusters_as_rows():
    X = np.random.default_rng(5).standard_normal((1500, 1))
    model = QKMeans(1500, random_state=0).fit(X)
    assert model.n_iter_ < 20
    assert len(np.unique(model.labels_)) == 1500
    assert model.inertia_ < 1e-25


def test_first_rows_count_once(rng):
    X = rng.standard_normal((1000, 4))
    assert QKMeans(5, random_state=0).partial_fit(X).weight_in_clusters_.sum() == pytest.approx(1000)
    batches = QKMeans(5, batch_size=100, max_iter=1, random_state=0).fit(X)
    assert batches.weight_in_clusters_.sum() == pytest.approx(1000)


def test_directions_that_cancel():
    X = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]] * 3, float)
    model = QKMeans(1, metric="cosine", random_state=0).fit(X)
    assert np.linalg.norm(model.cluster_centers_) == pytest.approx(1)
    assert model.inertia_ == pytest.approx(24)


def test_history_does_not_rise(rng):
    for seed in range(10):
        history = QKMeans(12, random_state=seed).fit(rng.standard_normal((500, 3))).objective_history_
        assert (np.diff(history) <= 1e-6 * history[:-1]).all()


def test_ctrl_c_in_a_search_keeps_the_last_move(rng):
    seen = []

    def callback(iteration, objective):
        seen.append(objective)
        if len(seen) == 2:
            raise KeyboardInterrupt

    X = rng.random((2000, 5)).astype(np.float32)
    model = QKMeans(40, random_state=0, callback=callback)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.objective_history_.tolist() == seen
    assert model.inertia_ <= seen[-1] * (1 + 1e-6)


def test_files_are_searched_when_that_is_asked_for(rng, tmp_path):
    X = rng.random((3000, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    plain, searched = (
        QKMeans(40, init=X[:40], search=search, random_state=0).fit(tmp_path / "x.npy").inertia_
        for search in ("auto", "thorough")
    )
    assert searched < 0.99 * plain


def test_wide_sparse_rows_take_little_memory(rng):
    X = sp.random(400, 200_000, 1e-4, "csr", np.float32, rng=rng)
    assert np.isfinite(QKMeans(12, random_state=0, max_iter=1).fit(X).inertia_)


@pytest.mark.parametrize("spherical", [False, True])
def test_an_empty_cluster_gets_a_part_of_the_widest(rng, spherical):
    centers = rng.standard_normal((40, 8))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    spread = np.where(np.arange(40) == 17, 0.5, 0.01)[:, None, None]
    X = (centers[:, None] + spread * rng.standard_normal((40, 30, 8))).reshape(-1, 8)
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if spherical else X
    search = search_of(X, np.concatenate([centers, centers[:1]]), spherical=spherical)  # the first of equals wins
    search.iterate(1)
    assert search.n_empty == 1
    assert search.swap(1) == 1
    search.iterate(2)
    assert len(set(search.labels().reshape(40, 30)[17])) > 1


# ---- how much work --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({}, 16),
        ({"max_iter": 8}, 16),
        ({"max_iter": 3}, 6),
        ({"max_iter": 1}, 2),
        ({"max_iter": 1, "search": "thorough"}, 160),
        ({"search": "none"}, 0),
        ({"init": np.zeros((8, 2))}, 0),
    ],
)
def test_few_iterations_take_a_short_search(options, passes):
    assert Settings.of(QKMeans(8, **options).get_params()).effort.passes == passes
