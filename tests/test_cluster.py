"""QKMeans as its users see it."""

import pickle
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from quickmeans import QKMeans
from quickmeans.kmeans import calibration
from quickmeans.testing import check_descent


@parametrize_with_checks(
    [QKMeans(n_init=2, max_iter=20), QKMeans(n_clusters=3, shortlist=0), QKMeans(n_clusters=2, shortlist=1)]
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some checks have fewer different rows than clusters
        check(estimator)


@pytest.fixture
def mixture(rng):
    """Noisy rows around centres in a subspace."""

    def make(n=3000, D=40, n_centers=60, dtype=np.float32):
        centers = rng.standard_normal((n_centers, 10)) @ rng.standard_normal((10, D))
        X = centers[rng.integers(n_centers, size=n)] + 0.5 * rng.standard_normal((n, D)) + 3
        return X.astype(dtype)

    return make


@pytest.mark.parametrize("K", [1, 2, 30, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_good_as_scikit_learn_from_the_same_start(mixture, K, dtype):
    X = mixture(dtype=dtype)
    init = X[:K]
    theirs = KMeans(K, init=init, n_init=1, max_iter=15, tol=0).fit(X)
    ours = QKMeans(K, init=init, max_iter=15, tol=0).fit(X)
    assert ours.inertia_ <= 1.003 * theirs.inertia_
    assert ours.cluster_centers_.dtype == dtype
    exact = reference.distances(X, ours.cluster_centers_)
    np.testing.assert_allclose(ours.inertia_, (exact[np.arange(len(X)), ours.labels_] ** 2).sum(), rtol=1e-5)
    assert ours.inertia_ <= 1.001 * (exact.min(axis=1) ** 2).sum()


def test_a_fit_in_small(rng):
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0]])
    model = QKMeans(3, init=[[0.0], [10.0], [20.0]]).fit(X)
    assert model.labels_.tolist() == [0, 0, 1, 1, 2]
    np.testing.assert_allclose(model.cluster_centers_, [[0.5], [10.5], [20.0]])
    assert model.inertia_ == pytest.approx(1.0)
    assert model.score(X) == pytest.approx(-1.0)
    np.testing.assert_allclose(model.transform([[0.5]]), [[0, 10, 19.5]])


@pytest.mark.filterwarnings("ignore:Only")  # so few numbers do not always fill all clusters
@pytest.mark.parametrize("solver", ["als", "palm4msa"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("K", "D"), [(12, 40), (40, 40), (60, 17)])
def test_the_papers_objective_never_rises(mixture, rng, solver, weighted, K, D):
    X = mixture(1500, D, dtype=np.float64)
    weights = rng.random(1500) if weighted else None
    compression = 3 if solver == "als" else "auto"
    model = QKMeans(K, solver=solver, shortlist=0, compression=compression, sparsity_level=3, max_iter=8, tol=0,
                    random_state=0).fit(X, sample_weight=weights)  # fmt: skip
    check_descent(model.objective_history_)
    V = model.product_.toarray() + model.mean_
    np.testing.assert_allclose(model.cluster_centers_, V)
    np.testing.assert_array_equal(model.labels_, reference.distances(X, V).argmin(axis=1))
    w = np.ones(1500) if weights is None else weights
    np.testing.assert_allclose(model.inertia_, w @ reference.distances(X, V).min(axis=1) ** 2, rtol=1e-9)
    assert model.inertia_ <= model.objective_history_[-1] * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore:Only")
def test_hierarchical_keeps_the_best_iterate(mixture):
    X = mixture(1500, 32, dtype=np.float64)
    model = QKMeans(16, solver="hierarchical", shortlist=0, sparsity_level=3, max_iter=6, tol=0, random_state=0).fit(X)
    assert model.inertia_ <= model.objective_history_[1::2].min() * (1 + 1e-12)
    assert len(model.product_.factors) == 4


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize(
    "options", [{}, {"shortlist": 3}, {"shortlist": 0, "compression": 2}, {"compression": 6}, {"n_clusters": 4}]
)
def test_labels_are_predictions(mixture, options):
    X = mixture()
    model = QKMeans(**{"n_clusters": 100, "random_state": 0, "max_iter": 10} | options).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X[7:8]), model.labels_[7:8])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_allclose(-model.score(X), model.inertia_, rtol=1e-5)


