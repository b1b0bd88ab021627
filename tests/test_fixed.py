import numpy as np
import pytest
import scipy.fft
import scipy.linalg

from quickmeans.testing import check_adjoint
from quickmeans.transform import dct, haar, hadamard

POWERS = [1, 2, 4, 8, 64, 1024]


@pytest.mark.parametrize("n", POWERS)
def test_hadamard(n):
    H = hadamard(n)
    np.testing.assert_allclose(H.toarray() * np.sqrt(n), scipy.linalg.hadamard(n), atol=1e-12)
    if n > 1:
        assert len(H.factors) == np.log2(n)
        assert H.nnz == 2 * n * np.log2(n)
    check_adjoint(H)


def test_haar_by_hand():
    r = np.sqrt(0.5)
    expected = [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, -0.5, -0.5], [r, -r, 0, 0], [0, 0, r, -r]]
    np.testing.assert_allclose(haar(4).toarray(), expected, atol=1e-15)


@pytest.mark.parametrize("n", POWERS)
def test_haar_is_orthonormal_and_cheap(n):
    W = haar(n)
    np.testing.assert_allclose(W @ np.eye(n) @ W.T.toarray(), np.eye(n), atol=1e-12)
    assert W.nnz == max(1, n * (2 + np.log2(n)) - 2)
    check_adjoint(W)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 48, 50, 64, 100, 125, 784, 1024, 2000])
def test_dct(n, rng):
    x = rng.standard_normal(n)
    C = dct(n)
    np.testing.assert_allclose(C @ x, scipy.fft.dct(x, norm="ortho"), atol=1e-11)
    np.testing.assert_allclose(C.T @ x, scipy.fft.idct(x, norm="ortho"), atol=1e-11)
    check_adjoint(C)


def test_dct_is_fast():
    assert dct(1024).nnz <= 3 * 1024 * 10


@pytest.mark.parametrize("transform", [hadamard, haar, dct])
def test_types(transform):
    assert transform(16).dtype == np.float64
    assert transform(16, np.float32).dtype == np.float32
    check_adjoint(transform(16, np.float32))
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got int64"):
        transform(16, np.int64)


@pytest.mark.parametrize("n", [3, 12, 1000])
@pytest.mark.parametrize("transform", [hadamard, haar])
def test_orders_that_are_no_power_of_two(transform, n):
    with pytest.raises(ValueError, match=f"{transform.__name__} needs an order that is a power of two, got {n}"):
        transform(n)


@pytest.mark.parametrize("n", [0, -4, 2.0, "8", None, True, 2**40])
@pytest.mark.parametrize("transform", [hadamard, haar, dct])
def test_bad_orders(transform, n):
    with pytest.raises(ValueError, match=f"n must be a whole number from 1 to 2147483647, got {n!r}"):
        transform(n)
