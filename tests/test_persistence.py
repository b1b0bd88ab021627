"""Models in files: nothing is lost, and nothing but a model is read as one."""

import io
import json
import os
import pickle
import resource
import signal
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from sklearn.exceptions import NotFittedError

import quickmeans
from quickmeans import QKMeans, container, persistence
from quickmeans.container import InvalidModelError
from quickmeans.persistence import load, save

DATA = Path(__file__).parent / "data"


def make_rows(dtype=np.float32, n=400, D=24):
    rng = np.random.default_rng(1)
    centers = 3 * rng.standard_normal((12, D))
    return (centers[rng.integers(12, size=n)] + rng.standard_normal((n, D)) + 2).astype(dtype)


X = make_rows()


def fitted(rows=X, **options):
    return QKMeans(**{"n_clusters": 10, "max_iter": 5, "random_state": 0} | options).fit(rows)


def encoded(**options):
    return persistence.encode_model(fitted(**options), labels=True)


def decoded(data):
    return persistence.read_model(io.BytesIO(data))


def check_same(model, again, rows):
    """Every attribute but the labels, and predictions, bit for bit."""
    for name in ("mean_", "cluster_centers_", "objective_history_"):
        expected, got = getattr(model, name), getattr(again, name)
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes()
    for name in ("inertia_", "n_iter_", "reach_", "n_candidates_", "n_features_in_", "product_", "_n_features_out"):
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
        {"spherical": True, "compression": 3},
        {"n_clusters": 1},
        {"init": "random", "n_init": 2, "random_state": None},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Only .* clusters have rows")
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
        save(model, tmp_path / "model")
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
    with pytest.raises(ValueError, match="no labels_"):
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
    model.set_params(shortlist=after, n_clusters=3, spherical=False)
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        check_same(model, again, X)
        np.testing.assert_array_equal(again.predict(X), labels)
        assert again.get_params() == model.get_params()


def test_a_loaded_model_can_be_pickled(tmp_path):
    model = fitted(shortlist=0, compression=3)
    model.save(tmp_path / "model")
    check_same(model, pickle.loads(pickle.dumps(load(tmp_path / "model"))), X)


@pytest.mark.filterwarnings("ignore:Only .* clusters have rows")
def test_without_a_shortlist_no_dense_centroids_are_stored():
    rows = make_rows(n=300, D=500)
    model = fitted(rows, n_clusters=60, shortlist=0, compression=20)
    size = len(persistence.encode_model(model, labels=False))
    assert size < 3000 + 8 * model.product_.nnz + model.mean_.nbytes
    assert size < model.cluster_centers_.nbytes / 4


def test_centroids_that_would_be_far_larger_than_the_file_are_stored(monkeypatch):
    model = fitted(shortlist=0, compression=3)
    monkeypatch.setattr(persistence, "_LARGEST_EXPANSION", 0.5)
    data = persistence.encode_model(model, labels=False)
    assert "centers" in safetensors.numpy.load(data)
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


VERSION_1 = {
    "screened": {"n_clusters": 4, "compression": 2, "random_state": 0},
    "product": {"n_clusters": 4, "compression": 2, "random_state": 0, "shortlist": 0},
    "dense": {"n_clusters": 4, "random_state": 0},
}


@pytest.mark.parametrize("kind", VERSION_1)
def test_format_version_1(kind):
    model = load(DATA / f"model-1-{kind}.safetensors")
    rows = whole_rows()
    if kind == "dense":
        rows = pd.DataFrame(rows, columns=[f"x{j}" for j in range(12)])
        assert list(model.feature_names_in_) == list(rows)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    np.testing.assert_array_equal(model.labels_, model.labels_[np.arange(80) % 4])
    assert model.get_params().items() >= VERSION_1[kind].items()
    assert (model.product_ is None) == (kind == "dense")
    np.testing.assert_allclose(-model.score(rows), model.inertia_, rtol=1e-5)


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
    with pytest.raises(TypeError, match="must be a QKMeans or a QKNystroem, got int"):
        save(3, tmp_path / "model")
    with pytest.raises(ValueError, match="compression must be a finite number"):
        fitted().set_params(compression=np.inf).save(tmp_path / "model")
    with pytest.raises(ValueError, match="n_clusters must be"):
        fitted().set_params(n_clusters=-1).save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


