"""Models in files: nothing is lost."""

import os
import pickle
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import scipy.sparse as sp
from saved import X, decoded, encoded, fitted, make_rows
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import quickmeans
from quickmeans import QKMeans, SparseProduct, load, state
from quickmeans.files import container

DATA = Path(__file__).parent / "data"


def check_same(model, again, rows):
    """Every attribute but the labels, and predictions, bit for bit."""
    for name in ("mean_", "cluster_centers_", "objective_history_"):
        expected, got = getattr(model, name), getattr(again, name)
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes()
    for name in ("inertia_", "n_iter_", "margin_", "n_candidates_", "n_features_in_", "product_", "_n_features_out"):
        assert getattr(again, name) == getattr(model, name)
    for exact in (False, True):
        np.testing.assert_array_equal(again.predict(rows, exact=exact), model.predict(rows, exact=exact))
    assert again.score(rows) == model.score(rows)
    assert again.transform(rows).tobytes() == model.transform(rows).tobytes()


# ---- round trips --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": 3},
        {"shortlist": 2, "compression": 3.5},
        {"shortlist": np.int64(2), "tol": np.float32(0)},
        {"shortlist": 0, "compression": 3},
        {"shortlist": 0, "solver": "palm4msa", "n_factors": 3},
        {"shortlist": 0, "solver": "hierarchical"},
        {"metric": "cosine", "compression": 3},
        {"n_clusters": 1},
        {"init": "random", "n_init": 2, "random_state": None},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_nothing_is_lost(tmp_path, dtype, options):
    rows = make_rows(dtype) if dtype != np.uint8 else np.clip(make_rows() * 9 + 90, 0, 255).astype(dtype)
    model = fitted(rows, **options)
    model.save(tmp_path / "model")
    again = quickmeans.load(tmp_path / "model")
    check_same(model, again, rows)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "labels_")
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_products_of_every_kind(tmp_path):
    """None, dense factors, sparse ones, and indices of more than one size."""
    rows = make_rows(D=300)
    for options in ({"n_clusters": 2}, {"shortlist": 0, "compression": 1}, {"shortlist": 0, "compression": 2}):
        model = fitted(rows, **options)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        check_same(model, again, rows)
        if model.product_ is not None:
            kinds = [type(S) for S in model.product_.factors]
            assert [type(S) for S in again.product_.factors] == kinds
    assert fitted(rows, n_clusters=2).product_ is None


def test_labels_if_asked_for(tmp_path):
    model = fitted()
    model.save(tmp_path / "model", labels=True)
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert again.labels_.dtype == np.int32
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="loaded without labels_"):
        load(tmp_path / "model").save(tmp_path / "model", labels=True)


def test_feature_names(tmp_path):
    frame = pd.DataFrame(X, columns=[f'"sha256":"{"0" * 64}" é{i}' for i in range(X.shape[1])])
    model = fitted(frame)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns=str.upper))
    np.testing.assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())


def test_what_is_not_stored_has_its_default(tmp_path):
    model = fitted(init=X[:10], random_state=np.random.RandomState(0), n_threads=1, callback=lambda *_: False)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    check_same(model, again, X)
    assert (again.init, again.random_state, again.n_threads, again.callback) == ("k-means++", None, None, None)
    again.fit(X)


@pytest.mark.parametrize(("before", "after"), [("auto", 0), (0, "auto"), (2, 0)])
def test_parameters_set_after_the_fit_do_not_change_the_model(tmp_path, before, after):
    model = fitted(shortlist=before, compression=3)
    labels = model.predict(X)
    model.set_params(shortlist=after, n_clusters=3, metric="euclidean")
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        check_same(model, again, X)
        np.testing.assert_array_equal(again.predict(X), labels)
        assert again.get_params() == model.get_params()


def test_a_loaded_model_can_be_pickled(tmp_path):
    model = fitted(shortlist=0, compression=3)
    model.save(tmp_path / "model")
    check_same(model, pickle.loads(pickle.dumps(load(tmp_path / "model"))), X)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_without_a_shortlist_no_dense_centroids_are_stored():
    rows = make_rows(n=300, D=500)
    model = fitted(rows, n_clusters=60, shortlist=0, compression=20)
    size = len(container.encode(model.to_state()))
    assert size < 3000 + 8 * model.product_.nnz + model.mean_.nbytes
    assert size < model.cluster_centers_.nbytes / 4


def test_centroids_that_would_be_far_larger_than_the_file_are_stored(monkeypatch):
    model = fitted(shortlist=0, compression=3)
    monkeypatch.setattr(state, "_SMALL_FILE", model.to_state().n_bytes)
    monkeypatch.setattr(state, "_MOST_ENTRIES", 0)
    data = container.encode(model.to_state())
    assert "centers" in safetensors.numpy.load(data)
    monkeypatch.undo()
    check_same(model, decoded(data), X)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_another_process_with_other_threads(tmp_path, threads):
    models = {"screened": fitted(n_threads=2), "product": fitted(shortlist=0, compression=3, n_threads=2)}
    np.save(tmp_path / "X.npy", X)
    for name, model in models.items():
        model.save(tmp_path / name)
    code = (
        "import numpy as np, quickmeans\n"
        "for name in ('screened', 'product'):\n"
        "    np.save(name + '.npy', quickmeans.load(name).predict(np.load('X.npy')))"
    )
    env = os.environ | {"QUICKMEANS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)
    for name, model in models.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), model.predict(X))


