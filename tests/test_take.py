"""Rows by their numbers: gathered during a pass, or read from the parts of a file that contain them."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from row_files import MAKERS, X, hdf5, table

from quickmeans.data import open_rows, parts, source
from quickmeans.data.collector import RowCollector
from quickmeans.data.hdf5 import Hdf5Source

F4 = np.dtype(np.float32)


@given(st.lists(st.integers(0, 11)), st.lists(st.integers(0, 12)))
def test_a_collector_gathers_over_chunks(index, ends):
    index, ends = np.sort(np.array(index, np.int64)), sorted({0, *ends, 12})
    collector = RowCollector(index, 5, F4)
    for begin, end in itertools.pairwise(ends):
        assert collector.wants(begin, end) == bool(((begin <= index) & (index < end)).any())
        chunk = X[begin:end].copy()
        collector.see(begin, chunk)
        chunk[:] = np.nan  # memory of chunks is used again
    assert collector.is_complete
    np.testing.assert_array_equal(collector.rows(), X[index])


def test_two_collectors_in_one_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 60)
    rows, first = open_rows(MAKERS["csv"](tmp_path)), 0
    collectors = [rows.collector(np.array(index)) for index in ([0, 5, 5], [4, 11])]
    for chunk in rows.chunks():
        for collector in collectors:
            collector.see(first, chunk)
        first += len(chunk)
    for collector, index in zip(collectors, ([0, 5, 5], [4, 11]), strict=True):
        np.testing.assert_array_equal(collector.rows(), X[index])


def test_rows_that_do_not_exist_and_orders_that_do_not_ascend(tmp_path):
    for index in ([3, 2], [-1, 2]):
        with pytest.raises(ValueError, match="must ascend and must not be negative"):
            RowCollector(np.array(index), 5, F4)
    for name in ("parquet", "arrow", "hdf5", "csv", "npz", "function"):
        rows = open_rows(MAKERS[name](tmp_path))
        with pytest.raises(ValueError, match="has no row 12, which was asked for"):
            rows.take(np.array([3, 12]))


def overwrite(path, begin, end):
    with open(path, "r+b") as file:
        file.seek(begin)
        file.write(b"\xff" * (end - begin))


@pytest.mark.parametrize("group_rows", [100, 3000])
def test_parquet_reads_only_the_row_groups_that_contain_the_rows(tmp_path, monkeypatch, group_rows):
    monkeypatch.setattr(source, "CHUNK_BYTES", 2000)  # a group is several chunks
    rows = np.random.default_rng(0).standard_normal((9000, 5)).astype(np.float32)
    path = tmp_path / "x.parquet"
    pq.write_table(table(rows), path, row_group_size=group_rows)
    opened, wanted = open_rows(path, columns=["e", "b"]), np.array([0, 7, 7, group_rows - 1, 8999])
    meta = pq.ParquetFile(path).metadata
    for g in range(meta.num_row_groups):
        for j in range(5):
            needed = g in (0, meta.num_row_groups - 1) and j in (1, 4)
            column = meta.row_group(g).column(j)
            if not needed:
                start = column.dictionary_page_offset or column.data_page_offset
                overwrite(path, start, start + column.total_compressed_size)
    np.testing.assert_array_equal(opened.take(wanted), rows[wanted][:, [4, 1]])
    with pytest.raises(ValueError, match=r"x.parquet cannot be read to its end"):
        opened.take(np.array([group_rows]))


def test_arrow_reads_only_the_record_batches_that_contain_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 1000)
    rows = np.random.default_rng(0).standard_normal((900, 5)).astype(np.float32)
    small = pa.table({"v": list(rows), "id": np.arange(900, dtype=np.int16)})
    feather.write_feather(small, tmp_path / "x.feather", chunksize=100)
    opened, wanted = open_rows(tmp_path / "x.feather", columns=["v"]), np.array([105, 105, 180, 899])
    reads, original = [], parts._reader
    monkeypatch.setattr(parts, "_reader", lambda file, fields: reads.append(fields) or original(file, fields))
    np.testing.assert_array_equal(opened.take(wanted), rows[wanted])
    assert reads == [[1], [0], [0]]  # lengths by the short column, then two batches
    np.testing.assert_array_equal(opened.take(wanted), rows[wanted])
    assert reads == [[1], [0], [0], [0], [0]]


@pytest.mark.parametrize("options", [{}, {"chunks": (50, 2), "compression": "gzip"}], ids=["contiguous", "compressed"])
def test_hdf5_reads_only_the_blocks_that_contain_the_rows(tmp_path, monkeypatch, options):
    monkeypatch.setattr("quickmeans.data.hdf5._TAKE_BYTES", 200)
    rows = np.random.default_rng(0).standard_normal((900, 5)).astype(np.float32)
    opened, wanted = open_rows(hdf5(tmp_path / "x.h5", rows, **options)), np.array([105, 105, 108, 180, 899])
    reads, original = [], Hdf5Source._read
    monkeypatch.setattr(
        Hdf5Source, "_read", lambda self, d, begin, end: reads.append((begin, end)) or original(self, d, begin, end)
    )
    np.testing.assert_array_equal(opened.take(wanted), rows[wanted])
    assert reads == ([(100, 150), (150, 200), (850, 900)] if options else [(100, 110), (180, 190), (890, 900)])