# ---- files that are no models -------------------------------------------------------------------------------------


def refused(data, match=None):
    with pytest.raises(InvalidModelError, match=match):
        decoded(data)


def test_the_error_names_the_file(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"hello")
    with pytest.raises(InvalidModelError, match=r"model is cut short, or is no safetensors file\.$"):
        load(path)
    assert issubclass(InvalidModelError, ValueError)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"\xff" * 100,
        pickle.dumps(X),
        b"\x02" + b"\0" * 7 + b"[]",
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
        (5000).to_bytes(8, "little") + b"1" * 5000,
        safetensors.numpy.save({"X": X}),
        safetensors.numpy.save({"X": X}, {"format": "pt"}),
        safetensors.numpy.save({"X": X}, {"quickmeans": "hello"}),
        safetensors.numpy.save({"X": X}, {"quickmeans": "[" * 100_000}),
        safetensors.numpy.save({"X": X}, {"quickmeans": '{"format_version":1}'}),
    ],
    ids=range(12),
)
def test_foreign_files(data):
    refused(data)


def test_a_safetensors_file_of_somebody_else():
    refused(safetensors.numpy.save({"X": X}, {"format": "pt"}), r"is not a model of quickmeans\.")


SMALL = [encoded(n_clusters=3), encoded(n_clusters=4, shortlist=0, compression=3), encoded(compression=4)]


@pytest.mark.parametrize("data", SMALL, ids=["dense", "product", "screened"])
def test_every_byte_counts(data):
    rng = np.random.default_rng(0)
    for i in range(len(data)):
        changed = bytearray(data)
        changed[i] ^= 1 << int(rng.integers(8))
        refused(bytes(changed))


@pytest.mark.parametrize("data", SMALL, ids=["dense", "product", "screened"])
def test_every_mutation_is_found(data):
    rng = np.random.default_rng(0)
    for _ in range(1500):
        i, j = sorted(int(k) for k in rng.integers(len(data) + 1, size=2))
        noise = rng.bytes(int(rng.integers(1, 9)))
        k = int(rng.integers(len(data)))
        for changed in (
            data[:i],
            data[i:],
            data[:i] + noise + data[i:],
            data[:i] + noise + data[i + len(noise) :],
            data[:i] + data[j:],
            data[:i] + data[i:j] * 2 + data[j:],
            rng.bytes(8) + data[8:],
            data[:k] + data[k:].swapcase(),
        ):
            if changed != data:
                refused(changed)


def test_every_truncation_and_every_length_of_the_header():
    data = SMALL[1]
    for i in range(len(data)):
        refused(data[:i])
        if i != int.from_bytes(data[:8], "little"):
            refused(i.to_bytes(8, "little") + data[8:])


# ---- forged files: the checksum is right ----------------------------------------------------------------------------


def unpacked(data):
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return json.loads(header.pop("__metadata__")["quickmeans"]), header, data[8 + length :]


def packed(about, tensors, payload):
    about = about | {"sha256": "0" * 64}
    metadata = {"quickmeans": json.dumps(about, separators=(",", ":"))}
    header = json.dumps({"__metadata__": metadata, **tensors}, separators=(",", ":")).encode()
    return container.signed(len(header).to_bytes(8, "little") + header + payload)


def forged(data, about=(), tensors=()):
    """The file with other entries in its header, or other tensors (None: without it)."""
    old, _, _ = unpacked(data)
    arrays = {
        name: array for name, array in (safetensors.numpy.load(data) | dict(tensors)).items() if array is not None
    }
    whole = safetensors.numpy.save(arrays, {})
    return packed(old | dict(about), *unpacked_tensors(whole))


def unpacked_tensors(data):
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length :]


