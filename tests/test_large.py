"""Fits on rows that are not in memory: the same clusters, whatever the chunks; checkpoints."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pandas as pd
import pytest
from mixture import X, chunked, mixture

from quickmeans import QKMeans
from quickmeans.data import open_rows
from quickmeans.data.stream import StreamRows
from quickmeans.kmeans.chunk_pass import ChunkPass
from quickmeans.kmeans.moments import Moments, mean_and_variances
from quickmeans.kmeans.rows import local_points
from quickmeans.kmeans.screen import Screen

# ---- exact passes ---------------------------------------------------------------------------------------------------

OPTIONS = {
    "screen": {"n_clusters": 300},
    "few": {"n_clusters": 20, "tol": 0},
    "weights": {"n_clusters": 50, "weights": np.random.default_rng(3).random(4000)},
    "spherical": {"n_clusters": 40, "metric": "cosine"},
    "empty clusters": {"n_clusters": 60, "init": np.repeat(X[:1], 60, axis=0)},
    "product": {"n_clusters": 40, "shortlist": 0, "compression": 3, "max_iter": 5},
    "compression": {"n_clusters": 200, "compression": 6},
}


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("name", OPTIONS)
def test_no_bit_depends_on_the_chunks_and_all_is_as_in_memory(path, tmp_path, monkeypatch, name):
    """With a checkpoint, rows in memory are passed over as those of a file are; without, a copy is iterated on."""
    options = {"random_state": 0, "max_iter": 12} | OPTIONS[name]
    weights = options.pop("weights", None)
    plain = QKMeans(**options, checkpoint=tmp_path / "c").fit(X, sample_weight=weights)
    quick = QKMeans(**options).fit(X, sample_weight=weights)
    models = []
    for n_rows in (4000, 1000, 77):
        chunked(monkeypatch, n_rows)
        models.append(QKMeans(**options).fit(path, sample_weight=weights))
    for model in models:
        np.testing.assert_array_equal(model.cluster_centers_, models[0].cluster_centers_)
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.objective_history_, models[0].objective_history_)
        np.testing.assert_array_equal(model.predict(path), model.labels_)
        np.testing.assert_allclose(-model.score(path, sample_weight=weights), model.inertia_, rtol=1e-5)
    # In memory sums follow the changes of labels, and so are rounded otherwise.
    np.testing.assert_allclose(models[0].inertia_, plain.inertia_, rtol=1e-4)
    assert (models[0].labels_ == plain.labels_).mean() > 0.99
    assert models[0].n_iter_ == pytest.approx(plain.n_iter_, abs=2)
    assert (models[0].product_ is None) == (plain.product_ is None)
    assert quick.inertia_ <= 1.001 * plain.inertia_


def test_one_pass_by_hand():
    rows = np.array([[0.0], [1.0], [10.0], [11.0], [20.0]])
    source = open_rows(lambda: [rows[:2], rows[2:3], rows[3:]])
    points = local_points(StreamRows(source), 1, spherical=False)
    assert points.geometry.mean == 8.4
    assert len(points) == 5
    passes = ChunkPass(points, 3)
    centers = np.array([[0.0], [10.0], [100.0]]) - 8.4
    assert passes.assign(Screen(centers, points.geometry)) == 5  # all rows are new
    assert passes.labels.tolist() == [0, 0, 1, 1, 1]
    assert passes.sums.sizes.tolist() == [2, 3, 0]
    assert passes.sums.raw.tolist() == [[1.0], [41.0], [0.0]]
    moves = passes.refill()
    assert moves == [(4, 1, 2)]  # the farthest
    assert passes.sums.raw.tolist() == [[1.0], [21.0], [20.0]]
    assert passes.sums.weights.tolist() == [2, 2, 1]
    passes.undo(moves)
    assert passes.sums.raw.tolist() == [[1.0], [41.0], [0.0]]
    last = passes.last(Screen(centers, points.geometry), centers)
    assert last.labels.tolist() == [0, 0, 1, 1, 1]
    assert last.objective == pytest.approx(1 + 1 + 100)


def test_rows_are_skipped_once_their_labels_are_proven(path, monkeypatch):
    chunked(monkeypatch, 500)
    assigned = []
    assign = Screen.assign

    def counting(self, rows, assignment, n_threads, index=None, **options):
        if len(rows) == 500:  # else they are a sample for the screen
            assigned.append(500 if index is None else len(index))
        return assign(self, rows, assignment, n_threads, index=index, **options)

    monkeypatch.setattr(Screen, "assign", counting)
    model = QKMeans(80, init=X[:80], tol=0).fit(path)
    passes = np.array(assigned).reshape(model.n_iter_ + 1, 8).sum(axis=1)
    assert passes[0] == passes[-1] == 4000
    assert passes[-2] < 2000


def test_moments_are_those_of_any_chunks(rng):
    rows, weights = rng.standard_normal((5000, 3)) + 100, rng.random(5000)
    results = []
    for cuts in ([5000], [1, 1023, 1024, 2952], [700] * 7 + [100], [1] * 10 + [4990]):
        moments, first = Moments(rows[0], 1), 0
        for n in cuts:
            moments.add(rows[first : first + n], weights[first : first + n])
            first += n
        results.append(mean_and_variances(moments.shift, moments.sums, weights.sum()))
    mean = np.average(rows, axis=0, weights=weights)
    np.testing.assert_allclose(results[0][0], mean)
    np.testing.assert_allclose(results[0][1], np.average((rows - mean) ** 2, axis=0, weights=weights))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_sources_of_unknown_length_and_other_kinds(tmp_path):
    frame = pd.DataFrame(X[:1000, :4], columns=list("abcd"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    plain = QKMeans(12, random_state=0).fit(frame)
    for rows in (tmp_path / "x.parquet", str(tmp_path / "x.csv"), lambda: iter([frame[:300], frame[300:]])):
        model = QKMeans(12, random_state=0).fit(rows)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(model.transform(rows), plain.transform(frame), rtol=1e-4)
        if not callable(rows):
            assert list(model.feature_names_in_) == list("abcd")
    weights = np.random.default_rng(0).random(1000)
    np.testing.assert_array_equal(
        QKMeans(12, random_state=0).fit(tmp_path / "x.csv", sample_weight=weights).labels_,
        QKMeans(12, random_state=0).fit(frame, sample_weight=weights).labels_,
    )


def test_labels_go_to_a_file(path, tmp_path, monkeypatch):
    chunked(monkeypatch, 300)
    model = QKMeans(50, random_state=0).fit(path)
    assert model.predict(path, output=tmp_path / "labels.npy") == 4000
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)
    model.predict(X, output=tmp_path / "labels.parquet")
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "labels.parquet")["label"], model.labels_)


_PEAK = """
import sys, numpy as np
from quickmeans import QKMeans

