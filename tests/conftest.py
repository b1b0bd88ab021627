from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings

from quickmeans import _native

settings.register_profile(
    "quickmeans", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("quickmeans")


@pytest.fixture(params=_native.instruction_sets())
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