def refused_or_usable(data):
    """Whether it was loaded; then it can be used, though its numbers may be too large for it."""
    try:
        model = decoded(data)
    except InvalidModelError:
        return False
    try:
        labels = model.predict(X)
        assert labels.min() >= 0
        assert labels.max() < len(model.cluster_centers_)
    except ValueError:
        pass
    return True


def test_packing_alone_changes_nothing():
    for data in SMALL:
        assert refused_or_usable(packed(*unpacked(data)))
        assert refused_or_usable(forged(data))


JUNK = [
    None,
    True,
    -1,
    0,
    1,
    2.5,
    10**9,
    10**400,
    -0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "auto",
    "float32",
    [],
    {},
]


@pytest.mark.parametrize("data", SMALL, ids=["dense", "product", "screened"])
def test_forged_headers(data):
    about, tensors, payload = unpacked(data)
    for name in about:
        assert not refused_or_usable(packed({k: v for k, v in about.items() if k != name}, tensors, payload)) or (
            name in ("sha256", "library_version")
        )
        for value in JUNK:
            refused_or_usable(packed(about | {name: value}, tensors, payload))
    for name in [*about["parameters"], "n_threads", "callback", "other"]:
        for value in JUNK:
            refused_or_usable(packed(about | {"parameters": about["parameters"] | {name: value}}, tensors, payload))
    for name, entry in tensors.items():
        for part in entry:
            for value in [*JUNK, [0], [-1], [1, 1], [2**40], [2**63], [0, 8], "F16", "BF16", "U8", "I64", "F32", "F64"]:
                refused_or_usable(packed(about, tensors | {name: entry | {part: value}}, payload))
        for other in tensors:
            refused_or_usable(packed(about, tensors | {name: tensors[other]}, payload))


@pytest.mark.parametrize("data", SMALL, ids=["dense", "product", "screened"])
def test_forged_numbers(data):
    rng = np.random.default_rng(0)
    about, tensors, payload = unpacked(data)
    loaded = 0
    for _ in range(1500):
        changed = bytearray(payload)
        for i in rng.integers(len(payload), size=int(rng.integers(1, 4))):
            changed[i] = int(rng.integers(256))
        loaded += refused_or_usable(packed(about, tensors, bytes(changed)))
    assert 0 < loaded < 1500


PRODUCT = SMALL[1]


@pytest.mark.parametrize(
    ("about", "match"),
    [
        ({"format_version": 2}, r"has format version 2, but quickmeans \S+ reads versions up to 1; a newer"),
        ({"format_version": 0}, "format version 1"),
        ({"format_version": "1"}, "does not say"),
        ({"class": "KMeans"}, "class QKMeans"),
        ({"reach": 2.0}, "reach must be between"),
        ({"inertia": float("nan")}, "inertia must be a finite float"),
        ({"n_iter": 1.5}, "n_iter must be a finite int"),
        ({"n_features_in": 3}, "n_features_in must be"),
        ({"parameters": {"n_clusters": 0}}, "n_clusters must be"),
        ({"parameters": {"compression": [2]}}, "parameters must be"),
        ({"parameters": {"sorcery": 1}}, "knows no parameter 'sorcery'"),
        ({"parameters": {"n_threads": 1}}, "knows no parameter 'n_threads'"),
        ({"parameters": {"init": 1}}, "init must be a string"),
        ({"shortlist": -1}, "shortlist must be"),
        ({"shortlist": 1}, "must have a tensor 'centers'"),
        ({"spherical": 1}, "spherical must be"),
        ({"working_dtype": "float16"}, "working_dtype must be"),
        ({"working_dtype": "float64"}, "dtype float64"),
        ({"n_factors": 10**12}, "must have a tensor"),
        ({"n_factors": 0}, "must have a tensor 'centers'"),
        ({"feature_names_in": ["a"]}, "24 feature names, or none"),
        ({"feature_names_in": [1] * 24}, "list of strings"),
    ],
    ids=str,
)
def test_wrong_entries(about, match):
    refused(forged(PRODUCT, about), match)


