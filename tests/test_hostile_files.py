"""Forged files of up to 20 MB: an InvalidModelError in 2 s and 500 MB, whatever is in them."""

import hashlib
import json
import re
import struct

import faiss
import numpy as np
import pytest
from fuzz_files import Reader, X, is_bad, mutate, samples, written

from quickmeans import QKMeans, QKNeighbors, QKNystroem
from quickmeans.search.lists import add_rows, make_lists, train_codes
from quickmeans.state import State

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def reader():
    with Reader() as reader:
        yield reader


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return samples(tmp_path_factory.mktemp("fuzz") / "samples")


@pytest.mark.parametrize("seed", range(4))
def test_random_changes(seed, kinds, reader, tmp_path):
    rng = np.random.default_rng(seed)
    outcomes = []
    for _ in range(100):
        source = kinds[rng.integers(len(kinds))]
        change = mutate(rng, source, tmp_path / source.name)
        outcome = reader.read(tmp_path / source.name)
        assert not is_bad(*outcome), (source.name, change, outcome)
        outcomes.append(outcome[0].split(":")[0])
    assert outcomes.count("loaded") > 5
    assert outcomes.count("InvalidModelError") > 50


# ---- large files --------------------------------------------------------------------------------------------------


def model(D, **options):
    """The state of a QKMeans of D features, to be forged."""
    state = (
        QKMeans(**{"n_clusters": 3, "compression": 2, "shortlist": 0, "random_state": 0} | options).fit(X).to_state()
    )
    tensors = {"mean": np.zeros(D), "objective_history": np.zeros(2)}
    return State("QKMeans", state.facts | {"n_features_in": D, "n_factors": 0}, tensors)


def add_sparse(state, q, n_rows, n_columns, per_row=0):
    """A sparse factor that takes a few bytes per row, or one if it has no coefficients."""
    rng, n = np.random.default_rng(0), n_rows * per_row
    parts = {
        "indptr": np.arange(n_rows + 1).astype(np.min_scalar_type(n)) * per_row,
        "indices": rng.integers(n_columns, size=n, dtype=np.uint32).astype(np.min_scalar_type(n_columns)),
        "data": np.ones(n, np.float32),
    }
    state.tensors |= {f"factors.{q}.{part}": array for part, array in parts.items()}
    state.facts["n_factors"] = max(state.facts["n_factors"], q + 1)
    return state


def add_dense(state, q, n_rows, n_columns):
    state.tensors[f"factors.{q}"] = np.ones((n_rows, n_columns), np.float32)
    state.facts["n_factors"] = max(state.facts["n_factors"], q + 1)
    return state


def with_header(text):
    """A file whose header has this text in place of the facts."""
    header = json.dumps({"__metadata__": {"quickmeans": text}}).encode()
    return len(header).to_bytes(8, "little") + header


def wide_product():
    return add_sparse(model(10_000), 0, 10_000_000, 10_000)


def many_rows():
    return add_sparse(model(1), 0, 15_000_000, 1)


def many_rows_in_many_factors():
    state = model(1)
    for q in range(64):
        add_sparse(state, q, 280_000, 280_000)
    return state


def many_factors():
    state = model(4)
    for q in range(20_000):
        add_dense(state, q, 4, 4)
    return state


def long_chain():
    return add_dense(add_dense(add_dense(model(1), 0, 1_000_000, 1), 1, 1, 1_000_000), 2, 1_000_000, 1)


def wide_chain():
    state = add_sparse(model(1000), 0, 2000, 200_000, 1)
    for q in range(1, 4):
        add_sparse(state, q, 200_000, 1000 if q == 3 else 200_000, 2)
    return state


def most_work():
    return add_sparse(add_sparse(model(1000), 0, 4000, 8000, 20), 1, 8000, 1000, 130)


def most_work_in_wide_factors():
    return add_sparse(add_sparse(model(1000), 0, 500, 100_000, 20), 1, 100_000, 1000, 4)


