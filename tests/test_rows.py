"""Where rows come from: every kind of source gives the same rows, and bad ones say what is wrong."""

import gzip
import os
import threading
import time

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quickmeans.data import open_rows, source, write_labels
from quickmeans.data.memory import ChunkMemory
from quickmeans.data.prefetch import prefetch
from quickmeans.data.reader import RecordReader
from quickmeans.data.stream import SourceStream

X = (np.arange(60, dtype=np.float32) ** 1.5).reshape(12, 5)


def write_vecs(path, rows, kind):
    with open(path, "wb") as file:
        for row in rows:
            file.write(np.int32(len(row)).tobytes() + row.astype(kind).tobytes())
    return path


def write_idx(path, rows, code, kind, shape):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "wb") as file:
        file.write(bytes([0, 0, code, len(shape)]) + np.array(shape, ">u4").tobytes() + rows.astype(kind).tobytes())
    return path


def table(rows):
    return pa.table({name: rows[:, j] for j, name in enumerate("abcde")})


def parquet_directory(path):
    path.mkdir()
    pq.write_table(table(X[:7]), path / "0.parquet")
    pq.write_table(table(X[7:]), path / "1.parquet")
    return path


def hdf5(path, rows=X, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("train", data=rows, **options)
        file.create_dataset("test", data=rows[:2])
    return path


def saved(path, save, *arguments, **options):
    save(path, *arguments, **options)
    return path


MAKERS = {
    "array": lambda d: X,
    "columns first": lambda d: np.asfortranarray(X),
    "foreign bytes": lambda d: X.astype(">f4"),
    "function, foreign bytes": lambda d: lambda: iter([X.astype(">f4")]),
    "memory map": lambda d: np.load(saved(d / "x.npy", np.save, X), mmap_mode="r"),
    "npy": lambda d: saved(d / "x.npy", np.save, X),
    "npy, columns first": lambda d: saved(d / "x.npy", np.save, np.asfortranarray(X)),
    "npy, foreign bytes": lambda d: saved(d / "x.npy", np.save, X.astype(">f4")),
    "npz": lambda d: saved(d / "x.npz", np.savez, X),
    "npz, compressed": lambda d: saved(d / "x.npz", np.savez_compressed, X),
    "parquet": lambda d: saved(d / "x.parquet", lambda p: pq.write_table(table(X), p, row_group_size=5)),
    "parquet directory": lambda d: parquet_directory(d / "parts"),
    "lists": lambda d: saved(d / "x.parquet", lambda p: pq.write_table(pa.table({"v": list(X)}), p)),
    "arrow": lambda d: saved(d / "x.arrow", lambda p: feather.write_feather(table(X), p, compression="uncompressed")),
    "dataset": lambda d: ds.dataset(parquet_directory(d / "parts")),
    "hdf5": lambda d: hdf5(d / "x.hdf5"),
    "hdf5, compressed": lambda d: hdf5(d / "x.h5", chunks=(5, 5), compression="gzip"),
    "fvecs": lambda d: write_vecs(d / "x.fvecs", X, "<f4"),
    "idx": lambda d: write_idx(d / "x.idx", X, 0x0D, ">f4", (12, 5)),
    "idx, gzipped": lambda d: write_idx(d / "x-ubyte.gz", X, 0x0D, ">f4", (12, 5)),
    "function": lambda d: lambda: iter([X[:4], X[4:4], X[4:11], X[11:]]),
}


@pytest.fixture(params=MAKERS)
def maker(request, tmp_path):
    return MAKERS[request.param](tmp_path)


@pytest.mark.parametrize("n_bytes", [1, 60, 1 << 20])
def test_every_source_gives_the_rows_in_order(maker, n_bytes, monkeypatch, rng):
    monkeypatch.setattr(source, "CHUNK_BYTES", n_bytes)
    rows = open_rows(maker)
    assert rows.n_columns == 5
    assert rows.dtype == np.float32
    assert rows.n_rows in (12, None)
    for _ in range(2):  # again and again
        chunks = list(rows.chunks())
        assert all(chunk.dtype == np.float32 for chunk in chunks)
        np.testing.assert_array_equal(np.concatenate(chunks), X)
    np.testing.assert_array_equal(rows.take(np.array([0, 4, 11])), X[[0, 4, 11]])
    sample = rows.sample(5, rng)
    assert len(np.unique(sample, axis=0)) == 5
    assert np.isin(sample, X).all()
    assert len(rows.sample(100, rng)) == 12
    stream = SourceStream(rows)
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


def test_columns_of_a_table(tmp_path):
    whole = table(X).append_column("name", pa.array(["x"] * 12))
    pq.write_table(whole, tmp_path / "x.parquet")
    rows = open_rows(tmp_path / "x.parquet", columns=["d", "a"])
    assert rows.columns == ["d", "a"]
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), X[:, [3, 0]])
    with pytest.raises(ValueError, match=r"Column 'name' of .* holds string, not numbers; choose columns"):
        open_rows(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has no column 'z'; it has 'a', 'b'"):
        open_rows(tmp_path / "x.parquet", columns=["z"])


def test_csv(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2.5\n3,4\n5,6\n")
    rows = open_rows(tmp_path / "x.csv")
    assert rows.n_rows is None
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), [[1, 2.5], [3, 4], [5, 6]])
    assert SourceStream(rows).shape == (3, 2)
    np.testing.assert_array_equal(np.concatenate(list(open_rows(tmp_path / "x.csv", columns=["b"]).chunks())).T,
                                  [[2.5, 4, 6]])  # fmt: skip


