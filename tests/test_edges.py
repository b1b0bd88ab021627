"""Fits at the edges: rows without weight, too few different rows, odd layouts, failures half way."""

import gc
import weakref

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from mixture import X, chunked
from sklearn.exceptions import ConvergenceWarning

from quickmeans import QKMeans, open_rows
from quickmeans.data import RowSource
from quickmeans.data.stream import StreamRows
from quickmeans.kmeans.chunk_pass import ChunkPass
from quickmeans.kmeans.rows import local_points
from quickmeans.kmeans.screen import Screen
from quickmeans.kmeans.update import ClusterSums
from quickmeans.transform import SparseProduct

# ---- weights and empty clusters -------------------------------------------------------------------------------------


def test_rows_of_weight_zero_have_no_influence():
    rows, weights = np.array([[0.0], [1], [10], [11], [5]]), np.array([1.0, 1, 1, 1, 0])
    options = {"n_clusters": 3, "init": [[0.5], [10.5], [5.0]]}
    with_it = QKMeans(**options).fit(rows, sample_weight=weights)
    assert with_it.inertia_ == QKMeans(**options).fit(rows[:4]).inertia_ == 0.5


@pytest.mark.parametrize("as_rows", [np.asarray, lambda rows: lambda: [rows[:3], rows[3:]], da.from_array])
def test_the_objective_after_an_assignment_is_that_of_the_assignment(as_rows):
    rows = np.array([[0.0], [0], [1], [9]])
    model = QKMeans(3, init=[[0.0], [100], [5]]).fit(as_rows(rows))
    assert model.objective_history_[0] == 17  # 1 and (9 - 5)^2, before the empty cluster gets a row
    assert model.inertia_ == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_clusters_than_different_rows_converge(rng, dtype):
    rows = np.repeat(rng.standard_normal((50, 4)), 3, axis=0).astype(dtype)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(50\) found smaller than n_clusters \(60\)"):
        model = QKMeans(60, random_state=0).fit(rows)
    assert model.n_iter_ <= 3
    assert model.inertia_ < 1e-10


def test_integers_are_scored_exactly(rng):
    rows = rng.integers(-3000, 3000, (80, 5)).astype(np.int16)
    model = QKMeans(80, init=rows, max_iter=2).fit(rows)
    assert model.inertia_ == 0
    assert model.score(rows) == 0


# ---- starts ---------------------------------------------------------------------------------------------------------

STARTS = {
    "fortran": lambda C: np.asfortranarray(C),
    "frame": lambda C: pd.DataFrame(C),
    "strided": lambda C: np.repeat(C, 2, axis=1)[:, ::2],
    "reversed": lambda C: C[::-1][::-1],
    "big-endian": lambda C: C.astype(">f8"),
    "float32": lambda C: C.astype(np.float32),
    "list": lambda C: C.tolist(),
    "callable": lambda C: lambda X, n_clusters, random_state: np.asfortranarray(C),
}


@pytest.mark.parametrize("options", [{}, {"shortlist": 0, "compression": 2}, {"batch_size": 500}])
@pytest.mark.parametrize("kind", STARTS)
def test_starts_of_every_layout(kind, options):
    C = X[:20].astype(np.float64)
    common = {"n_clusters": 20, "max_iter": 3, "n_init": 1, "random_state": 0}
    expected = QKMeans(init=C, **common, **options).fit(X)
    model = QKMeans(init=STARTS[kind](C), **common, **options).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.zeros((3, 60)), r"The shape of the initial centers \(3, 60\) does not match the number of clusters 2"),
        (np.full((2, 60), np.nan), "init contains NaN or infinity"),
        (np.full((2, 60), 1e200), "squares of the numbers in init overflow"),
        ([["a"] * 60] * 2, r"init must be an array of numbers of shape \(2, 60\), got list"),
        ([[1.0], [1.0, 2.0]], "init must be an array of numbers"),
    ],
)
def test_bad_starts(init, message):
    with pytest.raises(ValueError, match=message):
        QKMeans(2, init=init).fit(X)


# ---- Dask -----------------------------------------------------------------------------------------------------------


def test_dask_draws_rows_by_weight():
    weights = np.zeros(4000)
    weights[:10] = 1
    model = QKMeans(6, init="random", n_init=1, max_iter=1, random_state=0).fit(
        da.from_array(X, chunks=(500, 60)), sample_weight=weights
    )
    labels = model.labels_.compute()
    assert len(np.unique(labels[:10])) == 6


