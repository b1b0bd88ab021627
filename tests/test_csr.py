"""Rows in CSR form: kernels, iterations, starts and estimators that never make them dense."""

import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from csr_matrices import random_rows, rows_of, topics
from hypothesis import given
from hypothesis import strategies as st

from quickmeans import QKMeans, kernels
from quickmeans.data import sparse_rows
from quickmeans.data.memory_rows import ArrayRows
from quickmeans.data.sparse_rows import SparseRows
from quickmeans.kmeans.settings import Settings

INDEX, VALUE = (np.int32, np.int64), (np.float32, np.float64)


@pytest.fixture
def sparsely(monkeypatch):
    """Small matrices take the way of large ones."""
    monkeypatch.setattr(sparse_rows, "_FEW_ENTRIES", 0)


def clusters_of(X, centers, *, weights=None, spherical=False, n_threads=1, dtype=None, index=np.int32):
    """Native clusters of rows that start from centers."""
    R = rows_of(X, index)
    dense = X.toarray().astype(np.float64)
    w = np.ones(len(dense)) if weights is None else weights
    mean = np.zeros(dense.shape[1]) if spherical else np.average(dense, axis=0, weights=w)
    norms = R.norms(mean, n_threads)
    return mean, kernels.CsrClusters(
        R,
        centers - mean,
        mean=mean,
        norms=norms,
        weights=weights,
        sum_weights=w / np.sqrt(norms) if spherical else weights,
        scatter=float(w.sum() if spherical else w @ norms),
        spherical=spherical,
        dtype=np.dtype(dtype or R.dtype),
        n_threads=n_threads,
    )


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("dtype", VALUE)
def test_a_worked_example(isa, index, dtype):
    X = np.array([[3.0, 0, 0, 4], [0, 0, 0, 0], [0, 2, 0, 0]], dtype)
    centers = np.array([[3.0, 0, 0, 3], [0, 1, 0, 0]])
    R = rows_of(X, index)
    mean, squares = R.moments(None)
    np.testing.assert_allclose(mean, [1, 2 / 3, 0, 4 / 3])
    np.testing.assert_allclose(squares, [6, 8 / 3, 0, 32 / 3])
    np.testing.assert_allclose(R.norms(np.zeros(4), 1), [25, 0, 4])
    np.testing.assert_allclose(R.norms(mean, 1), [4 + 4 / 9 + 64 / 9, 1 + 4 / 9 + 16 / 9, 1 + 16 / 9 + 16 / 9])
    table = kernels.CsrCenters(centers.astype(dtype), -(centers**2).sum(axis=1) / 2, 1)
    labels, bad = R.nearest(table, 1)
    assert labels.tolist() == [0, 1, 1]
    assert bad == -1
    options = {"spherical": False, "n_threads": 1}
    zero, norms = np.zeros(4), R.norms(np.zeros(4), 1)
    np.testing.assert_allclose(R.own_squares(labels, centers, zero, norms, **options), [1, 1, 1])
    expected = [[1, 26**0.5], [18**0.5, 1], [22**0.5, 1]]
    np.testing.assert_allclose(R.distances(centers, zero, norms, np.float64, **options), expected)
    chosen = R.seed(np.arange(3), np.ones(3), 0, np.full((3, 1), 0.999), 1)
    assert chosen.tolist() == [0, 2, 1], "the second is drawn among 25 and 29, the third is the one that is left"