def largest_product():
    return add_dense(add_dense(model(4000), 0, 4000, 64), 1, 64, 4000)


def largest_with_centers():
    state = add_dense(add_dense(model(1000, shortlist="auto"), 0, 4000, 100), 1, 100, 1000)
    state.tensors["centers"] = np.ones((4000, 1000), np.float32)
    return state


def many_centers():
    state = model(1, shortlist="auto")
    state.tensors["centers"] = np.ones((4_900_000, 1), np.float32)
    return state


def many_centers_in_double_precision():
    state = model(2, shortlist="auto")
    state.facts |= {"working_dtype": "float64", "centers_dtype": "float64"}
    state.tensors["centers"] = np.ones((1_200_000, 2))
    return state


def many_features():
    state = model(2_400_000, shortlist="auto")
    state.tensors["mean"][:] = 1
    return state


def many_labels():
    state = model(4, shortlist="auto")
    state.tensors |= {"centers": np.eye(4, dtype=np.float32), "labels": np.zeros(19_000_000, np.uint8)}
    return state


def many_tensors():
    state = model(4)
    state.tensors |= {f"t{i}": np.zeros(0, np.uint8) for i in range(60_000)}
    return state


def nystroem(K, D, kernel="rbf"):
    """The state of a QKNystroem of K landmarks, without factors."""
    state = QKNystroem(kernel, n_components=3, landmarks="uniform", random_state=0).fit(X).to_state()
    tensors = {"mean": np.zeros(D), "normalization": np.eye(K, dtype=np.float32)}
    return State("QKNystroem", state.facts | {"n_factors": 0}, tensors)


def wide_landmarks():
    return add_sparse(nystroem(1000, 600_000), 0, 1000, 600_000, 1)


def largest_landmarks():
    return add_sparse(nystroem(1600, 10_000, "cosine"), 0, 1600, 10_000, 200)


def many_landmark_factors():
    state = nystroem(4, 4)
    for q in range(20_000):
        add_dense(state, q, 4, 4)
    return state


STATES = [
    wide_product, many_rows, many_rows_in_many_factors, many_factors, long_chain, wide_chain, most_work,
    most_work_in_wide_factors, largest_product,
    largest_with_centers, many_centers, many_centers_in_double_precision, many_features, many_labels, many_tensors,
    wide_landmarks, largest_landmarks, many_landmark_factors,
]  # fmt: skip


@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)
def test_large_states(make, reader, tmp_path):
    data = written(make())
    assert len(data) < 20.5 * MEGABYTE
    (tmp_path / "f").write_bytes(data)
    outcome = reader.read(tmp_path)
    assert not is_bad(*outcome), outcome


# ---- lists --------------------------------------------------------------------------------------------------------


def index_files(folder, lists, tensors=(), **facts):
    """The files of an index with other lists; their checksum is right."""
    fitted = QKNeighbors(n_lists=4, random_state=0).fit(X)
    state = fitted.to_state()
    name = f"f.{'0' * 16}.lists"
    state.facts |= {"lists": name, "lists_sha256": hashlib.sha256(lists).hexdigest()} | facts
    state.tensors |= dict(tensors)
    (folder / name).write_bytes(lists)
    (folder / "f").write_bytes(written(state))


def faiss_bytes(index):
    return faiss.serialize_index(index).tobytes()


def lists_of(ids, K=4, D=12):
    """faiss's lists of as many rows, with these ids."""
    lists = make_lists(X[:K, :D].copy(), "flat", False)
    add_rows(lists, np.resize(X, (len(ids), D)).copy(), np.arange(len(ids)) % K, np.array(ids, np.int64))
    return faiss_bytes(lists)


def header(letters, width, n_rows):
    return letters + struct.pack("<iqqq?i", width, n_rows, 0, 0, True, 1)


