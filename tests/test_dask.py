"""QKMeans on Dask arrays: the same clusters as on one machine, on whatever cluster is there."""

import os
import pickle
import signal
import subprocess
import sys
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from quickmeans import QKMeans
from quickmeans.distributed.reduction import Draw, assigned_part, drawn, merge_draws, merge_parts, tree
from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.screen import Screen
from quickmeans.transform import SparseProduct

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore:Port 8787")


def mixture(n=4000, D=60, n_centers=80, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((n_centers, 6)) @ rng.standard_normal((6, D))
    return (centers[rng.integers(n_centers, size=n)] + 0.5 * rng.standard_normal((n, D)) + 3).astype(np.float32)


X = mixture()
WEIGHTS = np.random.default_rng(1).random(4000)
ROWS = da.from_array(X, chunks=(700, 25))


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


OPTIONS = {
    "screen": {"n_clusters": 300},
    "weights": {"n_clusters": 50, "weights": WEIGHTS},
    "spherical": {"n_clusters": 40, "metric": "cosine"},
    "product": {"n_clusters": 40, "shortlist": 0, "compression": 3, "max_iter": 4},
}


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("name", OPTIONS)
def test_as_on_one_machine(name, tmp_path):
    """With a checkpoint, rows in memory are passed over as those on a cluster are."""
    options = {"random_state": 0} | OPTIONS[name]
    weights = options.pop("weights", None)
    options.setdefault("init", X[: options["n_clusters"]])
    plain = QKMeans(**options, checkpoint=tmp_path / "c").fit(X, sample_weight=weights)
    model = QKMeans(**options).fit(ROWS, sample_weight=weights)
    assert model.n_iter_ == plain.n_iter_
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.objective_history_, plain.objective_history_, rtol=1e-12)
    np.testing.assert_allclose(model.inertia_, plain.inertia_, rtol=1e-12)
    assert isinstance(model.labels_, da.Array)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_results_are_lazy():
    model = QKMeans(20, random_state=0).fit(X)
    labels, distances = model.predict(ROWS), model.transform(ROWS)
    assert labels.chunks == ((700,) * 5 + (500,),)
    assert distances.shape == (4000, 20)
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_allclose(distances, model.transform(X))
    np.testing.assert_allclose(model.score(ROWS), model.score(X))
    np.testing.assert_array_equal(model.predict(ROWS, exact=True), model.predict(X, exact=True))


def test_a_start_of_their_own_is_as_good():
    plain = QKMeans(80, random_state=0).fit(X)
    model = QKMeans(80, random_state=0).fit(ROWS)
    assert model.inertia_ < 1.1 * plain.inertia_
    again = QKMeans(80, random_state=0).fit(ROWS)
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    random = {"n_clusters": 80, "init": "random", "n_init": 1, "random_state": 0}
    assert QKMeans(**random).fit(ROWS).inertia_ < 1.3 * QKMeans(**random).fit(X).inertia_


def test_empty_clusters_get_rows():
    same = np.repeat(X[:1], 30, axis=0)
    model = QKMeans(30, init=same).fit(ROWS)
    assert len(np.unique(model.labels_.compute())) == 30
    assert model.inertia_ < 1.1 * QKMeans(30, init=same).fit(X).inertia_


def test_data_frames():
    table = pd.DataFrame(X[:, :5], columns=list("abcde"))
    model = QKMeans(10, init=X[:10, :5]).fit(dd.from_pandas(table, npartitions=3))
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(model.labels_, QKMeans(10, init=X[:10, :5]).fit(table).labels_)


def test_weights_on_the_cluster():
    init = X[:30]
    here = QKMeans(30, init=init).fit(ROWS, sample_weight=WEIGHTS)
    there = QKMeans(30, init=init).fit(ROWS, sample_weight=da.from_array(WEIGHTS, chunks=999))
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)


def test_checkpoints_on_dask(tmp_path):
    class Stop(Exception):
        pass

    def stop(iteration, objective):
        if iteration == 2:
            raise Stop

    options = {"n_clusters": 60, "random_state": 0, "max_iter": 6, "tol": 0}
    whole = QKMeans(**options).fit(ROWS)
    with pytest.raises(Stop):
        QKMeans(**options, checkpoint=tmp_path / "c", callback=stop).fit(ROWS)
    model = QKMeans(**options, checkpoint=tmp_path / "c").fit(ROWS)
    np.testing.assert_array_equal(model.cluster_centers_, whole.cluster_centers_)


# ---- a real cluster -------------------------------------------------------------------------------------------------