def resident(kind):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(kind)).split()[1])

QKMeans(4, max_iter=1).fit(np.random.default_rng(0).random((100, 256), np.float32))
open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
QKMeans(64, max_iter=3, random_state=0).fit(sys.argv[1])
print(resident("VmHWM") - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux")
def test_memory_is_that_of_some_chunks(tmp_path):
    n_rows = 400_000  # 410 MB
    big = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (n_rows, 256))
    for begin in range(0, n_rows, 50_000):
        big[begin : begin + 50_000] = np.random.default_rng(begin).random((50_000, 256), np.float32)
    del big
    done = subprocess.run([sys.executable, "-c", _PEAK, tmp_path / "x.npy"], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 130e6


@pytest.mark.parametrize("method", ["fit", "predict", "transform", "score"])
def test_bad_numbers_are_found_in_their_files(path, tmp_path, method, monkeypatch):
    chunked(monkeypatch, 100)
    bad = X.copy()
    bad[1717, 3] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    model = QKMeans(5, random_state=0).fit(path)
    with pytest.raises(ValueError, match=r"NaN \(row 1717 of .*bad.npy, column 3\); every entry must be finite"):
        getattr(model, method)(tmp_path / "bad.npy")
    np.testing.assert_array_equal(model.predict(path), model.labels_)  # the earlier fit is still there


def test_other_bad_input(path, tmp_path):
    model = QKMeans(5, random_state=0).fit(path)
    np.save(tmp_path / "narrow.npy", X[:, :7])
    with pytest.raises(ValueError, match=r"narrow.npy has 7 columns, but the model was fitted to 60"):
        model.predict(tmp_path / "narrow.npy")
    with pytest.raises(ValueError, match="n_samples=4000 should be >= n_clusters=5000"):
        QKMeans(5000).fit(path)
    with pytest.raises(TypeError, match="can be read only once"):
        QKMeans(5).fit(iter([X]))
    with pytest.raises(TypeError, match="A callable as init needs rows in memory"):
        QKMeans(5, init=lambda X, k, random_state: X[:k]).fit(path)
    with pytest.raises(ValueError, match="must have shape"):
        QKMeans(5).fit(path, sample_weight=np.ones(3))
    pd.DataFrame(X[:50, :2], columns=["a", "b"]).to_parquet(tmp_path / "ab.parquet")
    pd.DataFrame(X[:50, :2], columns=["b", "a"]).to_parquet(tmp_path / "ba.parquet")
    model = QKMeans(5).fit(tmp_path / "ab.parquet")
    with pytest.raises(ValueError, match="must have the columns that the model was fitted to, in their order: a, b"):
        model.predict(open_rows(tmp_path / "ba.parquet"))


def test_a_file_that_shrinks_during_the_fit(path):
    def shrink(iteration, objective):
        os.truncate(path, path.stat().st_size - 1000)

    with pytest.raises(ValueError, match=r"x.npy is cut short.*stay as it is while it is read"):
        QKMeans(9, random_state=0, tol=0, callback=shrink).fit(path)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet", "x.h5"])
def test_a_file_that_is_written_to_during_the_fit(tmp_path, name):
    file = tmp_path / name
    if name == "x.h5":
        with h5py.File(file, "w") as h5:
            h5["train"] = X
    elif name == "x.parquet":
        pd.DataFrame(X, columns=[f"c{j}" for j in range(60)]).to_parquet(file)
    else:
        {"x.npy": np.save, "x.npz": np.savez}[name](file, X)

    def write(iteration, objective):
        if name == "x.npy":  # as long as before
            np.save(file, X[::-1])
        else:
            os.truncate(file, file.stat().st_size + 100)

    with pytest.raises(
        ValueError, match=rf"{name}.* was written to meanwhile; it must stay as it is|{name}.*cut short"
    ):
        QKMeans(9, random_state=0, tol=0, callback=write).fit(file)


# ---- checkpoints ----------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


def stop_at(n):
    def callback(iteration, objective):
        if iteration == n:
            raise Stop

    return callback


@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 500, "max_iter": 5},
        {"metric": "cosine", "n_clusters": 40},
        {"shortlist": 0, "n_clusters": 40, "compression": 4},
        {"shortlist": 0, "n_clusters": 40, "compression": 4, "tol": 1e-4, "max_iter": 40},
        {"shortlist": 0, "n_clusters": 8, "solver": "palm4msa", "max_iter": 3},
        {"shortlist": 0, "n_clusters": 8, "solver": "hierarchical", "max_iter": 3},
        {"shortlist": 0, "n_clusters": 40, "compression": 4, "batch_size": 500, "max_iter": 4},
    ],
)
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_fit_goes_on_from_its_checkpoint(path, tmp_path, options, on_disk):
    rows = path if on_disk else X
    options = {"n_clusters": 150, "max_iter": 8, "random_state": 0, "tol": 0, "search": "none"} | options
    whole = QKMeans(**options, checkpoint=tmp_path / "whole").fit(rows)
    for n in (1, 2):
        file = tmp_path / f"part {n}"
        with pytest.raises(Stop):
            QKMeans(**options, checkpoint=file, callback=stop_at(n)).fit(rows)
        model = QKMeans(**options, checkpoint=file).fit(rows)
        np.testing.assert_array_equal(model.cluster_centers_, whole.cluster_centers_)
        np.testing.assert_array_equal(model.labels_, whole.labels_)
        np.testing.assert_array_equal(model.objective_history_, whole.objective_history_)
        assert model.n_iter_ == whole.n_iter_
    again = QKMeans(**options, checkpoint=tmp_path / "whole").fit(rows)  # nothing is left to do
    np.testing.assert_array_equal(again.labels_, whole.labels_)


