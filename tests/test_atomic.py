"""Files that are complete or absent, and what a killed process leaves."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from commands import refused, run
from saved import X, fitted

from quickmeans import QKNeighbors, atomic
from quickmeans.data import write_labels


def temporary(path, process, machine=None, digits="0" * 8):
    """A file as a write to `path` by that process would leave it."""
    machine = atomic._machine() if machine is None else machine
    file = path.with_name(f".{path.name}.{machine}-{process}-{digits}.tmp{path.suffix}")
    file.write_bytes(b"half")
    return file


@pytest.fixture
def dead():
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_files_of_dead_processes_are_removed(tmp_path, dead):
    path = tmp_path / "model.bin"
    left = [temporary(path, dead), temporary(path, dead, digits="1" * 8), temporary(tmp_path / "model", dead)]
    kept = [
        temporary(path, os.getpid()),
        temporary(path, 1),
        temporary(path, dead, "f" * 8),
        tmp_path / ".model.bin.tmp",
    ]
    kept[-1].write_bytes(b"not ours")
    atomic.write_bytes(path, b"data")
    assert set(tmp_path.iterdir()) == {path, left[2], *kept}
    assert path.read_bytes() == b"data"


def test_old_files_of_other_machines_are_removed(tmp_path, dead):
    path = tmp_path / "model"
    left = temporary(path, dead, "f" * 8)
    os.utime(left, (time.time() - 90_000,) * 2)
    atomic.write_bytes(path, b"data")
    assert os.listdir(tmp_path) == ["model"]


_KILLED = """
import os, signal, sys
from quickmeans import atomic
with atomic.replacing(sys.argv[1]) as temporary:
    temporary.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process(tmp_path):
    path = tmp_path / "labels.npy"
    assert subprocess.run([sys.executable, "-c", _KILLED, path]).returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    write_labels(path, iter([np.zeros(3, np.int32)]))
    assert os.listdir(tmp_path) == ["labels.npy"]


def test_a_failed_block_leaves_nothing(tmp_path):
    (tmp_path / "f").write_bytes(b"old")

    def write():
        with atomic.replacing(tmp_path / "f") as path:
            path.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "x." + "y" * 253, "x" * 230 + ".safetensors"])
def test_long_names(tmp_path, name):
    atomic.write_bytes(tmp_path / name, b"data")
    assert os.listdir(tmp_path) == [name]


# ---- what is not a file -------------------------------------------------------------------------------------------


@pytest.fixture(params=["pipe", "link"])
def special(tmp_path, request):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    yield tmp_path / request.param
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


@pytest.mark.parametrize(
    "write",
    [
        lambda path: fitted().save(path),
        lambda path: fitted(checkpoint=path),
        lambda path: QKNeighbors(n_lists=4).fit(X).save(path),
        lambda path: atomic.write_bytes(path, b""),
    ],
    ids=["model", "checkpoint", "index", "bytes"],
)
def test_special_files_are_not_replaced(special, write):
    with pytest.raises((OSError, ValueError), match=r"Not a regular file, so it must not be replaced|is a pipe"):
        write(special)


def test_the_command_refuses_special_files_before_any_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    os.mkfifo("pipe")
    refused(run("fit", "rows.npy", "-k", 3, "-o", "pipe", "--force"), "pipe is not a regular file")


# ---- full disks ---------------------------------------------------------------------------------------------------


@contextmanager
def largest_file(n_bytes):
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_an_index_on_a_full_disk(tmp_path):
    index = QKNeighbors(n_lists=4, random_state=0).fit(X)
    index.save(tmp_path / "index")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    index.add(X)
    with largest_file(10_000), pytest.raises(OSError, match="too large") as error:
        index.save(tmp_path / "index")
    assert error.value.errno == errno.EFBIG
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
