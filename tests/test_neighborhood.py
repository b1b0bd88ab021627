"""Many clusters: rows are compared with the centroids near their own."""

from functools import partial

import clusters
import numpy as np
import pytest
from clusters import lloyd, squares

from quickmeans import QKMeans, kernels, memory
from quickmeans.kmeans import start

search_of = partial(clusters.search_of, kernels.LocalSearch)


def text_like(rng, n, D, n_topics):
    """Rows of length one around topics, as word vectors are."""
    X = rng.standard_normal((n_topics, D))[rng.integers(n_topics, size=n)] + 0.8 * rng.standard_normal((n, D))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def many(monkeypatch):
    """Problems count as those of many clusters from a small size on."""
    monkeypatch.setattr(start, "_FLAT_WORK", 1 << 16)


# ---- native ----------------------------------------------------------------------------------------------------------


def test_a_row_goes_to_the_nearest_neighbour_by_hand():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    search = search_of(X, [[1.0], [9.0], [30.0]])
    assert search.iterate(10) == 2
    assert search.labels().tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(search.means().ravel(), [0.5, 10.5, 20.5])
    np.testing.assert_allclose(search.objective, 1.5)
    assert search.converged
    assert search.n_near == 3


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize(("n", "D", "K"), [(60, 1, 3), (200, 2, 7), (500, 5, 17), (300, 33, 16), (700, 300, 60)])
def test_with_few_centers_iterations_are_those_of_lloyd(rng, n, D, K, spherical):
    X = rng.standard_normal((n, D + spherical)).astype(np.float32)
    if spherical:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    w = rng.integers(0, 4, n).astype(np.float64)
    begin = X[rng.choice(n, K, replace=False)].astype(np.float64)
    search, done = search_of(X, begin, w, spherical=spherical), 0
    for n_iter in (1, 1, 3, 10):
        done += search.iterate(n_iter)
        labels, means, objective = lloyd(X, begin, w, done, spherical=spherical)
        assert (labels != search.labels()).mean() <= 0.01  # ties in float32
        np.testing.assert_allclose(search.objective, objective, rtol=1e-4)
    np.testing.assert_allclose(search.means(), means, atol=2e-2)


def test_the_objective_of_many_centers_is_near_that_of_all_comparisons(rng):
    X, K = text_like(rng, 20000, 48, 300), 1000
    begin = X[rng.choice(len(X), K, replace=False)].astype(np.float64)
    search = search_of(X, begin, n_threads=2)
    search.iterate(10)
    _, _, objective = lloyd(X, begin, np.ones(len(X)), 10)
    assert search.objective < 1.01 * objective
    search.assign()
    exact = squares(X, search.means())
    found = exact[np.arange(len(X)), search.labels()]
    assert (search.labels() == exact.argmin(1)).mean() > 0.97
    assert found.sum() < 1.002 * exact.min(1).sum()


def test_every_iteration_lowers_the_objective(rng):
    X = text_like(rng, 5000, 20, 100)
    search = search_of(X, X[:400].astype(np.float64))
    search.iterate(15)
    history = np.array(search.history)
    assert (np.diff(history) <= 1e-5 * history[0]).all()


def test_swaps_lower_the_objective_and_can_be_taken_back(rng):
    X = text_like(rng, 6000, 24, 200)
    search = search_of(X, X[:300].astype(np.float64))
    search.iterate(5)
    search.keep()
    before, labels, means = search.objective, search.labels(), search.means()
    assert search.swap(300) > 0
    search.iterate(3)
    assert search.objective < before
    search.go_back()
    assert search.objective == before
    np.testing.assert_array_equal(search.cluster_weights(), np.bincount(labels, minlength=300))
    np.testing.assert_array_equal(search.labels(), labels)
    np.testing.assert_array_equal(search.means(), means)
    search.iterate(3)
    assert search.objective <= before * (1 + 1e-6)


