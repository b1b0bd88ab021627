"""Where rows come from: every kind of source gives the same rows, and bad ones say what is wrong."""

import os
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_files import MAKERS, X, parquet_directory, table, write_idx, write_vecs

from quickmeans import QKMeans, QKNeighbors, QKNystroem, load
from quickmeans.data import open_rows, source, write_labels
from quickmeans.data.idx import read_idx
from quickmeans.data.memory import ChunkMemory
from quickmeans.data.prefetch import prefetch
from quickmeans.data.reader import RecordReader
from quickmeans.data.reading import Note
from quickmeans.data.stream import StreamRows


@pytest.fixture(params=MAKERS)
def maker(request, tmp_path):
    return MAKERS[request.param](tmp_path)


@pytest.mark.parametrize("n_bytes", [1, 60, 1 << 20])
def test_every_source_gives_the_rows_in_order(maker, n_bytes, monkeypatch, rng):
    monkeypatch.setattr(source, "CHUNK_BYTES", n_bytes)
    rows = open_rows(maker)
    assert rows.n_columns == 5
    assert rows.dtype in (np.float32, np.float64)
    assert rows.n_rows in (12, None)
    for _ in range(2):  # again and again
        chunks = list(rows.chunks())
        assert all(chunk.dtype == rows.dtype for chunk in chunks)
        np.testing.assert_array_equal(np.concatenate(chunks), X)
    for index in ([], [0, 4, 11], [5], [4, 4, 5, 9, 9, 9], range(12)):
        np.testing.assert_array_equal(rows.take(np.array(index, np.int64)), X[list(index)])
    sample = rows.sample(5, rng)
    assert len(np.unique(sample, axis=0)) == 5
    assert np.isin(sample, X).all()
    assert len(rows.sample(100, rng)) == 12
    stream = StreamRows(rows)
    assert stream.shape == (12, 5)
    np.testing.assert_array_equal(stream.take(np.array([7, 3, 3, 9])), X[[7, 3, 3, 9]])
    parts, blocks = zip(*stream.blocks(), strict=True)
    assert [part.start for part in parts] == [0, *[part.stop for part in parts[:-1]]]
    np.testing.assert_array_equal(np.concatenate(blocks), X)


def test_other_types(tmp_path):
    bytes_ = (np.arange(36) % 256).astype(np.uint8).reshape(6, 6)
    for path in (
        write_vecs(tmp_path / "x.bvecs", bytes_, "u1"),
        write_idx(tmp_path / "x-ubyte", bytes_, 0x08, "u1", (6, 3, 2)),
    ):
        rows = open_rows(path)
        assert rows.dtype == np.uint8
        np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), bytes_)


def test_whole_idx_files(tmp_path):
    labels, images = np.arange(6, dtype=np.uint8), np.arange(36.0).reshape(6, 3, 2)
    for ending in ("", ".gz"):
        path = write_idx(tmp_path / f"labels-ubyte{ending}", labels, 0x08, "u1", (6,))
        np.testing.assert_array_equal(read_idx(str(path)), labels)
        with pytest.raises(ValueError, match=r"labels-ubyte.* is an IDX file of one axis; rows need two axes or more"):
            open_rows(path)
        path = write_idx(tmp_path / f"images-ubyte{ending}", images, 0x0E, ">f8", (6, 3, 2))
        np.testing.assert_array_equal(read_idx(str(path)), images)
        path = write_idx(tmp_path / f"short-ubyte{ending}", labels, 0x08, "u1", (7,))
        with pytest.raises(ValueError, match=r"short-ubyte.* is cut short: it has 14 bytes, but should have 15"):
            read_idx(str(path))


def test_columns_of_a_table(tmp_path):
    whole = table(X).append_column("name", pa.array(["x"] * 12))
    pq.write_table(whole, tmp_path / "x.parquet")
    rows = open_rows(tmp_path / "x.parquet", columns=["d", "a"])
    assert rows.columns == ["d", "a"]
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), X[:, [3, 0]])
    with pytest.warns(Note, match=r"x.parquet: columns left out, because they are no numbers: 'name'\.$"):
        np.testing.assert_array_equal(np.concatenate(list(open_rows(tmp_path / "x.parquet").chunks())), X)
    with pytest.raises(ValueError, match=r"Column 'name' of .* holds string, not numbers; choose columns"):
        open_rows(tmp_path / "x.parquet", columns=["a", "name"])
    with pytest.raises(ValueError, match="has no column 'z'; it has 'a', 'b'"):
        open_rows(tmp_path / "x.parquet", columns=["z"])


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x.fvecs"])
def test_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"{name} is empty, a file of 0 bytes; it must hold rows"):
        open_rows(tmp_path / name)