def test_exact_predictions(mixture, monkeypatch):
    monkeypatch.setattr(calibration, "_LEAST_ROWS", 0)
    X = mixture(2000, 60)
    model = QKMeans(300, random_state=0, max_iter=5).fit(X)
    assert model.product_ is not None
    exact = reference.distances(X, model.cluster_centers_).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X, exact=True), exact)
    assert (model.predict(X) == exact).mean() > 0.97
    assert 1 <= model.n_candidates_ < 20


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("options", [{}, {"shortlist": 0, "compression": 2, "n_clusters": 40}, {"compression": 8}])
def test_threads_change_no_bit(mixture, options):
    X = mixture(6000, 50)
    options = {"n_clusters": 80, "random_state": 3, "max_iter": 6} | options
    models = [QKMeans(n_threads=n, **options).fit(X) for n in (1, 2, 4)]
    for other in models[1:]:
        np.testing.assert_array_equal(other.labels_, models[0].labels_)
        np.testing.assert_array_equal(other.cluster_centers_, models[0].cluster_centers_)


def test_weights_count_like_repetition(mixture, rng):
    X = mixture(400, 8, 5, np.float64)
    weights = rng.integers(0, 4, 400)
    init = X[weights > 0][:5]
    weighted = QKMeans(5, init=init).fit(X, sample_weight=weights)
    repeated = QKMeans(5, init=init).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_)
    np.testing.assert_allclose(weighted.score(X, sample_weight=weights), -weighted.inertia_)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, pd.DataFrame, pl.DataFrame, np.asfortranarray])
def test_containers(mixture, container):
    X = mixture(500, 6, 4, np.float64)
    X[X < 1] = 0
    init = X[:4].copy()
    plain = QKMeans(4, init=init).fit(X)
    given = X if container is not pl.DataFrame else {f"x{j}": X[:, j] for j in range(6)}
    model = QKMeans(4, init=init).fit(container(given))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.transform(container(given)), plain.transform(X))
    np.testing.assert_allclose(model.score(container(given)), plain.score(X))


def test_small_integers_are_not_copied_to_float64(rng):
    X = rng.integers(0, 255, (2000, 30), dtype=np.uint8)
    init = X[:10].astype(float)
    model, plain = QKMeans(10, init=init).fit(X), QKMeans(10, init=init).fit(X.astype(np.float64))
    np.testing.assert_allclose(model.inertia_, plain.inertia_, rtol=1e-6)


def test_memory_maps_are_read_only_rows(mixture, tmp_path):
    X = mixture(1000, 10)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        QKMeans(9, random_state=0).fit(mapped).labels_, QKMeans(9, random_state=0).fit_predict(X)
    )


def test_as_a_citizen(mixture):
    X = pd.DataFrame(mixture(600, 5), columns=list("abcde"))
    pipeline = make_pipeline(StandardScaler(), QKMeans(4, random_state=0)).set_output(transform="pandas")
    table = pipeline.fit_transform(X)
    assert list(table.columns) == ["qkmeans0", "qkmeans1", "qkmeans2", "qkmeans3"]
    search = GridSearchCV(QKMeans(random_state=0), {"n_clusters": [2, 5]}, cv=2).fit(X)
    assert search.best_params_ == {"n_clusters": 5}
    assert list(search.best_estimator_.feature_names_in_) == list("abcde")
    with pytest.raises(NotFittedError):
        QKMeans().predict(X)
    with pytest.raises(ValueError, match="feature names"):
        pipeline.predict(X[["a", "b"]])