def test_processes_and_a_worker_that_dies(cluster, tmp_path):
    plain = QKMeans(60, init=X[:60], tol=0, max_iter=6, checkpoint=tmp_path / "c").fit(X)
    killed = []

    def kill(iteration, objective):
        if iteration == 2:
            pid = next(iter(cluster.run(os.getpid).values()))
            killed.append(pid)
            threading.Timer(0.02, os.kill, (pid, signal.SIGKILL)).start()  # while the next pass is on

    slow = ROWS.map_blocks(_slowly, dtype=ROWS.dtype)
    model = QKMeans(60, init=X[:60], tol=0, max_iter=6, callback=kill).fit(slow)
    assert killed
    np.testing.assert_allclose(model.objective_history_, plain.objective_history_, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def _slowly(rows):
    import time

    time.sleep(0.05)
    return rows


def test_a_worker_out_of_memory_is_named(cluster):
    bad = ROWS.map_blocks(_die, dtype=ROWS.dtype)
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), pytest.raises(MemoryError, match="smaller"):
        QKMeans(5, random_state=0).fit(bad)


def _die(rows):
    if len(rows) == 500:
        os._exit(1)
    return rows


# ---- what the workers do --------------------------------------------------------------------------------------------


def test_parts_by_hand():
    geometry = Geometry(np.zeros(1), np.dtype(np.float64))
    screen = Screen(np.array([[0.0], [10.0], [99.0]]), geometry)
    one = assigned_part(np.array([[1.0], [9.0], [2.0]]), np.array([1.0, 2.0, 1.0]), screen, 1)
    other = assigned_part(np.array([[12.0]]), None, screen, 1)
    assert one.clusters.tolist() == [0, 1]
    assert one.sums.tolist() == [[3.0], [18.0]]
    assert other.clusters.tolist() == [1]
    both = merge_parts([one, other])
    assert both.sums.tolist() == [[3.0], [30.0]]
    assert both.weights.tolist() == [2, 3]
    assert both.sizes.tolist() == [2, 2]
    assert both.objective == 1 + 4 + 2 * 1 + 4
    assert sorted(both.pool["distances"]) == [1, 1, 4, 4]


def test_a_tree_merges_all_once_and_in_order():
    assert tree([str(i) for i in range(10)], "".join) == "0123456789"
    assert tree(["x"], "".join) == "x"


def test_draws_are_by_chance_among_rows_with_weight():
    rows, weights = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 4.0, 1.0, 0.0])
    firsts = [drawn(rows, weights, 1, seed).rows[0, 0] for seed in range(3000)]
    counts = np.bincount(np.array(firsts, int), minlength=4)
    assert counts[3] == 0
    assert (abs(counts[:3] - 1000) < 120).all()
    draws = Draw(rows[:2], weights[:2], np.array([3.0, 1.0])), Draw(rows[2:], weights[2:], np.array([2.0, 9.0]))
    merged = merge_draws(list(draws), 2)
    assert merged.rows.ravel().tolist() == [1, 2]
    assert merged.weights.tolist() == [4, 1]


def test_messages_are_small(rng):
    U = rng.standard_normal((200, 20)) @ rng.standard_normal((20, 300))
    geometry = Geometry(np.zeros(300), np.dtype(np.float32))
    product = SparseProduct([rng.standard_normal((200, 20)).astype(np.float32), U[:20].astype(np.float32)])
    dense = U.astype(np.float32).nbytes
    assert len(pickle.dumps(ProductRows(product, geometry))) < 0.25 * dense
    screen = Screen(U, geometry, product, margin=0.1)
    assert len(pickle.dumps(screen)) < 1.3 * dense
    found = [Assignment.empty(50, geometry.dtype) for _ in range(2)]
    rows = rng.standard_normal((50, 300)).astype(np.float32)
    screen.assign(rows, found[0], 1)
    pickle.loads(pickle.dumps(screen)).assign(rows, found[1], 1)
    np.testing.assert_array_equal(found[0].labels, found[1].labels)


def test_without_a_cluster_in_a_fresh_process():
    """dask.distributed has settings of its own, which are loaded with it."""
    code = (
        "import dask.array as da; from quickmeans import QKMeans\n"
        "X = da.random.default_rng(0).random((60, 3), chunks=(20, 3))\n"
        "assert QKMeans(4, random_state=0).fit(X).labels_.compute().shape == (60,)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- bad input ------------------------------------------------------------------------------------------------------


def test_bad_dask_arrays():
    bad = X.copy()
    bad[1717, 3] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 1717, in chunk 2 of the Dask array, column 3\)"):
        QKMeans(5).fit(da.from_array(bad, chunks=(700, -1)))
    with pytest.raises(ValueError, match="n_samples=4000 should be >= n_clusters=5000"):
        QKMeans(5000).fit(ROWS)
    with pytest.raises(ValueError, match="batch_size and partial_fit are not for Dask arrays"):
        QKMeans(5, batch_size=100).fit(ROWS)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(4000,\)"):
        QKMeans(5).fit(ROWS, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        QKMeans(5).fit(ROWS, sample_weight=-WEIGHTS)
    with pytest.raises(ValueError, match="must not be all zero"):
        QKMeans(5).fit(ROWS, sample_weight=0 * WEIGHTS)
    with pytest.raises(ValueError, match="has 10 columns, but the model was fitted to 60"):
        QKMeans(5, random_state=0).fit(X).predict(ROWS[:, :10])
    with pytest.raises(ValueError, match="A row of X is zero"):
        QKMeans(5, metric="cosine").fit(da.zeros((10, 3)))