@given(st.integers(0, 2**32 - 1), st.sampled_from(INDEX), st.sampled_from(VALUE), st.integers(1, 130), st.booleans())
def test_kernels_agree_with_numpy(isa, seed, index, dtype, K, spherical):
    rng = np.random.default_rng(seed)
    X = random_rows(rng, 80, 40, 0.3, dtype)
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr))]) if spherical else X
    dense, R, w = X.toarray().astype(np.float64), rows_of(X, index), rng.integers(0, 3, X.shape[0]).astype(float)
    w[0] = 1
    mean, squares = R.moments(w)
    np.testing.assert_allclose(mean, np.average(dense, axis=0, weights=w), atol=1e-13)
    np.testing.assert_allclose(squares, w @ (dense - mean) ** 2, atol=1e-11)
    mean = np.zeros(40) if spherical else mean
    norms = R.norms(mean, 1)
    np.testing.assert_allclose(norms, ((dense - mean) ** 2).sum(axis=1), rtol=1e-12)
    centers = rng.standard_normal((K, 40))
    centers[0] = dense[0] / np.linalg.norm(dense[0]) if spherical else dense[0] - mean  # a distance of zero
    Y = dense / np.linalg.norm(dense, axis=1, keepdims=True) if spherical else dense - mean
    expected = reference.distances(Y, centers)
    options = {"spherical": spherical, "n_threads": 1}
    np.testing.assert_allclose(R.distances(centers, mean, norms, np.float64, **options), expected, atol=1e-12)
    offset = -(centers**2).sum(axis=1) / 2 - (np.zeros(K) if spherical else centers @ mean)
    if not spherical:
        labels, bad = R.nearest(kernels.CsrCenters(centers, offset, 1), 1)
        assert bad == -1
        np.testing.assert_array_equal(labels, expected.argmin(axis=1))
    labels = rng.integers(0, K, len(dense)).astype(np.int32)
    own = expected[np.arange(len(dense)), labels] ** 2
    np.testing.assert_allclose(R.own_squares(labels, centers, mean, norms, **options), own, atol=1e-13)


@pytest.mark.parametrize("options", [{}, {"weights": True}, {"spherical": True}, {"dtype": np.float64}])
@pytest.mark.parametrize("dtype", VALUE)
def test_iterations_are_those_of_lloyd(rng, isa, dtype, options):
    X = random_rows(rng, 600, 50, 0.2, dtype)
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr))])
    dense, K = X.toarray().astype(np.float64), 21
    w = rng.random(len(dense)) if "weights" in options else np.ones(len(dense))
    options = options | {"weights": w if "weights" in options else None}
    Y = dense / np.linalg.norm(dense, axis=1, keepdims=True) if "spherical" in options else dense
    U = Y[10 : 10 + K].copy()
    mean, clusters = clusters_of(X, U, **options)
    for _ in range(12):
        t = reference.distances(Y, U).argmin(axis=1)
        assigned = w @ ((Y - U[t]) ** 2).sum(axis=1)
        assert len(np.unique(t)) == K
        U = np.stack([np.average(Y[t == k], axis=0, weights=w[t == k]) for k in range(K)])
        U = U / np.linalg.norm(U, axis=1, keepdims=True) if "spherical" in options else U
        assert clusters.iterate(0.0) == -1
        np.testing.assert_allclose(clusters.assigned, assigned, rtol=1e-6)
        np.testing.assert_allclose(clusters.objective, w @ ((Y - U[t]) ** 2).sum(axis=1), rtol=1e-6)
        np.testing.assert_allclose(clusters.centers() + mean, U, atol=1e-6)
    assert clusters.n_compared < len(dense), "bounds prove some labels"


def test_empty_clusters_get_far_rows(rng):
    X = random_rows(rng, 300, 40)
    _, clusters = clusters_of(X, np.repeat(X[:1].toarray(), 25, axis=0))
    values = [(clusters.iterate(0.0), clusters.assigned, clusters.objective)[1:] for _ in range(5)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(np.ravel(values)))
    assert len(np.unique(clusters.centers(), axis=0)) == 25
    same = sp.csr_array(np.repeat([[1.0, 0, 2]], 8, axis=0))
    _, clusters = clusters_of(same, np.array([[1.0, 0, 2], [9, 9, 9]]))
    clusters.iterate(0.0)
    assert clusters.converged or clusters.iterate(0.0) == -1
    assert clusters.objective == 0