@pytest.mark.parametrize("K", [5, 150])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_spherical_is_kmeans_of_directions(mixture, rng, K, kind):
    X = mixture(2000, 40, dtype=np.float64)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    scaled = kind(unit * rng.uniform(0.1, 10, (2000, 1)))
    model = QKMeans(K, metric="cosine", init=X[:K], max_iter=30).fit(scaled)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    distances = reference.distances(unit, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(scaled), distances, atol=1e-9)
    np.testing.assert_allclose(model.inertia_, (distances[np.arange(2000), model.labels_] ** 2).sum())
    assert model.inertia_ <= 1.001 * (distances.min(axis=1) ** 2).sum()
    np.testing.assert_array_equal(model.predict(scaled, exact=True), distances.argmin(axis=1))
    np.testing.assert_allclose(model.score(scaled), -model.inertia_)
    for k in np.unique(model.labels_):
        total = unit[model.labels_ == k].sum(axis=0)
        if model.n_iter_ < 30:
            np.testing.assert_allclose(model.cluster_centers_[k], total / np.linalg.norm(total), atol=0.05)
    with pytest.raises(ValueError, match="has no direction"):
        QKMeans(2, metric="cosine").fit([[0.0, 0.0], [1.0, 0.0]])
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="Row 1 of X is zero"):
            method(unit[:2] * [[1.0], [0.0]])
    with pytest.raises(ValueError, match="needs a shortlist"):
        QKMeans(2, metric="cosine", shortlist=0).fit(unit)


def test_many_sparse_rows(rng):
    X = sp.random_array((9000, 30), density=0.2, rng=rng, format="csr", dtype=np.float64)
    init = X[:12].toarray()
    sparse, dense = QKMeans(12, init=init).fit(X), QKMeans(12, init=init).fit(X.toarray())
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_array_equal(sparse.predict(X), sparse.labels_)


def test_exact_predictions_with_a_shortlist_of_given_length(mixture):
    X = mixture(1000, 60)
    model = QKMeans(150, shortlist=1, compression=10, random_state=0, max_iter=5).fit(X)
    exact = reference.distances(X, model.cluster_centers_).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X, exact=True), exact)


def test_a_large_mean_costs_no_accuracy(mixture):
    X = (mixture(2000, 30, dtype=np.float64) + 1e5).astype(np.float32)
    init = X[:40]
    model = QKMeans(40, init=init, max_iter=10).fit(X)
    centred = QKMeans(40, init=init.astype(float) - 1e5, max_iter=10).fit(X.astype(float) - 1e5)
    np.testing.assert_array_equal(model.labels_, centred.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_small_clusters_far_apart(rng):
    X = np.repeat([[0.0, 0.0], [1e6, 1e6]], 50, axis=0) + 1e-4 * rng.standard_normal((100, 2))
    model = QKMeans(2, random_state=0).fit(X)
    direct = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    np.testing.assert_allclose(model.inertia_, direct, rtol=1e-6)


def test_foreign_byte_order(mixture):
    X = mixture(300, 6)
    model = QKMeans(5, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X.astype(">f4")), model.labels_)


# ---- awkward data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shortlist", ["auto", 0, 1])
def test_constant_rows(shortlist):
    with pytest.warns(
        ConvergenceWarning,
        match=r"Number of distinct clusters \(1\) found smaller than n_clusters \(3\)\. Possibly due to dup",
    ):
        model = QKMeans(3, shortlist=shortlist).fit(np.full((50, 4), 7.0))
    assert model.inertia_ == 0
    np.testing.assert_allclose(model.cluster_centers_, 7.0)


def test_as_many_clusters_as_rows(rng):
    X = rng.standard_normal((70, 3))
    model = QKMeans(70, random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(70))
    assert model.inertia_ == pytest.approx(0, abs=1e-12)