def test_a_swap_after_the_way_back_is_that_of_the_clusters_that_were_kept(rng):
    X = text_like(rng, 6000, 24, 200)
    search = search_of(X, X[:300].astype(np.float64))
    search.iterate(5)
    search.keep()
    before, first = search.objective, search.swap(300)
    search.iterate(3)
    search.go_back()
    assert abs(search.swap(300) - first) <= 0.2 * first
    search.iterate(3)
    assert search.objective < before


def test_a_swap_moves_a_center_to_where_one_is_missing():
    X = np.concatenate([c + np.linspace(-1, 1, 20)[:, None] for c in (0.0, 100.0, 200.0, 300.0)])
    search = search_of(X, [[-0.5], [0.5], [100.0], [250.0]])
    search.iterate(5)
    assert search.swap(4) == 1
    search.iterate(5)
    np.testing.assert_allclose(np.sort(search.means().ravel()), [0, 100, 200, 300], atol=1e-4)


@pytest.mark.parametrize("spherical", [False, True])
def test_threads_change_no_bit(rng, spherical):
    X = text_like(rng, 30000, 40, 300)
    begin = X[:900].astype(np.float64)
    results = []
    for n_threads in (1, 2, 5):
        search = search_of(X, begin, spherical=spherical, n_threads=n_threads)
        search.iterate(3)
        search.swap(900)
        search.iterate(3)
        results.append((search.labels(), search.means(), search.history))
    for labels, means, history in results[1:]:
        np.testing.assert_array_equal(labels, results[0][0])
        np.testing.assert_array_equal(means, results[0][1])
        assert history == results[0][2]


def test_wrong_sizes_and_order_are_refused(rng):
    X = rng.standard_normal((20, 3)).astype(np.float32)
    search = kernels.LocalSearch(X, np.ones(20), spherical=False, n_threads=1)
    with pytest.raises(ValueError, match="place centers first"):
        search.iterate(1)
    with pytest.raises(ValueError, match="wrong centers"):
        search.place(np.zeros((3, 4)))
    search.place(X[:5].astype(np.float64))
    with pytest.raises(ValueError, match="iterate first"):
        search.swap(1)
    with pytest.raises(ValueError, match="nothing was kept"):
        search.go_back()
    with pytest.raises(ValueError, match="wrong size of weights"):
        kernels.LocalSearch(X, np.ones(19), spherical=False, n_threads=1)


# ---- fits ------------------------------------------------------------------------------------------------------------