def test_a_polars_series_of_arrays(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 6)).astype(np.float32)
    series = pl.Series("v", X, dtype=pl.Array(pl.Float32, 6))
    model = QKMeans(4, random_state=0).fit(series)
    assert model.n_features_in_ == 6
    labels = QKMeans(4, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(model.predict(series), labels)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(series), labels)
    for other in (QKNystroem(n_components=5, random_state=0), QKNeighbors(random_state=0)):
        assert other.fit(series).n_features_in_ == 6
        other.save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array|Expected a 2-dimensional container"):
        model.predict(pl.Series([1.0, 2.0]))


# ---- functions ------------------------------------------------------------------------------------------------------


def test_a_function_that_fills_one_buffer_again_and_again():
    X = np.random.default_rng(0).standard_normal((1000, 4)) + 20

    def chunks():
        buffer = np.empty((100, 4))
        for begin in range(0, len(X), 100):
            buffer[:] = X[begin : begin + 100]
            yield buffer

    blocks = []
    for _, block in StreamRows(open_rows(chunks)).blocks():
        time.sleep(0.01)  # the next chunks are made meanwhile
        blocks.append(block.copy())
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    np.testing.assert_allclose(QKMeans(3, random_state=0).fit(chunks).mean_, X.mean(axis=0))


# ---- prefetching ----------------------------------------------------------------------------------------------------


def test_reading_and_computing_overlap():
    def slow():
        for i in range(8):
            time.sleep(0.03)
            yield i

    begin = time.perf_counter()
    seen = []
    for i in prefetch(slow):
        time.sleep(0.03)
        seen.append(i)
    assert seen == list(range(8))
    assert time.perf_counter() - begin < 0.42  # one after the other would take 0.48


def test_errors_and_ends_of_the_reader():
    def failing():
        yield 1
        raise OSError("no more")

    items = prefetch(failing)
    assert next(items) == 1
    with pytest.raises(OSError, match="no more"):
        next(items)
    before = threading.active_count()
    items = prefetch(lambda: iter(range(1000)))
    next(items)
    items.close()  # nobody wants the rest
    assert threading.active_count() <= before


# ---- labels into files ----------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=5))
def test_labels_come_back(tmp_path_factory, chunks):
    path = tmp_path_factory.mktemp("labels")
    labels = np.concatenate([np.array(chunk, np.int32) for chunk in chunks]) if chunks else np.empty(0, np.int32)
    for name, read in (("x.npy", np.load), ("x.parquet", lambda p: pq.read_table(p)["label"].to_numpy())):
        assert write_labels(path / name, (np.array(chunk, np.int32) for chunk in chunks)) == len(labels)
        np.testing.assert_array_equal(read(path / name), labels)
    assert len(os.listdir(path)) == 2


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, name):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=[7, 9])
    getattr(frame, f"to_{name[2:]}")(tmp_path / name)
    with pytest.warns(Note, match="columns left out, because they are no numbers: '(__index_level_0__)?'"):
        rows = open_rows(tmp_path / name)
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), frame)


def test_labels_go_where_a_link_points_to(tmp_path):
    (tmp_path / "x.npy").symlink_to("y")
    write_labels(tmp_path / "x.npy", iter([np.arange(3, dtype=np.int32)]))
    assert (tmp_path / "x.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "y"), range(3))


def test_a_file_of_labels_is_complete_or_not_there(tmp_path):
    def failing():
        yield np.zeros(3, np.int32)
        raise RuntimeError

    for name in ("x.npy", "x.parquet"):
        with pytest.raises(RuntimeError):
            write_labels(tmp_path / name, failing())
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match=r"to \.npy, \.parquet or \.csv files, got"):
        write_labels(tmp_path / "x.txt", iter([]))


# ---- bad input ------------------------------------------------------------------------------------------------------


def consume(rows):
    for _ in StreamRows(open_rows(rows)).blocks():
        pass


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 40)
    for change in (-20, 20):
        path = MAKERS["npy"](tmp_path)
        chunks = open_rows(path).chunks()
        next(chunks)
        os.truncate(path, path.stat().st_size + change)
        with pytest.raises(ValueError, match=r"x.npy (is cut short|goes on after its last row).*stay as it is"):
            list(chunks)