def test_equal_rows_are_drawn_once(rng):
    X = sp.csr_array(np.repeat(rng.standard_normal((3, 10)), 5, axis=0))
    chosen = rows_of(X).seed(np.arange(15), np.ones(15), 4, rng.random((8, 3)), 1)
    assert sorted(chosen // 5) == [0, 1, 2]


@pytest.mark.parametrize(
    ("starts", "columns", "n_columns", "message"),
    [
        ([0, 1, 2], [0, 3], 3, "column 3, but it has 3 columns"),
        ([0, 1, 2], [0, -1], 3, "column -1, but it has 3 columns"),
        ([1, 1, 2], [0, 1], 3, "must begin with 0"),
        ([0, 2, 1], [0, 1], 3, "must not fall"),
        ([0, 1, 3], [0, 1], 3, "must not fall, and not exceed"),
        ([], [0, 1], 3, "wrong sizes"),
        ([0, 1, 2], [0], 3, "wrong sizes"),
        ([0, 1, 2], [0, 1], 0, "wrong number of columns"),
    ],
)
@pytest.mark.parametrize("index", INDEX)
def test_wrong_indices_are_refused(index, starts, columns, n_columns, message):
    with pytest.raises(ValueError, match=message):
        kernels.CsrRows(np.array(starts, index), np.array(columns, index), np.ones(2), n_columns)


def test_wrong_sizes_are_refused(rng):
    R = rows_of(random_rows(rng, 20, 6))
    table = kernels.CsrCenters(np.ones((2, 5)), np.zeros(2), 1)
    norms, options = R.norms(np.zeros(6), 1), {"spherical": False, "n_threads": 1}
    for call in (
        lambda: R.nearest(table, 1),
        lambda: R.nearest(kernels.CsrCenters(np.ones((2, 6), np.float32), np.zeros(2), 1), 1),
        lambda: kernels.CsrCenters(np.ones((2, 6)), np.zeros(3), 1),
        lambda: R.moments(np.ones(19)),
        lambda: R.norms(np.zeros(5), 1),
        lambda: R.own_squares(np.full(20, 2, np.int32), np.ones((2, 6)), np.zeros(6), norms, **options),
        lambda: R.distances(np.ones((2, 7)), np.zeros(6), norms, np.float64, **options),
        lambda: R.seed(np.array([0, 20]), np.ones(2), 0, np.zeros((2, 1)), 1),
        lambda: R.seed(np.arange(2), np.ones(2), 2, np.zeros((2, 1)), 1),
        lambda: rows_of_duplicates().moments(None),
    ):
        with pytest.raises(ValueError, match=r"wrong|do not fit|need|range|two entries"):
            call()


def rows_of_duplicates():
    R = kernels.CsrRows(np.array([0, 2], np.int32), np.array([1, 1], np.int32), np.ones(2), 3)
    assert not R.distinct
    return R


# ---- the estimator --------------------------------------------------------------------------------------------------


def disordered(X, rng):
    """The same matrix with the entries of every row in another order, and each entry in two parts."""
    data, columns, starts = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr
    order = np.concatenate([b + rng.permutation(e - b) for b, e in pairwise(starts)]) if len(data) else []
    return sp.csr_array((data[order], columns[order], starts), shape=X.shape)


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int64])
def test_fits_agree_with_those_of_dense_rows(sparsely, rng, dtype, weighted, spherical):
    X = random_rows(rng, 900, 30, 0.3)
    X.data = np.round(4 * X.data) + 5 if np.dtype(dtype).kind == "i" else X.data
    X = sp.csr_array(X.astype(dtype))
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr))]) if spherical else X
    w = rng.random(X.shape[0]) if weighted else None
    init = X[20:32].toarray() + 0.01 * rng.random((12, 30))  # no distances are equal
    options = {"init": init, "metric": "cosine" if spherical else "euclidean", "max_iter": 30}
    model, dense = (QKMeans(12, **options).fit(rows, sample_weight=w) for rows in (X, X.toarray()))
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    np.testing.assert_allclose(model.cluster_centers_, dense.cluster_centers_, atol=1e-5)
    assert model.cluster_centers_.dtype == dense.cluster_centers_.dtype
    np.testing.assert_allclose(model.inertia_, dense.inertia_, rtol=1e-6)
    np.testing.assert_allclose(model.weight_in_clusters_, dense.weight_in_clusters_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(np.concatenate(list(model.iter_labels(X))), model.labels_)
    np.testing.assert_allclose(model.transform(X), model.transform(X.toarray()), atol=1e-6)
    np.testing.assert_allclose(model.score(X, sample_weight=w), -model.inertia_)
    squares = np.concatenate([squares for _, _, squares in model.assign(X)])
    np.testing.assert_allclose(squares.sum() if w is None else squares @ w, model.inertia_)
    if np.dtype(dtype).kind == "f":
        other = disordered(X, rng)
        np.testing.assert_array_equal(QKMeans(12, **options).fit(other, sample_weight=w).labels_, model.labels_)
        np.testing.assert_allclose(model.transform(other), model.transform(X), atol=1e-6)
        assert not other.has_canonical_format, "the matrix of the user stays as it was"


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("options", [{}, {"search": "none"}, {"metric": "cosine"}])
def test_the_number_of_threads_changes_no_bit(rng, init, options):
    X, _ = topics(rng)
    one, three = (QKMeans(12, init=init, random_state=3, n_threads=n, **options).fit(X) for n in (1, 3))
    np.testing.assert_array_equal(one.labels_, three.labels_)
    assert one.cluster_centers_.tobytes() == three.cluster_centers_.tobytes()
    assert one.inertia_ == three.inertia_
    assert one.objective_history_.tolist() == three.objective_history_.tolist()
    one.n_threads, three.n_threads = 3, 1
    assert one.transform(X).tobytes() == three.transform(X).tobytes()


@pytest.mark.parametrize("spherical", [False, True])
def test_topics_are_found(rng, spherical):
    X, topic = topics(rng)
    model = QKMeans(12, random_state=0, metric="cosine" if spherical else "euclidean").fit(X)
    for k in range(12):
        assert np.bincount(topic[model.labels_ == k]).max() > 0.95 * np.count_nonzero(model.labels_ == k)
    history = model.objective_history_
    assert (history[1:] <= history[:-1] * (1 + 1e-9)).all()
    np.testing.assert_allclose(model.inertia_, history[-1], rtol=1e-9)


def test_weights_stand_for_repetition(rng):
    X, _ = topics(rng, 1500, 400)
    w, init = rng.integers(0, 4, 1500), X[:9].toarray()
    weighted = QKMeans(9, init=init).fit(X, sample_weight=w)
    repeated = QKMeans(9, init=init).fit(sp.csr_array(X[np.repeat(np.arange(1500), w)]))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 500},
        {"shortlist": 0, "compression": 4},
        {"shortlist": 2, "compression": 3},
        {"compression": 3},
        {"search": "thorough"},
        {"init": "random", "search": "none"},
        {"n_init": 2},
    ],
)
def test_other_ways_to_fit(rng, options):
    X, _ = topics(rng, 1500, 400)
    model = QKMeans(9, random_state=0, max_iter=3, **options).fit(X)
    np.testing.assert_allclose(model.inertia_, -model.score(X), rtol=1e-6)
    assert model.transform(X).shape == (1500, 9)
    np.testing.assert_array_equal(model.predict(X, exact=True), model.transform(X).argmin(axis=1))


