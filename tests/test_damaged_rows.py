"""Damaged files: read to their end, or refused by an error that names the file."""

import os

import numpy as np
import pytest
from row_files import MAKERS, X

from quickmeans.data import open_rows
from quickmeans.data.stream import StreamRows

FORMATS = [
    "npy",
    "npy, columns first",
    "npz",
    "npz, compressed",
    "parquet",
    "lists",
    "arrow",
    "feather, compressed",
    "arrow, lists",
    "hdf5",
    "hdf5, compressed",
    "fvecs",
    "idx",
    "idx, gzipped",
    "csv",
]
N_HEADER = 200  # bytes at the beginning and at the end in which there are headers and footers

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # a damaged table may have other names


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    return MAKERS[request.param](tmp_path)


def read(path):
    rows = open_rows(path)
    for _ in StreamRows(rows).blocks():
        pass
    rows.take(np.array([0, 3, 3, 11]))


def refused(path):
    """Whether the file is refused; other errors than those for bad files fail the test."""
    try:
        read(path)
    except (ValueError, OSError) as error:
        if path.name not in str(error):
            raise
        return True
    return False


@pytest.mark.parametrize("share", [0.01, 0.45, 0.97])
@pytest.mark.parametrize("name", FORMATS[:-1])  # a CSV file may end after any line
def test_truncated_files(tmp_path, name, share):
    path = MAKERS[name](tmp_path)
    os.truncate(path, int(path.stat().st_size * share))
    assert refused(path)


def test_every_truncation(path):
    content = path.read_bytes()
    for size in {*range(1, min(len(content), N_HEADER)), *range(1, len(content), 97)}:
        path.write_bytes(content[:size])
        refused(path)


@pytest.mark.parametrize("seed", range(3))
def test_changed_bytes(path, seed):
    rng, content = np.random.default_rng(seed), path.read_bytes()
    for i in range(100):
        changed = bytearray(content)
        if i % 2:
            changed[int(rng.integers(min(len(content), N_HEADER)))] = int(rng.integers(256))
        else:
            changed[-int(rng.integers(1, min(len(content), N_HEADER)))] = int(rng.integers(256))
        for at in rng.integers(len(content), size=i % 3):
            changed[at] = int(rng.integers(256))
        path.write_bytes(bytes(changed))
        refused(path)


def test_another_format(path):
    """The content of one format under the name of another."""
    for content in (
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04",
        b"PAR1",
        b"ARROW1\0\0",
        b"\x89HDF\r\n\x1a\n",
        b"\0" * 64,
        b"\xff" * 64,
    ):
        path.write_bytes(content * 20)
        assert refused(path)


def test_the_files_are_whole_before_they_are_damaged(path):
    read(path)
    np.testing.assert_allclose(np.concatenate(list(open_rows(path).chunks())), X, rtol=1e-6)