def test_dask_layouts():
    options = {"n_clusters": 8, "init": X[:8], "max_iter": 3}
    expected = QKMeans(**options).fit(da.from_array(X, chunks=(1000, 60)))
    swapped = QKMeans(**options).fit(da.from_array(X.astype(">f4"), chunks=(1000, 60)))
    np.testing.assert_array_equal(swapped.cluster_centers_, expected.cluster_centers_)
    weights = np.arange(4000.0)
    forward = QKMeans(**options).fit(da.from_array(X, chunks=(1000, 60)), sample_weight=weights)
    backward = QKMeans(**options).fit(da.from_array(X, chunks=(1000, 60)), sample_weight=weights[::-1][::-1])
    np.testing.assert_array_equal(forward.cluster_centers_, backward.cluster_centers_)
    bits = X > 0
    as_bool = QKMeans(4, init=bits[:4].astype(float), max_iter=2).fit(da.from_array(bits, chunks=(1000, 60)))
    numbers = da.from_array(bits.astype(np.uint8), chunks=(1000, 60))
    as_float = QKMeans(4, init=bits[:4].astype(float), max_iter=2).fit(numbers)
    np.testing.assert_allclose(as_bool.cluster_centers_, as_float.cluster_centers_, atol=1e-6)
    with pytest.raises(ValueError, match="at least one row and one column"):
        QKMeans(2).fit(da.from_array(np.zeros((0, 3)), chunks=(1, 3)))


# ---- failures half way ----------------------------------------------------------------------------------------------


def attributes(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_") or name == "_batch"}


def test_a_failed_partial_fit_changes_nothing():
    model = QKMeans(10, batch_size=500, random_state=0).partial_fit(X[:1000])
    before, centers = attributes(model), model.cluster_centers_.copy()
    counts = model.weight_in_clusters_.copy()
    bad = X[1000:3000].copy()
    bad[1777, 3] = 1e30
    with pytest.raises(ValueError, match="too large for float32") as error:
        model.partial_fit(bad)
    row = int(str(error.value).split("in row ")[1].split(" ")[0])
    assert row == 1777 or row in range(2000)  # counted from the first row of the call
    after = attributes(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    np.testing.assert_array_equal(model.weight_in_clusters_, counts)
    again = QKMeans(10, batch_size=500, random_state=0).partial_fit(X[:1000])
    for each in (model, again):
        each.partial_fit(X[1000:2000])
    np.testing.assert_array_equal(model.cluster_centers_, again.cluster_centers_)


def test_an_interrupt_in_the_first_partial_fit_leaves_no_half_model(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("quickmeans.cluster.follow_rows", interrupted)
    model = QKMeans(10)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X)
    assert not hasattr(model, "cluster_centers_")
    assert not hasattr(model, "n_features_in_")


def test_partial_fit_releases_its_rows():
    rows = X.copy()
    reference = weakref.ref(rows)
    model = QKMeans(100, random_state=0).partial_fit(rows)
    del rows
    gc.collect()
    assert reference() is None
    model.partial_fit(X)


def test_a_failed_fit_changes_nothing():
    model = QKMeans(10, random_state=0).fit(X)
    before = attributes(model)
    bad = X[:, :50].copy()
    bad[5, 5] = np.nan
    with pytest.raises(ValueError, match="row 5, column 5"):
        model.fit(bad)
    after = attributes(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


# ---- parameters and sparse rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_factors": 10**6}, "n_factors must be a whole number from 1 to"),
        ({"n_clusters": 2**70}, "n_clusters must be a whole number"),
        ({"metric": "x"}, "metric must be 'euclidean' or 'cosine', got 'x'"),
        ({"search": 1}, "search must be 'auto', 'none' or 'thorough', got 1"),
        ({"verbose": "x"}, "verbose must be a whole number"),
        ({"solver": "newton"}, "solver must be one of 'als', 'palm4msa', 'hierarchical'"),
    ],
)
def test_parameters_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        QKMeans(**options).fit(X[:100])


def test_a_sparse_matrix_with_a_column_beyond_its_width_is_refused():
    rows = sp.random_array((50, 8), density=0.3, rng=0).tocsr()
    rows.indices[3] = 8
    with pytest.raises(ValueError, match="column 8, but it has 8 columns"):
        QKMeans(3).fit(rows)


def test_the_certain_bound_is_made_once(monkeypatch):
    model = QKMeans(60, init=X[:60], compression=2).fit(X)
    assert model.product_ is not None
    model.predict(X[:1], exact=True)
    monkeypatch.setattr(SparseProduct, "toarray", lambda self: pytest.fail("toarray was called again"))
    model.predict(X[:1], exact=True)


def test_a_solver_of_ones_own():
    calls = []

    def solver(U, weights, init, settings):
        calls.append((U.shape, weights.shape, init is None))
        return SparseProduct([U])

    model = QKMeans(20, init=X[:20], solver=solver, shortlist=0, max_iter=4).fit(X)
    assert calls[0] == ((20, 60), (20,), True)
    assert not calls[1][2]
    plain = QKMeans(20, init=X[:20], max_iter=5, tol=0).fit(X)
    np.testing.assert_allclose(model.inertia_, plain.inertia_, rtol=0.02)


# ---- how often files are read ---------------------------------------------------------------------------------------


class CountingRows(RowSource):
    """Rows that count how often they are read."""

    name = "counting"

    def __init__(self, rows):
        self.rows, self.n_rows, self.n_columns, self.dtype = rows, *rows.shape, rows.dtype
        self.reads = 0

    def chunks(self):
        self.reads += 1
        yield from (self.rows[i : i + 500] for i in range(0, len(self.rows), 500))


def test_moments_and_samples_cost_one_read():
    source = CountingRows(X)
    model = QKMeans(20, max_iter=1, random_state=0).fit(source)
    assert source.reads == 3  # moments and samples; one iteration; the labels
    np.testing.assert_array_equal(
        model.cluster_centers_, QKMeans(20, max_iter=1, random_state=0).fit(lambda: [X]).cluster_centers_
    )


def test_files_take_the_rows_they_have_kept(path, monkeypatch):
    chunked(monkeypatch, 500)
    options = {"n_clusters": 12, "max_iter": 2, "random_state": 0}
    weights = np.arange(4000) % 3 * 1.0
    expected = QKMeans(**options).fit(lambda: [X], sample_weight=weights)
    model = QKMeans(**options).fit(open_rows(path), sample_weight=weights)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


# ---- messages, threads and interrupts -------------------------------------------------------------------------------


def in_chunks(rows):
    return lambda: [rows[i : i + 1000] for i in range(0, len(rows), 1000)]


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_array, in_chunks])
def test_bad_rows_are_counted_from_the_first_of_all(as_rows):
    model = QKMeans(20, init=X[:20], shortlist=0, compression=2, max_iter=2).fit(X)
    bad = X.copy()
    bad[3500, 7] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 3500.*column 7"):
        model.predict(as_rows(bad))