def test_a_file_that_shrinks_inside_a_chunk(tmp_path):
    (tmp_path / "x").write_bytes(bytes(range(100)))
    with RecordReader(str(tmp_path / "x"), 4, 8) as records:
        np.testing.assert_array_equal(records.read(2, 4).ravel(), np.arange(20, 36))
        np.testing.assert_array_equal(records.take(np.array([1, 11]))[1], np.arange(92, 100))
        os.truncate(tmp_path / "x", 50)  # a map of it would end the process with SIGBUS
        with pytest.raises(ValueError, match=r"x is cut short: it ends in row 5, at byte 50; .* while it is read"):
            records.read(0, 12)
        with pytest.raises(ValueError, match="it ends in row 11, at byte 92"):
            records.take(np.array([1, 11]))


def test_memory_of_chunks_is_used_again_once_nobody_looks_at_it():
    memory, dtype = ChunkMemory(), np.dtype(np.int32)
    first = memory.empty((3, 2), dtype)
    address, part = first.ctypes.data, first[1:, :1]
    part[:] = 7
    del first
    other = memory.empty((3, 2), dtype)
    other[:] = 0
    assert part.tolist() == [[7], [7]]
    del part
    again = memory.empty((2, 2), dtype)
    assert again.ctypes.data == address
    assert memory.empty((9, 2), dtype).shape == (9, 2)


def test_rows_that_are_not_the_same_in_every_pass():
    lengths = iter([4, 4, 4, 3])
    stream = StreamRows(open_rows(lambda: [np.zeros((next(lengths), 2))]))
    assert stream.shape == (4, 2)
    list(stream.blocks())
    with pytest.raises(ValueError, match=r"has given 3 rows, but 4 were expected; .* begin anew in every pass"):
        list(stream.blocks())


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([np.zeros((2, 3)), np.zeros((2, 4))], "Chunk 1 of .* has 4 columns, but the first has 3"),
        ([np.zeros((2, 3)), np.zeros((2, 3), np.float32)], "Chunk 1 of .* holds float32, but the first float64"),
        ([np.zeros((2, 3)), np.zeros(3)], r"Chunk 1 of .* has shape \(3,\); every chunk must be a 2-D array"),
        ([np.zeros((0, 3))], "has no rows; there must be one at least"),
        ([], "has no rows; there must be one at least"),
        ([np.array([["a"]])], "holds <U1; rows must be real numbers"),
    ],
)
def test_chunks_that_do_not_go_together(chunks, message):
    with pytest.raises((ValueError, TypeError), match=message):
        consume(lambda: iter(chunks))


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        open_rows(tmp_path / "nowhere.npy")
    with pytest.raises(TypeError, match=r"can be read only once.*give a function"):
        open_rows(iter([X]))
    with pytest.raises(TypeError, match="must be an iterator over 2-D arrays, got NoneType"):
        open_rows(lambda: None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty has no columns, or no files; there must be one at least"):
        open_rows(tmp_path / "empty")
    (tmp_path / "x.data").write_bytes(b"1234")
    with pytest.raises(ValueError, match=r"is not known from its ending; it must be .npy"):
        open_rows(tmp_path / "x.data")
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(ValueError, match="has several arrays; as key, name one of 'a', 'b'"):
        open_rows(tmp_path / "two.npz")
    assert open_rows(tmp_path / "two.npz", key="b").n_rows == 12
    with pytest.raises(ValueError, match="has no array 'c'"):
        open_rows(tmp_path / "two.npz", key="c")
    np.save(tmp_path / "line.npy", np.zeros(4))
    with pytest.raises(ValueError, match=r"line.npy has shape \(4,\); rows must be a 2-D array"):
        open_rows(tmp_path / "line.npy")
    write_vecs(tmp_path / "x.fvecs", [X[0], X[0, :2], np.arange(8.0)], "<f4")
    with pytest.raises(ValueError, match=r"row 1 of .*x.fvecs says that it has 2 numbers; all must have 5"):
        consume(tmp_path / "x.fvecs")
    with pytest.raises(ValueError, match="must be a 2-D array, a path or a function"):
        open_rows(3)


def test_empty_cells_are_found(tmp_path):
    path = parquet_directory(tmp_path / "parts")
    holes = table(X[7:]).set_column(2, "c", pa.array([1.0, 2, None, 4, 5], pa.float32()))
    pq.write_table(holes, path / "1.parquet")
    with pytest.raises(ValueError, match=r"no number in column 'c' \(row 2 of .*1.parquet\); fill it, or choose"):
        consume(path)