def test_without_a_seed_the_checkpoint_remembers_it(path, tmp_path):
    seen = []
    with pytest.raises(Stop):
        QKMeans(40, search="none", checkpoint=tmp_path / "c", callback=stop_at(2)).fit(path)
    QKMeans(40, search="none", checkpoint=tmp_path / "c", callback=lambda i, objective: seen.append(i)).fit(path)
    assert seen[0] == 3
    assert QKMeans(40, search="none", checkpoint=tmp_path / "c", max_iter=500).fit(path).n_iter_ == seen[-1]


_KILLED = """
import json, sys, time
from quickmeans import QKMeans
slow = lambda iteration, objective: time.sleep(0.03)
options = json.loads(sys.argv[4])
model = QKMeans(**options, tol=0, random_state=0, checkpoint=sys.argv[2], callback=slow)
print("ready", flush=True)
model.fit(sys.argv[1])
model.save(sys.argv[3], labels=True)
"""


@pytest.mark.parametrize(
    "options",
    [
        {"n_clusters": 150, "max_iter": 25},
        {"n_clusters": 40, "shortlist": 0, "compression": 4, "max_iter": 15},
    ],
)
def test_killed_at_random_moments(path, tmp_path, options):
    def fit(name, seconds=None):
        """How long the fit took; or, killed after so many seconds, whether that was before its end."""
        model = tmp_path / f"{name}.model"
        command = [sys.executable, "-c", _KILLED, path, tmp_path / name, model, json.dumps(options)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            start = time.perf_counter()
            if seconds is not None:
                time.sleep(seconds)
                process.kill()
                return process.wait() == -signal.SIGKILL
            assert process.wait() == 0
            return time.perf_counter() - start

    usual, moments = fit("whole"), random.Random(1)
    assert sum(fit("killed", 0.4 * usual * moments.random()) for _ in range(4)) >= 3
    fit("killed")
    assert (tmp_path / "killed.model").read_bytes() == (tmp_path / "whole.model").read_bytes()


def test_a_checkpoint_of_something_else_is_refused(path, tmp_path):
    file = tmp_path / "c"
    model = QKMeans(20, max_iter=2, checkpoint=file, random_state=0).fit(path)
    with pytest.raises(ValueError, match="checkpoint of a fit with other data; take the same, or another file"):
        model.fit(mixture(seed=1))
    with pytest.raises(ValueError, match="with other data"):
        model.fit(X, sample_weight=np.arange(4000.0))
    for change in ({"n_clusters": 21}, {"random_state": 1}, {"init": X[:20]}, {"tol": 0.5}):
        with pytest.raises(ValueError, match="with other parameters"):
            QKMeans(**{"n_clusters": 20, "random_state": 0} | change, checkpoint=file).fit(X)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="c is damaged: its checksum"):
        model.fit(X)
    QKMeans(20).fit(X).save(file)
    with pytest.raises(ValueError, match="is no checkpoint of a fit"):
        model.fit(X)


def test_a_full_disk_leaves_the_last_checkpoint(path, tmp_path, monkeypatch):
    file = tmp_path / "c"
    with pytest.raises(Stop):
        QKMeans(20, search="none", checkpoint=file, random_state=0, callback=stop_at(2)).fit(X)
    before = file.read_bytes()
    fsync = os.fsync

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"could not be written \(No space left on device\); the last one is intact"):
        QKMeans(20, search="none", checkpoint=file, random_state=0).fit(X)
    monkeypatch.setattr(os, "fsync", fsync)
    assert file.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["c", "x.npy"]
    QKMeans(20, search="none", checkpoint=file, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"checkpoint": 3}, TypeError, "checkpoint must be a path or None, got 3"),
        ({"checkpoint": "/nowhere/at/all"}, FileNotFoundError, "in a directory that does not exist"),
        ({"checkpoint": "c", "n_init": 3}, ValueError, "set n_init=1"),
        ({"checkpoint": "c", "init": lambda X, k, random_state: X[:k]}, ValueError, "set n_init=1"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number not below 1 or None"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        QKMeans(3, **options).fit(X[:100])
