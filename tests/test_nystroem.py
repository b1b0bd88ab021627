"""QKNystroem as its users see it, and the mathematics below it."""

import pickle
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from layouts import BITS, WHOLE, layouts, sparse_layouts, unusable
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from quickmeans import InvalidModelError, QKMeans, QKNystroem, load
from quickmeans.data.rows import as_rows
from quickmeans.files import container
from quickmeans.nystroem.compression import compressed
from quickmeans.nystroem.features import root_inverse
from quickmeans.nystroem.structured import Structured
from quickmeans.transform.direct import largest_per_row

KINDS = ["qkmeans", "kmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard"]
KERNELS = ["rbf", "polynomial", "poly", "sigmoid", "linear", "cosine"]


@parametrize_with_checks(
    [QKNystroem(n_components=4, landmarks=kind) for kind in KINDS]
    + [QKNystroem(kernel="polynomial", n_components=3), QKNystroem(kernel="cosine", n_components=3)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def points(rng):
    """Rows around centres in a subspace."""

    def make(n=400, D=30, dtype=np.float64):
        centers = rng.standard_normal((20, 6)) @ rng.standard_normal((6, D))
        return (centers[rng.integers(20, size=n)] + 0.5 * rng.standard_normal((n, D)) + 1).astype(dtype)

    return make


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["uniform", "qkmeans", "hadamard"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_against_the_formulas(points, kernel, kind):
    X = points()
    model = QKNystroem(kernel, gamma=0.02, coef0=0.5, n_components=25, landmarks=kind, random_state=0).fit(X)
    options = {} if kernel in ("linear", "cosine") else {"gamma": 0.02}
    options |= {"coef0": 0.5} if kernel in ("polynomial", "poly", "sigmoid") else {}
    C = pairwise_kernels(X, model.components_, metric=kernel, **options)
    np.testing.assert_allclose(model.kernel_row(X), C, rtol=1e-9, atol=1e-9 * np.abs(C).max())
    W = pairwise_kernels(model.components_, metric=kernel, **options)
    expected = reference.nystroem_features(C, W)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-5 * np.abs(expected).max())


def test_same_features_as_scikit_learn_with_the_same_landmarks(points):
    X = points()
    U = X[::20]
    theirs = Nystroem(gamma=0.1, n_components=len(U)).fit(U)
    ours = QKNystroem(gamma=0.1, landmarks=U).fit(X)
    np.testing.assert_allclose(ours.approximate_kernel(X), theirs.transform(X) @ theirs.transform(X).T, atol=1e-9)
    np.testing.assert_allclose(ours.components_, U)


def test_in_hand():
    """Linear kernel, landmarks (2, 0) and (0, 1): W = diag(4, 1), features are the coordinates."""
    X = np.array([[1.0, 3.0], [-2.0, 0.5], [4.0, 4.0]])
    model = QKNystroem("linear", landmarks=[[2.0, 0.0], [0.0, 1.0]]).fit(X)
    np.testing.assert_allclose(model.normalization_, [[0.5, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(model.kernel_row(X), X * [2, 1], atol=1e-12)
    np.testing.assert_allclose(model.transform(X), X, atol=1e-12)
    assert model.approximation_error(X) == pytest.approx(0, abs=1e-12)


def test_a_pair_of_functions_is_a_kernel(points):
    X = points()

    def f(rows):
        return np.exp(-0.1 * (rows**2).sum(axis=1))

    given, rbf = (
        QKNystroem(kernel, gamma=0.1, n_components=30, landmarks="uniform", random_state=0).fit(X)
        for kernel in ((f, lambda t: np.exp(0.2 * t)), "rbf")
    )
    np.testing.assert_allclose(given.kernel_row(X), rbf.kernel_row(X), rtol=1e-8)
    np.testing.assert_allclose(given.approximate_kernel(X), rbf.approximate_kernel(X), atol=1e-6)
    plain = QKNystroem((None, lambda t: t), n_components=30, landmarks="uniform", random_state=0).fit(X)
    np.testing.assert_allclose(plain.kernel_row(X), X @ plain.components_.T, atol=1e-9)


def test_gammas(points):
    X = points()
    distances = reference.distances(X, X) ** 2
    for gamma, expected in {None: 1 / 30, "scale": 1 / (30 * X.var()), "mean-distance": 1 / distances.mean()}.items():
        for rows in (X, sp.csr_array(X)):
            model = QKNystroem(gamma=gamma, n_components=5, landmarks="uniform").fit(rows)
            assert model.gamma_ == pytest.approx(expected)
    assert QKNystroem(gamma="scale", n_components=2).fit(np.ones((5, 3))).gamma_ == 1


# ---- landmarks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_with_as_many_landmarks_as_rows_or_fewer(points, kind):
    X = points(200)
    errors = [
        QKNystroem(gamma="mean-distance", n_components=K, landmarks=kind, random_state=0).fit(X).approximation_error(X)
        for K in (2, 20, 200)
    ]
    assert errors[0] > errors[1] > errors[2]
    if kind in ("uniform", "leverage"):
        assert errors[2] < 1e-6


@pytest.mark.parametrize("kind", ["uniform", "leverage"])
def test_landmarks_that_are_rows(points, kind):
    X = points()
    model = QKNystroem(n_components=50, landmarks=kind, random_state=3).fit(X)
    assert len(np.unique(model.component_indices_)) == 50
    np.testing.assert_allclose(model.components_, X[model.component_indices_])
    assert QKNystroem(n_components=5, landmarks="kmeans").fit(X).component_indices_ is None


def test_leverage_finds_the_rows_that_matter(rng):
    """3000 rows at one place and 12 far from everything: uniform sampling misses those, leverage scores do not."""
    X = np.concatenate([0.01 * rng.standard_normal((3000, 12)), 10 * np.eye(12)])
    model = QKNystroem(gamma=0.1, n_components=40, landmarks="leverage", random_state=0).fit(X)
    assert len(set(range(3000, 3012)) & set(model.component_indices_)) >= 10
    uniform = QKNystroem(gamma=0.1, n_components=40, landmarks="uniform", random_state=0).fit(X)
    assert len(set(range(3000, 3012)) & set(uniform.component_indices_)) < 6


@pytest.mark.parametrize("name", ["hadamard", "haar"])
@pytest.mark.parametrize("K", [3, 16, 40])
def test_structured_landmarks_are_rows_of_the_transform_times_a_diagonal(rng, name, K):
    structure = Structured(name, K, 13, rng=np.random.RandomState(0))
    vectors = rng.standard_normal((structure.n_blocks, 13))
    rows = structure.product(vectors, np.float64).toarray()
    assert rows.shape == (K, 13)
    np.testing.assert_allclose(rows, structure.signs * vectors[structure.block], atol=1e-12)
    full = reference.product(structure.transform.factors)[:, :13]
    for signs in structure.signs:
        ratios = full @ signs / (np.linalg.norm(full, axis=1) * np.linalg.norm(signs) + 1e-300)
        assert ratios.max() == pytest.approx(1)
    np.testing.assert_allclose(np.abs(structure.signs).max(axis=1), 1)


def test_learned_structure_lowers_the_objective(points):
    X = points(500, 20)
    mean = X.mean(axis=0)
    structure = Structured("hadamard", 24, 20, np.random.RandomState(0))
    start = X[:1] - mean
    objectives = [
        (reference.distances(X - mean, product.toarray()).min(axis=1) ** 2).sum()
        for product in (structure.product(start, np.float64), structure.learned(as_rows(X), mean, start, np.float64, 1))
    ]
    assert objectives[1] < 0.9 * objectives[0]
    model = QKNystroem(n_components=24, landmarks="kmeans-hadamard", random_state=0).fit(sp.csr_array(X))
    again = QKNystroem(n_components=24, landmarks="kmeans-hadamard", random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, again.components_, atol=1e-9)


def test_kmeans_landmarks_beat_uniform_ones(points):
    X = points(1000)
    errors = {
        kind: np.mean([
            QKNystroem(gamma="mean-distance", n_components=20, landmarks=kind, random_state=seed).fit(X)
            .approximation_error(X) for seed in range(3)
        ])
        for kind in ("kmeans", "uniform", "qkmeans")
    }  # fmt: skip
    assert errors["kmeans"] < 0.9 * errors["uniform"]
    assert errors["qkmeans"] <= 1.03 * errors["kmeans"]


def test_compression_is_the_users_or_found(points):
    X = points(800, 200)
    options = {"gamma": "mean-distance", "n_components": 60, "random_state": 0}
    dense = QKNystroem(landmarks="kmeans", **options).fit(X)
    found = QKNystroem(**options).fit(X)
    asked = QKNystroem(compression=8, **options).fit(X)
    assert asked.product_.macs <= 60 * 200 / 8
    assert found.compression_ == 60 * 200 / found.product_.macs >= 2.5
    assert dense.compression_ == 1
    assert found.approximation_error(X) <= 1.03 * dense.approximation_error(X)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_landmarks_of_a_kmeans_model(points):
    X = points(600, 40)
    small = QKMeans(30, shortlist=0, compression=5, max_iter=5, random_state=0).fit(X)
    model = QKNystroem(landmarks=small).fit(X)
    assert model.product_ == small.product_
    np.testing.assert_allclose(model.components_, small.cluster_centers_)
    exact = QKMeans(30, max_iter=5, random_state=0)
    np.testing.assert_allclose(
        QKNystroem(landmarks=exact, compression=1).fit(X).components_, exact.fit(X).cluster_centers_
    )
    with pytest.raises(ValueError, match="fitted to 40 features, but X has 39; they must be as many"):
        QKNystroem(landmarks=small).fit(X[:, 1:])


def test_compressed_points_where_rows_have_nothing_in_common(rng):
    """Equal shares of the entries of every row, where least squares would starve some."""
    points = rng.standard_normal((100, 300)) * np.where(np.arange(100) < 90, 1.0, 1e-3)[:, None]

    def excess(product):
        kept = (product.toarray() != 0).sum(axis=1)
        return 1.0 if kept.max() == 300 or (kept > 0).all() else 2.0

    judge = SimpleNamespace(excess=excess, refined=lambda product: product)
    product = compressed(points, np.ones(100), "auto", judge, np.dtype(np.float32))
    assert product.macs == 100 * (300 // 40)
    assert product.dtype == np.float32
    assert compressed(points, np.ones(100), 1e6, judge, np.dtype(np.float32)).nnz == 30000  # no room: as they are


def test_largest_per_row():
    U = np.array([[1.0, -5.0, 2.0, 0.5], [0.1, 0.2, -0.4, 0.3]])
    np.testing.assert_array_equal(largest_per_row(U, 4)[0], [[0, -5, 2, 0], [0, 0, -0.4, 0.3]])
    np.testing.assert_array_equal(largest_per_row(U, 3)[0], [[0, -5, 0, 0], [0, 0, -0.4, 0]])
    assert largest_per_row(U, 1) is None


# ---- normalisation and error ----------------------------------------------------------------------------------------


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_root_inverse_is_one(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n + 2))
    W = A @ A.T
    R = root_inverse(W, np.float64)
    np.testing.assert_allclose(R, R.T)
    np.testing.assert_allclose(R @ W @ R, np.eye(n), atol=1e-6 * np.linalg.cond(W) ** 0.5)


def test_root_inverse_of_singular_and_indefinite_matrices():
    np.testing.assert_allclose(root_inverse(np.diag([4.0, -9.0]), np.float64), np.diag([1 / 2, 1 / 3]))
    assert np.isfinite(root_inverse(np.zeros((3, 3)), np.float64)).all()
    floor = np.finfo(np.float32).eps
    np.testing.assert_allclose(root_inverse(np.diag([1.0, 0.0]), np.float32), np.diag([1, floor**-0.5]))


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_approximation_error_is_that_of_the_matrices(points, kernel):
    X = points(150)
    model = QKNystroem(kernel, gamma=0.05, n_components=10, random_state=0).fit(X)
    options = {"gamma": 0.05} | ({"coef0": 1} if kernel == "polynomial" else {})
    K = pairwise_kernels(X, metric=kernel, **options)
    expected = np.linalg.norm(K - model.approximate_kernel(X)) / np.linalg.norm(K)
    assert model.approximation_error(X) == pytest.approx(expected, rel=1e-6)


def test_approximation_error_of_many_rows_is_estimated(points, monkeypatch):
    X = points(3000)
    model = QKNystroem(gamma="mean-distance", n_components=15, landmarks="uniform", random_state=0).fit(X)
    exact = model.approximation_error(X)
    monkeypatch.setattr("quickmeans.kernel_approximation._MOST_ROWS", 1000)
    assert model.approximation_error(X) == pytest.approx(exact, rel=0.05)
    assert model.approximation_error(X) != exact


def test_approximate_kernel_between_two_sets(points):
    X = points(120)
    model = QKNystroem(gamma=0.05, n_components=20, random_state=0).fit(X)
    both = model.approximate_kernel(X[:30], X[30:])
    np.testing.assert_allclose(both, model.approximate_kernel(X)[:30, 30:], atol=1e-9)
    at_landmarks = model.approximate_kernel(X, model.components_)
    np.testing.assert_allclose(at_landmarks, model.kernel_row(X), atol=1e-6)


# ---- as a citizen ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_is_kept_and_close_to_float64(points, kernel):
    X = points(600)
    options = {"gamma": 0.01, "n_components": 40, "landmarks": X[:40]}
    single = QKNystroem(kernel, **options).fit(X.astype(np.float32))
    double = QKNystroem(kernel, **options).fit(X)
    for method in ("transform", "kernel_row", "approximate_kernel"):
        assert getattr(single, method)(X[:5].astype(np.float32)).dtype == np.float32
        assert getattr(double, method)(X[:5]).dtype == np.float64
    assert single.components_.dtype == single.normalization_.dtype == np.float32
    K = double.approximate_kernel(X)
    np.testing.assert_allclose(single.approximate_kernel(X.astype(np.float32)), K, atol=3e-3 * np.abs(K).max())


LAYOUTS = [(rows, name, variant) for rows in (WHOLE, BITS) for name, variant in (*layouts(rows), *sparse_layouts(rows))]


@pytest.mark.parametrize(("rows", "name", "variant"), LAYOUTS, ids=[name for _, name, _ in LAYOUTS])
def test_layouts_and_types(rows, name, variant):
    options = {"gamma": "scale", "n_components": 5, "random_state": 0}
    model, other = QKNystroem(**options).fit(rows), QKNystroem(**options).fit(variant)
    single = getattr(variant, "dtype", None) in (np.dtype("<f4"), np.dtype(">f4"))
    close = {"rtol": 1e-3, "atol": 1e-4} if single else {"rtol": 1e-8, "atol": 1e-9}
    for method in ("transform", "kernel_row", "approximate_kernel", "approximation_error"):
        expected, got = getattr(model, method)(rows), getattr(other, method)(variant)
        np.testing.assert_allclose(got, expected, **close)
        assert method == "approximation_error" or got.dtype == (np.float32 if single else np.float64)
    between = other.approximate_kernel(variant, variant)
    np.testing.assert_allclose(between, model.approximate_kernel(rows), **close)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, np.asfortranarray])
def test_every_kind_of_landmarks_in_other_layouts(points, kind, form):
    X = points(700)
    X[X < 0.5] = 0
    model, other = (
        QKNystroem(gamma=0.05, n_components=20, landmarks=kind, random_state=0).fit(rows) for rows in (X, form(X))
    )
    np.testing.assert_allclose(other.transform(form(X)), model.transform(X), atol=1e-8)


@pytest.mark.parametrize(("name", "bad", "message"), list(unusable(WHOLE)))
def test_what_is_no_matrix_of_numbers(name, bad, message):
    model = QKNystroem(n_components=3).fit(WHOLE)
    for use in (QKNystroem().fit, model.transform, model.kernel_row, model.approximate_kernel):
        with pytest.raises(ValueError, match=message):
            use(bad)


def test_the_mean_of_single_precision_rows_is_summed_in_double_precision(rng):
    X = rng.standard_normal((60000, 3)).astype(np.float32) + 1
    dense, sparse = (QKNystroem(n_components=2, landmarks="uniform").fit(rows) for rows in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(sparse.mean_, dense.mean_)
    np.testing.assert_allclose(dense.mean_, X.mean(axis=0, dtype=np.float64), rtol=1e-7)


def test_the_number_of_threads_changes_nothing(points):
    X = points(3000, dtype=np.float32)
    models = [QKNystroem(gamma=0.05, n_components=30, random_state=0, n_threads=n).fit(X) for n in (1, 2, 7)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.transform(X), models[0].transform(X))


def test_memory_beyond_the_output_is_that_of_blocks(points):
    X = points(40000, 20, np.float32)
    model = QKNystroem(gamma=0.05, n_components=50, landmarks="uniform", random_state=0, n_threads=2).fit(X)
    tracemalloc.start()
    out = model.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes + 2e6


def test_a_pipeline_out_of_the_box():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(QKNystroem(gamma="scale", n_components=80, random_state=0), LinearSVC())
    assert model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9
    search = GridSearchCV(model, {"qknystroem__n_components": [2, 40]}, cv=2).fit(X, y)
    assert search.best_params_ == {"qknystroem__n_components": 40}
    table = QKNystroem(n_components=3).set_output(transform="pandas").fit_transform(X)
    assert list(table.columns) == ["qknystroem0", "qknystroem1", "qknystroem2"]


def test_pickle_and_parameters_changed_after_fitting(points):
    X = points()
    model = QKNystroem("polynomial", n_components=12, random_state=0).fit(X)
    before = model.transform(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), before)
    np.testing.assert_array_equal(model.set_params(gamma=99.0, degree=7).transform(X), before)


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", ["qkmeans", "uniform", "haar"])
def test_save_and_load(points, tmp_path, kernel, kind):
    X = pd.DataFrame(points(300, 40, np.float32), columns=[f"x{j}" for j in range(40)])
    model = QKNystroem(kernel, gamma="scale", coef0=0.5, n_components=20, landmarks=kind, random_state=0).fit(X)
    model.set_params(degree=5).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is QKNystroem
    assert loaded.get_params() == model.get_params()
    assert list(loaded.feature_names_in_) == list(X.columns)
    for method in ("transform", "kernel_row", "approximate_kernel"):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.component_indices_, model.component_indices_)
    assert loaded.gamma_ == model.gamma_


def test_what_cannot_be_stored(points, tmp_path):
    X = points()
    with pytest.raises(ValueError, match="pair of functions cannot be stored"):
        QKNystroem((None, lambda t: t), n_components=3).fit(X).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    QKNystroem(landmarks=X[:3]).fit(X).save(tmp_path / "model")
    assert load(tmp_path / "model").landmarks == "qkmeans"
    with pytest.raises(NotFittedError):
        QKNystroem().save(tmp_path / "model")


def test_damaged_files(points, tmp_path):
    path = tmp_path / "model"
    QKNystroem(n_components=4, landmarks="uniform").fit(points(50, 5)).save(path)
    data = path.read_bytes()
    for n in range(0, len(data), 97):
        path.write_bytes(data[:n])
        with pytest.raises(InvalidModelError):
            load(path)
        path.write_bytes(data[:n] + bytes([data[n] ^ 1]) + data[n + 1 :])
        with pytest.raises(InvalidModelError):
            load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": -1.0}, "gamma must be at least"),
        ({"gamma": "scale"}, "gamma must be a finite float"),
        ({"fitted_kernel": "laplacian"}, "fitted_kernel must be one of 'rbf'"),
        ({"fitted_degree": 0}, "fitted_degree must be at least 1"),
        ({"fitted_degree": "3"}, "fitted_degree must be a finite float"),
        ({"n_factors": 0}, "there must be factors"),
        ({"parameters": {"landmarks": 3}}, "landmarks must be a string"),
        ({"parameters": {"gamme": 3}}, "knows no parameter 'gamme'"),
        ({"normalization": np.eye(3)}, r"normalization must have shape \(4, 4\)"),
        ({"normalization": np.full((4, 4), np.nan)}, "normalization must be finite"),
        ({"mean": np.full(5, np.inf)}, "mean must be finite"),
        ({"component_indices": np.arange(3, dtype=np.uint8)}, "component_indices must name 4 rows"),
        ({"extra": np.eye(2)}, "must not have a tensor 'extra'"),
    ],
)
def test_files_with_wrong_contents(points, tmp_path, change, message):
    path = tmp_path / "model"
    QKNystroem(n_components=4, landmarks="uniform").fit(points(50, 5)).save(path)
    state = container.read(path)
    for name, value in change.items():
        (state.tensors if isinstance(value, np.ndarray) else state.facts)[name] = value
    container.write(path, state)
    with pytest.raises(InvalidModelError, match=message):
        load(path)


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "laplacian"}, "kernel must be one of 'rbf', 'polynomial', .* pair .* got 'laplacian'"),
        ({"kernel": "precomputed"}, "kernel must be one of"),
        ({"kernel": np.dot}, "kernel must be one of"),
        ({"kernel": (np.sum, 3)}, "kernel must be one of"),
        ({"gamma": 0}, "gamma must be a positive number, 'scale', 'mean-distance' or None, got 0"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"gamma": np.inf}, "gamma must be"),
        ({"gamma": "median"}, "gamma must be"),
        ({"degree": 0}, "degree must be a finite number not below 1, got 0"),
        ({"degree": np.inf}, "degree must be"),
        ({"degree": True}, "degree must be"),
        ({"kernel": "poly", "degree": 1.5, "coef0": -1e9}, r"degree 1.5 has no values where .* is negative; take"),
        ({"coef0": np.nan}, "coef0 must be a finite number, got nan"),
        ({"n_components": 0}, "n_components must be a whole number not below 1, got 0"),
        ({"landmarks": "random"}, "landmarks must be one of 'qkmeans', .* an array or a QKMeans, got 'random'"),
        ({"landmarks": None}, "landmarks must be one of 'qkmeans', .* an array or a QKMeans, got None"),
        ({"landmarks": QKMeans}, "landmarks must be one of"),
        ({"landmarks": [1.0, 2.0]}, "landmarks must be one of"),
        ({"landmarks": np.ones((0, 2))}, "landmarks must be one of"),
        ({"landmarks": np.ones((3, 5))}, "landmarks has 5 columns, but X has 2; they must be as many"),
        ({"landmarks": np.full((3, 2), np.nan)}, "landmarks contains NaN"),
        ({"compression": 0.5}, "compression must be a finite number not below 1, or 'auto', got 0.5"),
        ({"compression": np.ones(2)}, "compression must be"),
        ({"kernel": (lambda X: X, lambda t: t)}, r"f must return one number per row, shape \(\d+,\), got shape"),
        ({"kernel": (None, lambda t: t[0])}, "g must return an array of the shape it is given"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        QKNystroem(**{"n_components": 3} | options).fit(np.arange(40.0).reshape(20, 2))


def test_wrong_rows_at_transform(points):
    X = points()
    model = QKNystroem(n_components=5)
    with pytest.raises(NotFittedError):
        model.transform(X)
    model.fit(X)
    for method in (model.transform, model.kernel_row, model.approximation_error):
        with pytest.raises(ValueError, match="X has 29 features, but QKNystroem is expecting 30 features"):
            method(X[:, 1:])
        with pytest.raises(ValueError, match="contains NaN"):
            method(np.where(X > 2, np.nan, X))


@pytest.mark.parametrize("options", [{"landmarks": np.ones((2, 7))}, {"kernel": (None, lambda t: t[0])}])
def test_a_failed_fit_leaves_the_earlier_one(points, options):
    X = points(100, 5)
    model = QKNystroem(n_components=4, random_state=0).fit(X)
    before, state = model.transform(X), dict(vars(model))
    with pytest.raises(ValueError, match="must"):
        model.set_params(**options).fit(X[:, :4])
    np.testing.assert_array_equal(model.transform(X), before)
    model.set_params(landmarks="qkmeans", kernel="rbf")
    assert vars(model) == state
    fresh = QKNystroem(**options)
    with pytest.raises(ValueError, match="must"):
        fresh.fit(X)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