def test_csv_without_names(tmp_path):
    path = tmp_path / "x.csv"
    for first in ("1,2.5", "0,-3", "0,0"):
        path.write_text(f"{first}\n3,4\n")
        with pytest.raises(ValueError, match=f"x.csv must name the columns, but has the numbers {first[0]}, "):
            open_rows(path)
    for first, word in (("a;b", "semicolons"), ("0.5;1", "semicolons"), ("a\tb", "tabs")):
        path.write_text(f"{first}\n{first}\n")
        with pytest.raises(ValueError, match=f"x.csv has its columns separated by {word}; it must be commas"):
            open_rows(path)
    for text in ("\ufeff1,1\n2,3\n", '"1","1"\n2,3\n', "\n1,1\n2,3\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="must name the columns, but has the numbers 1, 1"):
            open_rows(path)
    path.write_text('"a;b"\n1\n2\n')  # one column, of that name
    np.testing.assert_array_equal(np.concatenate(list(open_rows(path).chunks())), [[1], [2]])
    path.write_text("0,1\n3,4\n")  # names that pandas gives
    np.testing.assert_array_equal(np.concatenate(list(open_rows(path).chunks())), [[3, 4]])
    path.write_text("a,b\n1,\n3,\n")
    with pytest.raises(ValueError, match=r"Column 'b' of .* holds no values; choose columns"):
        open_rows(path)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x.fvecs"])
def test_empty_file(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"{name} is empty, a file of 0 bytes; it must hold rows"):
        open_rows(tmp_path / name)


# ---- reading ahead --------------------------------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match=r"Column .* looks like an index; choose columns \(--columns\)"):
        open_rows(tmp_path / name)
    rows = open_rows(tmp_path / name, columns=["a", "b"])
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
    with pytest.raises(ValueError, match=r"to \.npy or \.parquet files, got"):
        write_labels(tmp_path / "x.txt", iter([]))


# ---- bad input ------------------------------------------------------------------------------------------------------


def consume(rows):
    for _ in SourceStream(open_rows(rows)).blocks():
        pass


@pytest.mark.parametrize("name", ["npy", "npz", "parquet", "arrow", "hdf5", "fvecs", "idx", "idx, gzipped"])
@pytest.mark.parametrize("share", [0.01, 0.45, 0.97])
def test_truncated_files(tmp_path, name, share):
    path = MAKERS[name](tmp_path)
    size = path.stat().st_size
    os.truncate(path, int(size * share))
    with pytest.raises(ValueError, match=path.name):
        consume(path)


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
    stream = SourceStream(open_rows(lambda: [np.zeros((next(lengths), 2))]))
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
    with pytest.raises(ValueError, match=r"cannot be told from its ending; it must be .npy"):
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
    with pytest.raises(ValueError, match=r"no number in column 'c' \(row 2 of .*1.parquet\); fill or drop it"):
        consume(path)