@pytest.mark.parametrize(
    ("tensors", "match"),
    [
        ({"mean": None}, "must have a tensor 'mean'"),
        ({"mean": np.zeros((1, 24))}, "mean must have 1 axes"),
        ({"mean": np.zeros(24, np.float32)}, "mean must have 1 axes and dtype float64"),
        ({"mean": np.full(24, np.nan)}, "mean must be finite"),
        ({"mean": np.full(24, 1e300)}, "squared norms"),
        ({"mean": np.zeros(0)}, "n_features_in must be"),
        ({"objective_history": np.zeros(3, np.int64)}, "objective_history must have"),
        ({"labels": np.array([0, 4], np.uint8)}, "labels must be below 4"),
        ({"labels": np.array([-1])}, "labels must have"),
        ({"more": np.zeros(1)}, "must not have a tensor 'more'"),
        ({"centers": np.zeros((3, 24), np.float32)}, r"product must have shape \(3, 24\)"),
        ({"centers": np.zeros((0, 24), np.float32)}, "at least one row"),
        ({"centers": np.zeros((4, 23), np.float32)}, "one column per feature"),
        ({"centers": np.full((4, 24), 1e30, np.float32)}, "squared norms"),
    ],
    ids=str,
)
def test_wrong_tensors(tensors, match):
    refused(forged(PRODUCT, tensors=tensors), match)


def with_one_factor(indptr, indices, data):
    """A model whose product is one sparse factor of 3 rows."""
    old = {name: None for name in safetensors.numpy.load(PRODUCT) if name.startswith("factors") or name == "labels"}
    parts = {"indptr": np.array(indptr, np.uint64), "indices": np.array(indices, np.uint64)}
    new = {f"factors.0.{name}": array for name, array in parts.items()}
    return forged(PRODUCT, {"n_factors": 1}, old | new | {"factors.0.data": np.array(data, np.float32)})


def test_a_sparse_factor():
    model = decoded(with_one_factor([0, 1, 1, 3], [23, 0, 5], [1, 2, 3]))
    assert model.product_.shape == (3, 24)
    assert model.product_.toarray()[2, 5] == 3
    model.predict(X)


@pytest.mark.parametrize(
    ("indptr", "indices", "data", "match"),
    [
        ([0, 1, 1, 3], [24, 0, 5], [1, 2, 3], "column below 24"),
        ([0, 1, 1, 3], [2**63, 0, 5], [1, 2, 3], "column below 24"),
        ([0, 1, 1, 3], [0, 5], [1, 2, 3], "column below 24"),
        ([0, 2, 1, 3], [1, 0, 5], [1, 2, 3], "must ascend"),
        ([0, 2**63, 1, 3], [1, 0, 5], [1, 2, 3], "must ascend"),
        ([1, 1, 1, 3], [1, 0, 5], [1, 2, 3], "must ascend"),
        ([0, 1, 1, 2], [1, 0, 5], [1, 2, 3], "must ascend"),
        ([0, 1, 1, 4], [1, 0, 5], [1, 2, 3], "must ascend"),
        ([0], [], [], "must ascend"),
        ([], [], [], "must ascend"),
        ([0, 1, 1, 3], [1, 0, 5], [1, np.inf, 3], "must be finite"),
        ([0, 1, 1, 3], [1, 5, 5], [1, 3e38, 3e38], "finite"),
        ([0, 1, 1, 3], [1, 0, 5], [1, 1e30, 3], "squared norms"),
    ],
)
def test_wrong_sparse_factors(indptr, indices, data, match):
    refused(with_one_factor(indptr, indices, data), match)


def test_a_small_file_does_not_take_much_memory():
    n = 300_000
    tensors = dict.fromkeys(safetensors.numpy.load(PRODUCT))
    tensors |= {"mean": np.zeros(n), "objective_history": np.zeros(1), "factors.0.indptr": np.zeros(n + 1, np.uint8)}
    tensors |= {"factors.0.indices": np.zeros(0, np.uint8), "factors.0.data": np.zeros(0, np.float32)}
    data = forged(PRODUCT, {"n_factors": 1, "n_features_in": n}, tensors)
    tracemalloc.start()
    refused(data, "so much larger than the file")
    assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    tracemalloc.stop()