# ---- files that must load for ever --------------------------------------------------------------------------------


def whole_rows():
    """Rows of whole numbers, the same everywhere: four groups, far from each other."""
    i, j = np.ogrid[:80, :12]
    return ((i * i * 31 + j * j * 17 + i * j * 7) % 11 + 40 * ((i % 4) == (j % 4))).astype(np.float32)


VERSIONS = {  # model-1-*.safetensors, model-2-*.safetensors
    "screened": {"n_clusters": 4, "compression": 2, "random_state": 0},
    "product": {"n_clusters": 4, "compression": 2, "random_state": 0, "shortlist": 0},
    "dense": {"n_clusters": 4, "random_state": 0},
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", VERSIONS)
def test_models_of_all_versions(kind, version):
    model = load(DATA / f"model-{version}-{kind}.safetensors")
    rows = whole_rows()
    if kind == "dense":
        rows = pd.DataFrame(rows, columns=[f"x{j}" for j in range(12)])
        assert list(model.feature_names_in_) == list(rows)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    np.testing.assert_array_equal(model.labels_, model.labels_[np.arange(80) % 4])
    assert model.get_params().items() >= VERSIONS[kind].items()
    assert (model.product_ is None) == (kind == "dense")
    np.testing.assert_allclose(-model.score(rows), model.inertia_, rtol=1e-5)


def test_features_of_all_versions():
    model = load(DATA / "nystroem-2.safetensors")  # QKNystroem(gamma=1e-4, n_components=80, landmarks="uniform")
    kernel = model.approximate_kernel(whole_rows().astype(np.float64))
    np.testing.assert_allclose(kernel, rbf_kernel(whole_rows(), gamma=1e-4), atol=1e-3)


@pytest.mark.parametrize("payload", ["flat", "sq8", "pq4x4"])
def test_indexes_of_all_versions(payload):
    index = load(DATA / f"index-2-{payload}")  # QKNeighbors(n_lists=4, nprobe=4, random_state=0); row 3 was removed
    assert (index.payload, index.n_samples_fit_) == (payload, 79)
    distances, ids = index.kneighbors(whole_rows(), 1)
    assert 3 not in ids
    if payload == "flat":
        assert not np.delete(distances, 3).any()


# ---- the file itself ----------------------------------------------------------------------------------------------


def test_the_same_model_gives_the_same_file():
    assert encoded() == encoded()


@pytest.mark.parametrize("function", ["replace", "fsync", "fchmod"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, function, error):
    path = tmp_path / "model"
    fitted().save(path)
    before = path.read_bytes()

    def fail(*_):
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(error):
        fitted(n_clusters=3).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_no_room(tmp_path):
    model, path = fitted(), tmp_path / "model"
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []


def test_permissions_are_those_of_any_file(tmp_path):
    path = tmp_path / "model"
    mask = os.umask(0o027)
    try:
        fitted().save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        fitted().save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(mask)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to("model")
    fitted().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    load(tmp_path / "model")


def test_errors_of_the_file_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        fitted().save(tmp_path / "none" / "model")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(IsADirectoryError):
        fitted().save(tmp_path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(TypeError):
        load(3)


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        QKMeans().save(tmp_path / "model")
    with pytest.raises(ValueError, match="compression must be a finite number"):
        fitted().set_params(compression=np.inf).save(tmp_path / "model")
    with pytest.raises(ValueError, match="n_clusters must be"):
        fitted().set_params(n_clusters=-1).save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_product_that_could_not_be_loaded_is_not_saved(tmp_path):
    S, T = np.indices((4000, 100)), np.indices((200_000, 3))
    left = sp.csr_array((np.ones(S[0].size), (S[0].ravel(), (S[0] + 1900 * S[1]).ravel())), shape=(4000, 200_000))
    right = sp.csr_array((np.ones(T[0].size), (T[0].ravel(), T[1].ravel())), shape=(200_000, 24))
    wide = SparseProduct([left, right])
    stored = state.State("QKMeans", {}, {})
    stored.add_product(wide)
    with pytest.raises(ValueError, match=r"SparseProduct\(4000 x 24, .*\) cannot be stored: .* at most 64 factors"):
        container.write(tmp_path / "model", stored)
    stored = state.State("QKMeans", {}, {})
    stored.add_product(SparseProduct([np.eye(3)] * 65))
    with pytest.raises(ValueError, match="cannot be stored"):
        container.write(tmp_path / "model", stored)
    assert not os.listdir(tmp_path)


def test_a_file_from_before_metric_has_it():
    stored = state.State("QKMeans", {"parameters": {"spherical": True, "tol": 0.5}}, {})
    assert stored.parameters({"metric", "tol"}) == {"metric": "cosine", "tol": 0.5}