def test_all_clusters_have_rows_if_there_are_enough(rng):
    X = np.repeat(rng.standard_normal((30, 4)), 200, axis=0)
    for init in ("k-means++", "random"):
        model = QKMeans(30, init=init, random_state=0).fit(X)
        assert len(np.unique(model.labels_)) == 30
        assert model.inertia_ == pytest.approx(0, abs=1e-9)
    same = np.repeat(X[:1], 30, axis=0)
    assert len(np.unique(QKMeans(30, init=same).fit(X).labels_)) == 30


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_huge_and_tiny_numbers(rng, scale):
    X = rng.standard_normal((300, 6))
    scaled = (X * scale).astype(np.float32)
    init = scaled[:8]
    model = QKMeans(8, init=init).fit(scaled)
    np.testing.assert_array_equal(
        model.labels_, QKMeans(8, init=init / np.float32(scale)).fit(X.astype(np.float32)).labels_
    )
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)
    np.testing.assert_array_equal(model.predict(scaled), model.labels_)


@pytest.mark.parametrize("K", [4, 200])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_rows_too_large_to_compare_are_refused(mixture, K, n):
    model = QKMeans(K, random_state=0, max_iter=3).fit(mixture(1000, 60))
    with pytest.raises(ValueError, match="too large for float32"):
        model.predict(np.full((n, 60), 1e20, np.float32))


@pytest.mark.parametrize("shortlist", ["auto", 1])
def test_squares_that_overflow_are_refused(rng, shortlist):
    X = rng.standard_normal((50, 3))
    with pytest.raises(ValueError, match="overflow float64; scale X"):
        QKMeans(2, shortlist=shortlist).fit(X * 1e160)
    with pytest.raises(ValueError, match="numbers in init overflow"):
        QKMeans(2, shortlist=shortlist, init=np.full((2, 3), 1e300)).fit(X)


def test_empty_clusters_among_many_equal_rows(rng):
    X = np.concatenate([np.zeros((5000, 2)), rng.normal(10, 1, (500, 2))])
    model = QKMeans(3, init=[[0, 0], [0, 0], [10, 10]]).fit(X)
    assert len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({}, np.zeros((3, 2)), "n_samples=3 should be >= n_clusters=8"),
        ({"n_clusters": 0}, None, "n_clusters must be a whole number not below 1"),
        ({"n_clusters": 2.5}, None, "n_clusters must be a whole number"),
        ({"solver": "sgd"}, None, "solver must be one of 'als', 'palm4msa', 'hierarchical', or a callable, got 'sgd'"),
        ({"shortlist": "many"}, None, "shortlist must be a whole number not below 0 or 'auto'"),
        ({"shortlist": -1}, None, "shortlist must be"),
        ({"compression": 0.5}, None, "compression must be a finite number not below 1, or 'auto', got 0.5"),
        ({"compression": "lots"}, None, "compression must be"),
        ({"init": "best"}, None, "init must be 'k-means\\+\\+', 'random', an array or a callable"),
        (
            {"init": np.zeros((8, 3))},
            None,
            r"The shape of the initial centers \(8, 3\) does not match the number of features of the data 2",
        ),
        ({"init": np.full((8, 2), np.nan)}, None, "NaN"),
        ({"tol": -1}, None, "tol must be"),
        ({"max_iter": 0}, None, "max_iter must be"),
        ({"n_init": 0}, None, "n_init must be"),
        ({"n_factors": 0}, None, "n_factors must be"),
        (
            {"n_factors": 10**6},
            None,
            "n_factors must be a whole number from 1 to 64, 'auto', 'paper' or 'journal', got",
        ),
        ({"n_clusters": 2**70}, None, "n_clusters must be a whole number from 1 to 9223372036854775807, got 1180"),
        ({"shortlist": 2**70}, None, "shortlist must be"),
        ({"batch_size": 2**70}, None, "batch_size must be"),
        ({"metric": "x"}, None, "metric must be 'euclidean' or 'cosine', got 'x'"),
        ({"search": "best"}, None, "search must be 'auto', 'none' or 'thorough', got 'best'"),
        ({"search": True}, None, "search must be 'auto', 'none' or 'thorough', got True"),
        ({"verbose": "x"}, None, "verbose must be a whole number not below 0, True or False, got 'x'"),
        ({"sparsity_level": "few"}, None, "sparsity_level must be"),
        ({}, np.array([[1.0, np.nan]] * 20), "contains NaN"),
        ({}, np.array([[1.0, np.inf]] * 20), "contains infinity"),
    ],
)
def test_bad_input(options, X, message):
    X = np.arange(40.0).reshape(20, 2) if X is None else X
    with pytest.raises(ValueError, match=message):
        QKMeans(**options).fit(X)