def test_bad_rows_of_dask_arrays_are_counted_from_the_first_of_all():
    model = QKMeans(5, init=X[:5], max_iter=2).fit(X)
    directions = QKMeans(5, init=X[:5], metric="cosine", max_iter=2).fit(X)
    bad, zero = X.copy(), X.copy()
    bad[3500, 7], zero[1500] = np.nan, 0
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match="row 3500, in chunk 3 of the Dask array, column 7"):
            method(da.from_array(bad, chunks=(1000, 60))).compute(scheduler="synchronous")
    for rows in (zero, da.from_array(zero, chunks=(1000, 60))):
        with pytest.raises(ValueError, match="Row 1500 of X is zero"):
            np.asarray(directions.transform(rows))


def test_tasks_of_dask_use_one_thread_unless_told(monkeypatch):
    model, seen, label = QKMeans(5, init=X[:5], max_iter=2).fit(X), [], Screen.label

    def spy(self, rows, n_threads, first=0):
        seen.append(n_threads)
        return label(self, rows, n_threads, first)

    monkeypatch.setattr(Screen, "label", spy)
    monkeypatch.setenv("QUICKMEANS_NUM_THREADS", "7")
    model.predict(da.from_array(X, chunks=(2000, 60))).compute(scheduler="synchronous")
    model.set_params(n_threads=3).predict(da.from_array(X, chunks=(2000, 60))).compute(scheduler="synchronous")
    assert set(seen[:2]) == {1}
    assert set(seen[-2:]) == {3}


@pytest.mark.parametrize("call", [QKMeans(5, batch_size=100).fit, QKMeans(5).partial_fit])
def test_batches_of_dask_arrays_are_refused_before_any_work(call):
    def failing(chunk):
        pytest.fail("a chunk was computed")

    rows = da.from_array(X, chunks=(1000, 60)).map_blocks(failing, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    with pytest.raises(ValueError, match="batch_size and partial_fit are not for Dask arrays"):
        call(rows)


def test_an_interrupt_while_empty_clusters_are_refilled(monkeypatch):
    points = local_points(StreamRows(open_rows(in_chunks(X))), 1, spherical=False)
    centers = np.concatenate([X[:10] - points.geometry.mean, np.full((3, 60), 1e3)])
    passes, screen = ChunkPass(points, 13), Screen(centers, points.geometry)
    passes.assign(screen)
    passes.assign(screen, np.zeros(13))
    move, calls = ClusterSums.move, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        move(self, *args)

    monkeypatch.setattr(ClusterSums, "move", interrupted)
    with pytest.raises(KeyboardInterrupt):
        passes.refill()
    last = passes.last(screen, centers)
    expected = ChunkPass(points, 13).last(screen, centers)
    np.testing.assert_allclose(last.objective, expected.objective)
    assert (passes.sums.weights >= 0).all()