def test_checkpoints_batches_and_files(rng, tmp_path):
    X, _ = topics(rng, 1500, 400)
    model = QKMeans(9, random_state=0, max_iter=3, checkpoint=tmp_path / "c").fit(X)
    again = QKMeans(9, random_state=0, max_iter=3, checkpoint=tmp_path / "c").fit(X)
    np.testing.assert_array_equal(model.labels_, again.labels_)
    model = QKMeans(9, random_state=0).partial_fit(X[:800]).partial_fit(X[800:])
    assert model.predict(X).shape == (1500,)


@pytest.mark.parametrize("dtype", VALUE)
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_entries_that_are_not_finite_are_named(rng, dtype, value, words):
    X, _ = topics(rng, 1500, 400)
    model = QKMeans(9, random_state=0, max_iter=2).fit(X)
    bad = sp.csr_array(X.astype(dtype))
    place = bad.indptr[700] + 3
    bad.data[place] = value
    message = rf"contains {words} \(row 700, column {bad.indices[place]}\)"
    for call in (QKMeans(9).fit, QKMeans(9, metric="cosine").fit, model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=message):
            call(bad)


def test_numbers_that_are_too_large_are_refused(rng):
    X, _ = topics(rng, 1500, 400)
    with pytest.raises(ValueError, match="overflow float64"):
        QKMeans(9).fit(1e200 * X)
    model = QKMeans(9, random_state=0, max_iter=2).fit(sp.csr_array((1e3 * X).astype(np.float32)))
    with pytest.raises(ValueError, match="too large for float32, in row 0 or a later one"):
        model.predict(sp.csr_array((1e38 * X).astype(np.float32)))