@pytest.mark.parametrize("weights", [-np.ones(20), np.zeros(20), np.ones(19), np.full(20, np.nan)])
def test_bad_weights(weights):
    with pytest.raises(ValueError, match=r"sample_weight|NaN"):
        QKMeans(2).fit(np.arange(40.0).reshape(20, 2), sample_weight=weights)


def test_compression_out_of_reach_gives_dense_centroids(rng):
    X = rng.standard_normal((100, 3))
    with pytest.warns(UserWarning, match="would leave less than one number per centroid"):
        model = QKMeans(5, compression=50, shortlist=0).fit(X)
    assert model.product_.macs == 15


def test_start_of_the_users_making(mixture):
    X = mixture(500, 6)
    seen = []

    def init(rows, n_clusters, random_state):
        seen.append((rows.shape, n_clusters, random_state))
        return rows[:n_clusters]

    model = QKMeans(5, init=init, n_init=2).fit(X)
    assert len(seen) == 2
    np.testing.assert_array_equal(model.labels_, QKMeans(5, init=X[:5]).fit(X).labels_)


def test_more_runs_are_no_worse(mixture):
    X = mixture(800, 6)
    one, many = (QKMeans(20, init="random", n_init=n, random_state=0).fit(X).inertia_ for n in (1, 6))
    assert many <= one


def test_interrupt_leaves_the_last_iterate(mixture):
    X = mixture(5000, 30)

    def interrupt(iteration, objective):
        if iteration == 3:
            signal.raise_signal(signal.SIGINT)

    model = QKMeans(200, max_iter=10**6, tol=0, search="none", random_state=0, callback=interrupt)
    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_interrupt_between_runs_keeps_the_best_so_far(mixture):
    X = mixture(500, 6)
    calls = []

    def init(rows, n_clusters, random_state):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rows[:n_clusters]

    model = QKMeans(5, init=init, n_init=3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_fit_that_fails_leaves_the_earlier_one(mixture):
    X = mixture(300, 8)
    model = QKMeans(4, random_state=0).fit(X)

    def fail(iteration, objective):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        model.set_params(callback=fail).fit(X[:, :5])
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    fresh = QKMeans(4, callback=fail)
    with pytest.raises(RuntimeError):
        fresh.fit(X)
    assert not hasattr(fresh, "n_features_in_")


def test_a_callback_must_be_callable():
    with pytest.raises(TypeError, match="callback must be callable"):
        QKMeans(2, callback=3).fit(np.arange(10.0)[:, None])


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("options", [{}, {"shortlist": 0, "compression": 4}])
def test_callback_stops(mixture, options):
    seen = []

    def callback(iteration, objective):
        seen.append(objective)
        return iteration == 2

    model = QKMeans(30, callback=callback, tol=0, search="none", random_state=0, **options).fit(mixture())
    assert model.n_iter_ == len(seen) == 2
    assert seen == model.objective_history_[1::2].tolist()


def test_scikit_learn_callbacks(mixture):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

    class Count:
        def __init__(self):
            self.begun, self.ended, self.closed = [], [], False

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            self.ended.append(context.task_name)
            return context.task_name == "iteration" and self.ended.count("iteration") == 3

        def teardown(self, estimator, context):
            self.closed = True

    count = Count()
    model = QKMeans(20, random_state=0, tol=0, search="none").set_callbacks(count).fit(mixture())
    assert model.n_iter_ == 3
    assert count.begun == ["fit", "run", *["iteration"] * 3]
    assert count.ended == [*["iteration"] * 3, "run", "fit"]
    assert count.closed


def test_verbose_says_how_it_goes(mixture, capsys):
    QKMeans(20, verbose=1, max_iter=3, random_state=0).fit(mixture(9000, 5))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Search among 2048 of 9000 rows: ")
    assert any(line.startswith("Iteration 1: objective ") for line in lines)