def test_a_fit_is_as_good_as_one_that_compares_all(rng, many):
    X, K = text_like(rng, 20000, 32, 500), 500
    local = QKMeans(K, random_state=0).fit(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "_FLAT_WORK", 1 << 40)
        flat = QKMeans(K, random_state=0).fit(X)
    assert local.inertia_ < 1.01 * flat.inertia_
    exact = squares(X, local.cluster_centers_)
    np.testing.assert_allclose(local.inertia_, exact[np.arange(len(X)), local.labels_].sum(), rtol=1e-5)
    assert local.inertia_ < 1.002 * exact.min(1).sum()
    assert local.weight_in_clusters_.sum() == len(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("spherical", [False, True])
def test_fits_of_any_dtype(rng, many, dtype, spherical):
    X = (100 * text_like(rng, 4000, 16, 100)).astype(dtype)
    X = X[np.any(X, axis=1)]
    model = QKMeans(200, random_state=0, metric="cosine" if spherical else "euclidean", max_iter=5).fit(X)
    assert (model.predict(X) == model.labels_).mean() > 0.95
    assert len(np.unique(model.labels_)) > 195


def test_rows_far_from_zero_and_in_small_units(rng, many):
    X = text_like(rng, 4000, 16, 100).astype(np.float64)
    plain = QKMeans(200, random_state=0, max_iter=5).fit(X)
    moved = QKMeans(200, random_state=0, max_iter=5).fit(1e-6 * X + 3e-4)
    np.testing.assert_allclose(moved.inertia_, 1e-12 * plain.inertia_, rtol=2e-2)


def test_weights_count_and_rows_without_any_have_a_label(rng, many):
    X = text_like(rng, 3000, 16, 100)
    weights = rng.integers(0, 3, len(X)).astype(np.float64)
    model = QKMeans(150, random_state=0).fit(X, sample_weight=weights)
    exact = squares(X, model.cluster_centers_)
    np.testing.assert_allclose(model.inertia_, weights @ exact[np.arange(len(X)), model.labels_], rtol=1e-5)
    np.testing.assert_allclose(model.weight_in_clusters_, np.bincount(model.labels_, weights, 150))


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("n", [400, 401, 450])
def test_as_many_clusters_as_rows_or_nearly(rng, many, n):
    X = rng.standard_normal((n, 8)).astype(np.float32)
    model = QKMeans(400, random_state=0).fit(X)
    assert model.inertia_ <= 0.1 * ((X - X.mean(0)) ** 2).sum()


def test_fewer_distinct_rows_than_clusters_is_said(rng, many):
    X = rng.standard_normal((100, 8)).astype(np.float32)[rng.integers(100, size=5000)]
    with pytest.warns(match=r"distinct clusters \(100\) found smaller than n_clusters \(300\)"):
        model = QKMeans(300, random_state=0).fit(X)
    assert model.inertia_ < 1e-6


def test_one_huge_cluster_beside_many_small_ones(rng, many):
    X = np.concatenate([0.01 * rng.standard_normal((9000, 8)), 10 * rng.standard_normal((1000, 8))]).astype(np.float32)
    model = QKMeans(300, random_state=0).fit(X)
    other = QKMeans(300, random_state=0, init="random", search="none").fit(X)
    assert model.inertia_ < other.inertia_


def test_callbacks_see_every_iteration_and_can_stop(rng, many):
    X, seen = text_like(rng, 4000, 16, 100), []
    QKMeans(200, random_state=0, search="none", max_iter=2, tol=0, callback=lambda i, o: seen.append(i)).fit(X)
    assert [i for i in seen if i] == [1, 2]
    model = QKMeans(200, random_state=0, search="none", tol=0, callback=lambda i, o: i == 1).fit(X)
    assert model.n_iter_ == 1


def test_given_centroids_are_the_start(rng, many):
    X = text_like(rng, 4000, 16, 100)
    model = QKMeans(200, init=X[:200], n_init=1, max_iter=1).fit(X)
    _, means, _ = lloyd(X, X[:200], np.ones(len(X)), 1)
    assert np.median(np.abs(model.cluster_centers_ - means)) < 1e-6
    assert model.inertia_ < 1.005 * squares(X, means).min(1).sum()


def test_too_little_memory_is_said_before_the_search(rng, many, monkeypatch, tmp_path):
    X = text_like(rng, 4000, 16, 100)
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 100 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    with pytest.raises(MemoryError, match=r"A fit of 4000 rows with 200 clusters takes about 0\.0 GB .* are available"):
        QKMeans(200, random_state=0).fit(X)
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "nothing")
    assert memory.available_bytes() is None
    QKMeans(200, random_state=0, max_iter=1).fit(X)


def test_a_file_is_clustered_as_the_array_is(rng, many, tmp_path):
    X = text_like(rng, 4000, 16, 100)
    np.save(tmp_path / "rows.npy", X)
    model = QKMeans(200, random_state=0).fit(tmp_path / "rows.npy")
    assert model.inertia_ < 1.01 * QKMeans(200, random_state=0).fit(X).inertia_
    assert len(model.labels_) == len(X)


def test_ctrl_c_during_swaps_leaves_a_model(rng, many):
    X = text_like(rng, 4000, 16, 100)

    def stop(iteration, objective):
        raise KeyboardInterrupt

    model = QKMeans(200, random_state=0, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    exact = squares(X, model.cluster_centers_)
    np.testing.assert_allclose(model.inertia_, exact[np.arange(len(X)), model.labels_].sum(), rtol=1e-5)
    assert model.inertia_ < 1.2 * QKMeans(200, random_state=0).fit(X).inertia_


def test_a_row_without_weight_may_be_of_any_size(rng, many):
    X, weights = text_like(rng, 3000, 16, 100).astype(np.float64), np.ones(3000)
    X[5], weights[5] = 1e50, 0
    model = QKMeans(150, random_state=0).fit(X, sample_weight=weights)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)
