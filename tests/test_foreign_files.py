"""Nothing but a model is read as one."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from saved import X, decoded, encoded

from quickmeans import InvalidModelError, load
from quickmeans.files import container

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
            name in ("sha256", "library_version", "factors_shapes")  # files of earlier versions have no shapes
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
        ({"format_version": 3}, r"has format version 3, but quickmeans \S+ reads versions up to 2; a newer"),
        ({"format_version": 0}, "does not say"),
        ({"format_version": "1"}, "does not say"),
        ({"class": "KMeans"}, "class must be QKMeans"),
        ({"margin": 2.0}, "margin must be between"),
        ({"inertia": float("nan")}, "inertia must be a finite float"),
        ({"n_candidates": 1e308}, r"n_candidates must be between 0.0 and 4.0, got 1e\+308"),
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
        ({"n_factors": 10**12}, "n_factors must be between 0 and 64"),
        ({"n_factors": 5}, "must have a tensor"),
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
    about = {"n_factors": 1, "factors_shapes": [[len(indptr) - 1, 24]]}
    return forged(PRODUCT, about, old | new | {"factors.0.data": np.array(data, np.float32)})


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
    data = forged(PRODUCT, {"n_factors": 1, "factors_shapes": [[n, n]], "n_features_in": n}, tensors)
    tracemalloc.start()
    refused(data, "so much more memory or time than its file")
    assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    tracemalloc.stop()