def many_lists():
    n = 4_800_000
    centroids = header(b"IxF2", 1, n) + struct.pack("<Q", n) + bytes(4 * n)
    lists = b"ilar" + struct.pack("<QQ", n, 4) + b"sprs" + struct.pack("<Q", 0)
    return header(b"IwFl", 1, 0) + struct.pack("<QQ", n, 1) + centroids + bytes(9) + lists


def huge_vector():
    lists = bytearray(lists_of(range(300)))
    begin = lists.index(b"full") + 4
    lists[begin + 8 : begin + 16] = (2**61).to_bytes(8, "little")
    return bytes(lists)


LISTS = {
    "another kind of index": (lambda: faiss_bytes(faiss.IndexFlatL2(12)), "it must have IwFl or IwSq or IwPQ"),
    "other centroids": (lambda: lists_of(range(300), K=5), "its lists must be those of its quantizer"),
    "other width": (lambda: lists_of(range(300), D=8), "its lists must be those of its quantizer"),
    "too few rows": (lambda: lists_of(range(299)), "must have 300 rows less 0"),
    "an id too large": (lambda: lists_of([*range(299), 300]), "must be below 300, and each must occur once"),
    "a negative id": (lambda: lists_of([*range(299), -1]), "must be below 300, and each must occur once"),
    "an id twice": (lambda: lists_of([*range(299), 7]), "must be below 300, and each must occur once"),
    "a huge vector": (huge_vector, "must have 300 rows in its lists"),
    "many lists": (many_lists, "not so many more than rows"),
    "nothing": (bytes, "is cut short|empty file"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_lists(kind, reader, tmp_path):
    make, message = LISTS[kind]
    index_files(tmp_path, make())
    outcome = reader.read(tmp_path)
    assert outcome[0].startswith("InvalidModelError")
    assert re.search(message, outcome[0]), outcome
    assert not is_bad(*outcome), outcome


def test_lists_that_are_right(reader, tmp_path):
    index_files(tmp_path, lists_of(range(300)))
    assert reader.read(tmp_path)[0] == "loaded"


def test_a_large_table_of_a_product_quantizer(reader, tmp_path):
    """faiss would take 1.3 GB for it."""
    K, D, rng = 20_000, 64, np.random.default_rng(0)
    rows = rng.standard_normal((K, D)).astype(np.float32)
    lists = make_lists(rows, "pq64", False)
    train_codes(lists, rows[:256])
    state = model(D, shortlist="auto")
    state.tensors["centers"] = rows
    quantizer = np.frombuffer(written(state), np.uint8)
    index_files(tmp_path, faiss_bytes(lists), {"quantizer": quantizer}, n_ids=0, n_features_in=D)
    outcome = reader.read(tmp_path)
    assert outcome[0] == "loaded", outcome
    assert not is_bad(*outcome), outcome


# ---- headers ------------------------------------------------------------------------------------------------------

HEADERS = {
    "nested lists": lambda n: "[" * n,
    "empty dictionaries": lambda n: '{"a":[' + "{}," * (n // 3) + "{}]}",
    "keys": lambda n: "{" + ",".join(f'"{i}":0' for i in range(n // 11)) + "}",
    "digits": lambda n: '{"format_version":' + "1" * n + "}",
    "decimals": lambda n: '{"format_version":1,"tol":0.' + "1" * n + "}",
    "names": lambda n: '{"format_version":1,"feature_names_in":[' + '"a",' * (n // 6) + '""]}',
}


@pytest.mark.parametrize(("kind", "size"), [*((kind, 3) for kind in HEADERS), ("empty dictionaries", 19)])
def test_large_headers(kind, size, reader, tmp_path):
    (tmp_path / "f").write_bytes(with_header(HEADERS[kind](size * MEGABYTE)))
    outcome = reader.read(tmp_path)
    assert outcome[0].startswith("InvalidModelError")
    assert not is_bad(*outcome), outcome
