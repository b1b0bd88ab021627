"""Indexes with ids of one's own, of rows from files, and as files for faiss."""

import json

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import done, refused, run
from hypothesis import given
from hypothesis import strategies as st

import quickmeans
from quickmeans import InvalidModelError, QKMeans, QKNeighbors, load, open_rows
from quickmeans.files import indexes
from quickmeans.search import input as search_input
from quickmeans.search.coarse import CoarseSettings, NearestLists
from quickmeans.search.ids import RowIds
from quickmeans.search.index import InvertedIndex
from quickmeans.search.input import ArrayInput, SourceInput
from quickmeans.search.lists import make_lists
from quickmeans.search.metrics import METRICS
from quickmeans.search.storage import write_lists
from quickmeans.search.tuning import fewest_probes
from quickmeans.state import State


def make(n=400, D=8, seed=0):
    rng = np.random.default_rng(seed)
    return (np.repeat(3 * rng.standard_normal((n // 10, D)), 10, axis=0) + rng.standard_normal((n, D))).astype("f4")


X = make()
NUMBERS = 10**15 - 7 * np.arange(len(X))
WORDS = [f"key-{i % 7}-é{i}" for i in range(len(X))]


def built(ids=None, rows=X, **options):
    return QKNeighbors(**{"n_neighbors": 4, "random_state": 0} | options).fit(rows, ids=ids)


@pytest.mark.parametrize("ids", [NUMBERS, NUMBERS.tolist(), WORDS, pd.Series(WORDS), np.array(WORDS)])
def test_searches_return_ids_of_ones_own(ids):
    own, plain = np.asarray(ids), built()
    index = built(ids)
    distances, found = index.kneighbors(X[:50])
    expected, rows = plain.kneighbors(X[:50])
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(found, own[rows])
    near, expected_near = (i.radius_neighbors(X[:20], 2.0, return_distance=False) for i in (index, plain))
    for a, b in zip(near, expected_near, strict=True):
        assert a.tolist() == own[b].tolist()
    assert (index.kneighbors_graph(X[:5]) != plain.kneighbors_graph(X[:5])).nnz == 0  # columns are row numbers


@pytest.mark.parametrize("ids", [NUMBERS, np.array(WORDS, object)])
def test_rows_come_and_go_by_their_ids(tmp_path, ids):
    index = built(ids[:300], X[:300])
    added = index.add(X[300:], ids[300:])
    np.testing.assert_array_equal(added, ids[300:])
    index.remove(ids[[5, 350, 5]])
    assert index.n_samples_fit_ == 398
    assert ids[5] not in index.kneighbors(X[5:6])[1]
    with pytest.raises(ValueError, match="no row with id"):
        index.remove(ids[[6, 5]])
    assert index.n_samples_fit_ == 398
    index.add(X[5:6], ids[[5]])  # free again
    assert index.kneighbors(X[5:6])[1][0, 0] == ids[5]
    index.save(tmp_path / "index")
    again = load(tmp_path / "index")
    np.testing.assert_array_equal(again.kneighbors(X)[1], index.kneighbors(X)[1])
    assert again.recall_ == index.recall_
    again.remove(ids[[5]])
    with pytest.raises(ValueError, match="both have"):
        again.add(X[:1], ids[[6]])
    again.remove([])
    again.remove(again.add(X[:1], ids[[5]]))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (NUMBERS[:-1], ValueError, "ids must be 400, one for each row, got 399"),
        ([*WORDS, "x"], ValueError, "ids must be 400, one for each row, got 401"),
        (np.zeros((400, 1), int), ValueError, r"ids must be 400, one for each row, got shape \(400, 1\)"),
        ([*WORDS[:-1], WORDS[3]], ValueError, "ids must differ, but rows 3 and 399 both have 'key-3-é3'"),
        ([*range(399), 0], ValueError, "ids must differ, but rows 0 and 399 both have"),
        (np.arange(400.0), TypeError, "whole numbers or strings, got 0.0"),
        ([None, *WORDS[1:]], TypeError, "whole numbers or strings, got None"),
        (np.full(400, 2**63, np.uint64), ValueError, r"below 2\*\*63"),
        (np.zeros(400, bool), TypeError, "whole numbers or strings, got False"),
    ],
)
def test_ids_that_cannot_be(ids, error, message):
    index = built(NUMBERS)
    with pytest.raises(error, match=message):
        index.fit(X, ids=ids)
    assert index.kneighbors(X[:1])[1][0, 0] == NUMBERS[0]  # as it was


def test_ids_are_of_one_kind():
    with pytest.raises(ValueError, match="row numbers as ids; give none"):
        built().add(X[:1], ids=[1000])
    index = built(NUMBERS)
    with pytest.raises(ValueError, match="ids of your own; give one for each row"):
        index.add(X[:1])
    with pytest.raises(TypeError, match="whole numbers, got strings"):
        index.add(X[:1], ids=["a"])
    with pytest.raises(TypeError, match="ids must be whole numbers"):
        index.remove(["a"])
    assert index.n_samples_fit_ == 400


@given(st.lists(st.text(max_size=5), max_size=20, unique=True))
def test_any_strings_are_ids(texts):
    ids = RowIds(np.zeros(0, bool)).extended(len(texts), texts).without(np.arange(len(texts) // 3))
    again = RowIds.from_state(State("", {"n_ids": len(ids)}, ids.tensors()))
    everything = np.arange(len(texts))
    assert again.of(everything).tolist() == ids.of(everything).tolist() == texts
    left = texts[len(texts) // 3 :]
    np.testing.assert_array_equal(again.rows(left[::-1]), everything[len(texts) // 3 :])


def test_text_that_cannot_be_written():
    with pytest.raises(ValueError, match="UTF-8"):
        built([*WORDS[1:], "\ud800"])


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t | {"ids.ends": t["ids.ends"][::-1].copy()},
        lambda t: t | {"ids.ends": t["ids.ends"][:-1].copy()},
        lambda t: t | {"ids.text": t["ids.text"][:-1].copy()},
        lambda t: t | {"ids.text": np.full_like(t["ids.text"], 255)},
        lambda t: t | {"ids.text": np.full_like(t["ids.text"], 65)},  # some repeat
        lambda t: {name: a for name, a in t.items() if name != "ids.text"},
    ],
)
def test_forged_ids(tmp_path, change):
    index = built(WORDS)
    state = index.to_state()
    state.tensors = change(state.tensors)
    indexes.write(tmp_path / "index", state, lambda write: write_lists(index._index.lists, write))
    with pytest.raises(InvalidModelError, match="index is not a valid model"):
        load(tmp_path / "index")


# ---- rows from files ----------------------------------------------------------------------------------------------


@pytest.fixture
def blocks(monkeypatch):
    """Chunks of few rows."""
    monkeypatch.setattr("quickmeans.data.source.CHUNK_BYTES", 50 * X[0].nbytes)


@pytest.mark.parametrize(
    ("metric", "payload"),
    [("euclidean", "flat"), ("cosine", "flat"), ("inner_product", "sq8"), ("cosine", "sq8"), ("euclidean", "pq4x4")],
)
def test_rows_of_a_file(tmp_path, blocks, metric, payload):
    rows = make(1000)
    np.save(tmp_path / "rows.npy", rows)
    index = built(None, tmp_path / "rows.npy", metric=metric, payload=payload, recall=0.9)
    assert (index.n_samples_fit_, index.n_features_in_) == (1000, 8)
    assert 0.9 <= index.recall_ <= 1
    distances, ids = index.kneighbors(tmp_path / "rows.npy")  # queries block by block
    in_one, ids_in_one = index.kneighbors(rows)
    np.testing.assert_allclose(distances, in_one, rtol=1e-3, atol=1e-3)
    assert (ids == ids_in_one).mean() > 0.99
    near = index.radius_neighbors(tmp_path / "rows.npy", 0.5, return_distance=False)
    assert len(near) == 1000
    prepared = rows / np.linalg.norm(rows, axis=1, keepdims=True) if metric == "cosine" else rows
    scores = prepared @ prepared.T
    if metric == "euclidean":
        scores -= (prepared**2).sum(axis=1) / 2
    true = np.argsort(-scores, axis=1)[:, :4]
    found = np.mean([len(set(a) & set(b)) / 4 for a, b in zip(true, ids, strict=True)])
    assert found > {"flat": 0.85, "sq8": 0.8, "pq4x4": 0.3}[payload]


def test_rows_of_a_function_and_more_of_them(blocks):
    index = built(NUMBERS, lambda: np.array_split(X, 7))
    assert index.n_samples_fit_ == 400
    assert index.kneighbors(X[7:8])[1][0, 0] == NUMBERS[7]
    index.add(lambda: np.array_split(X + 50, 3), ids=NUMBERS - 1)
    assert index.kneighbors(X[399:] + 50)[1][0, 0] == NUMBERS[399] - 1


def test_a_file_that_fails_leaves_the_index(blocks):
    index = built(NUMBERS)
    reads = []

    def chunks():
        reads.append(1)
        yield X[:200]
        if len(reads) > 2:  # after it was opened and labelled
            raise OSError("gone")
        yield X[200:]

    with pytest.raises(OSError, match="gone"):
        index.add(chunks, ids=NUMBERS - 1)
    assert index.n_samples_fit_ == 400
    index.add(X, ids=NUMBERS - 1)


def test_wrong_rows_of_a_file(tmp_path, blocks):
    rows = X.copy()
    rows[321, 3] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(ValueError, match=r"rows.npy contains NaN.* in row 321"):
        built(None, tmp_path / "rows.npy")
    rows[321] = 0
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(ValueError, match=r"Row 321 of .*rows.npy is zero"):
        built(None, tmp_path / "rows.npy", metric="cosine")
    assert built(None, tmp_path / "rows.npy", metric="inner_product").n_samples_fit_ == 400
    with pytest.raises(ValueError, match="8 columns"):
        built(None, make(D=9)).kneighbors(tmp_path / "rows.npy")


def test_memory_is_that_of_the_lists(tmp_path, monkeypatch):
    """With a payload of few bytes, no more than a block of the rows is held at a time."""
    monkeypatch.setattr("quickmeans.data.source.CHUNK_BYTES", 1 << 14)
    held = []
    plain = search_input.SourceInput.blocks

    def watched(self):
        for place, block in plain(self):
            held.append(block.nbytes)
            yield place, block

    monkeypatch.setattr(search_input.SourceInput, "blocks", watched)
    np.save(tmp_path / "rows.npy", make(2000))
    built(None, tmp_path / "rows.npy", payload="pq4x4")
    assert len(held) > 4
    assert max(held) <= 1 << 14


# ---- recall -------------------------------------------------------------------------------------------------------


def test_the_measured_recall_is_that_of_searches():
    rows = make(3000, 16)
    index = built(None, rows, recall=0.9, n_neighbors=5)
    exact = built(None, rows, n_neighbors=6, nprobe=1, n_lists=1).kneighbors(rows, return_distance=False)[:, 1:]
    found = index.kneighbors(rows, 6, return_distance=False)
    share = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, found, strict=True)])
    assert abs(index.recall_ - share) < 0.05
    assert built(None, rows, nprobe=3).recall_ is None


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_find_the_same_recall(blocks, metric):
    rows = np.random.default_rng(0).standard_normal((1000, 8)).astype(np.float32)
    prepared = METRICS[metric].prepare(rows, "X")
    coarse = QKMeans(40, random_state=0).fit(prepared)
    sample = np.arange(0, 1000, 9)

    similarity = METRICS[metric].similarity
    finder = NearestLists(coarse.cluster_centers_, CoarseSettings(), 1, similarity=similarity)
    lists = make_lists(coarse.cluster_centers_, "flat", similarity)
    index = InvertedIndex(lists, RowIds(np.zeros(0, bool)), METRICS[metric], coarse.assigner_, finder)

    def found(given):
        return fewest_probes(given, sample, given.take(sample), coarse.labels_, index, 5, 0.9, 1)

    in_blocks = SourceInput(open_rows(rows), METRICS[metric])
    assert len(list(in_blocks.blocks())) > 5
    n_probes, recall = found(ArrayInput(prepared, METRICS[metric]))
    assert 1 < n_probes < 40
    assert found(in_blocks) == (n_probes, recall)


# ---- faiss and commands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_an_exported_index(here, metric):
    table = pa.table({"key": NUMBERS, "name": WORDS, "e": list(X), "x": X[:, 0], "y": X[:, 1]})
    pyarrow.parquet.write_table(table, "rows.parquet")
    options = ("--metric", metric, "-k", 3, "--seed", 0)
    shown = done("index", "build", "rows.parquet", "--columns", "e", "--ids", "key", *options, "-o", "rows.index")
    assert "recall" in shown
    assert "measured on a sample" in shown
    assert "400 rows" in done("index", "export", "rows.index", "-o", "rows.faiss")
    index, copy = load("rows.index"), faiss.read_index("rows.faiss")
    assert json.loads(done("index", "info", "rows.index", "--json"))["recall"] == index.recall_
    queries = 5 * X[:100]  # not of length one
    scores, ids = copy.search(queries, 3)
    distances, expected = index.kneighbors(queries)
    assert (ids == expected).mean() > 0.98
    expected = distances**2 if metric == "euclidean" else 1 - distances
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    done("index", "build", "rows.parquet", "--columns", "x,y", "--ids", "name", *options, "-o", "names.index")
    np.save("queries.npy", X[:5, :2])
    done("index", "query", "names.index", "queries.npy", "-o", "found.npz")
    assert np.load("found.npz")["ids"].tolist() == load("names.index").kneighbors("queries.npy")[1].tolist()
    assert json.loads(done("index", "query", "names.index", "queries.npy", "--json"))["ids"][0][0].startswith("key-")
    assert "row numbers" in done("index", "export", "names.index", "-o", "names.faiss")
    refused(run("index", "build", "rows.parquet", "--columns", "e", "--ids", "kye", "-o", "a"), "did you mean 'key'")
    refused(run("index", "build", "rows.npy", "--ids", "key", "-o", "a"), "rows.npy is not a table")


def test_a_column_of_ids_is_no_feature(here):
    pyarrow.parquet.write_table(pa.table({"key": NUMBERS, "x": X[:, 0], "y": X[:, 1]}), "rows.parquet")
    done("index", "build", "rows.parquet", "--ids", "key", "--seed", 0, "-o", "rows.index")
    index = load("rows.index")
    assert list(index.feature_names_in_) == ["x", "y"]
    assert quickmeans.load("rows.index").n_samples_fit_ == 400
