import signal
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from mixture import X

from quickmeans import kernels

settings.register_profile(
    "quickmeans", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("quickmeans")
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have background jobs ignore it


@pytest.fixture(params=kernels.instruction_sets())
def isa(request, monkeypatch):
    """Every instruction set that this machine has, in turn."""
    monkeypatch.setenv("QUICKMEANS_ISA", request.param)
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def chain(rng):
    """A function that makes random sparse factors with the given inner and outer dimensions."""

    def make(*dims, density=0.1, dtype=np.float32):
        return [
            sp.random_array((n, m), density=density, rng=rng, dtype=dtype, data_sampler=rng.standard_normal)
            for n, m in pairwise(dims)
        ]

    return make


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """A directory with rows in it, from which commands are run; the rows lie about six points."""
    monkeypatch.chdir(tmp_path)
    centers = rng.standard_normal((6, 12))
    np.save("rows.npy", (np.repeat(centers, 50, axis=0) + 0.01 * rng.standard_normal((300, 12))).astype(np.float32))
    return tmp_path


@pytest.fixture
def path(tmp_path):
    """A file with the rows of the mixture."""
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"