def test_directions_of_zero_rows_are_refused(rng):
    X, _ = topics(rng, 1500, 400)
    model = QKMeans(9, metric="cosine", random_state=0, max_iter=2).fit(X)
    X.data[X.indptr[40] : X.indptr[41]] = 0
    for call in (QKMeans(9, metric="cosine").fit, model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="Row 40 of X is zero"):
            call(X)


def test_rows_of_zeros_and_a_large_mean(rng):
    X = sp.csr_array((2000, 300))
    with pytest.warns(match=r"distinct clusters \(1\)"):
        assert QKMeans(3, random_state=0).fit(X).inertia_ == 0
    X = sp.csr_array(rng.standard_normal((2000, 300)) + 1e5)
    model, dense = (QKMeans(5, init=X[:5].toarray(), max_iter=5).fit(rows) for rows in (X, X.toarray()))
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    np.testing.assert_allclose(model.inertia_, dense.inertia_, rtol=1e-9)


def test_points_are_those_of_dense_rows(rng):
    X, w = random_rows(rng), rng.random(400)
    settings = Settings.of(QKMeans().get_params())
    sparse, dense = (rows.points(settings, ()) for rows in (SparseRows(X, w), ArrayRows(X.toarray(), w)))
    np.testing.assert_allclose(sparse.geometry.mean, dense.geometry.mean, atol=1e-13)
    np.testing.assert_allclose(sparse.variances, dense.variances, rtol=1e-12)
    assert (sparse.geometry.dtype, sparse.total) == (dense.geometry.dtype, dense.total)


# ---- memory and interrupts ------------------------------------------------------------------------------------------

MEMORY = """
import resource, numpy as np, scipy.sparse as sp
from quickmeans import QKMeans
rng = np.random.default_rng(0)
columns = rng.integers(0, 100_000, (20_000, 100)).astype(np.int32)
X = sp.csr_array((rng.random(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, 100)))
X.resize(20_000, 100_000)
X.sum_duplicates()
QKMeans(2, random_state=0).fit(X[:3000, :300])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = QKMeans(20, random_state=0, max_iter=5).fit(X)
model.predict(X), model.score(X)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_is_that_of_the_centroids():
    used = int(subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, check=True, text=True).stdout)
    assert used < 20 * 20 * 100_000 * 4, "twenty times the centroids in float32; dense rows would take 8 GB"


def test_an_interrupted_fit_keeps_the_last_iteration(rng):
    X, _ = topics(rng)

    def interrupt(iteration, objective):
        if iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    options = {"init": X[:30].toarray(), "tol": 0}
    model = QKMeans(30, callback=interrupt, **options)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    short = QKMeans(30, max_iter=3, **options).fit(X)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(model.cluster_centers_, short.cluster_centers_)
    np.testing.assert_array_equal(model.labels_, short.labels_)


def test_an_interrupted_iteration_keeps_its_centers(rng):
    X = sp.random_array((20_000, 200), density=0.2, rng=rng, format="csr", dtype=np.float32)
    _, clusters = clusters_of(X, rng.random((30_000, 200)))
    before = clusters.centers()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        clusters.iterate(0.0)
    timer.join()
    np.testing.assert_array_equal(clusters.centers(), before)


def test_counts_of_any_type_have_directions(rng):
    """The search divides rows by their lengths; integers would become zeros."""
    dense = rng.poisson(0.3, (3000, 200))
    dense[:, 0] += 1  # no row is zero
    counts = sp.csr_array(dense.astype(np.int32))
    fits = [QKMeans(8, metric="cosine", init="random", random_state=0).fit(counts.astype(t)) for t in ("i4", "f8")]
    np.testing.assert_allclose(fits[0].inertia_, fits[1].inertia_, rtol=1e-6)


def test_ctrl_c_before_the_first_labels(rng, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels.Search, "iterate", interrupted)
    X = sp.random_array((3000, 200), density=0.05, format="csr", dtype=np.float32, rng=rng)
    model = QKMeans(4, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not hasattr(model, "cluster_centers_")
