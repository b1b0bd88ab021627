"""The Gaussian kernel between rows and the rows of a product."""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from quickmeans import SparseProduct


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 70, 300])
@pytest.mark.parametrize("dims", [(1, 1), (37, 61), (300, 20, 17)])
def test_gaussian_against_the_formula(isa, chain, rng, dims, n, dtype):
    V = SparseProduct(chain(*dims, density=0.3, dtype=dtype))
    X, mean = rng.standard_normal((n, dims[-1])).astype(dtype), rng.standard_normal(dims[-1])
    expected = np.exp(-0.1 * reference.distances(X - mean, reference.product(V.factors)) ** 2)
    values = V.gaussian(X, 0.1, mean=mean)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, expected, rtol=2e-5 if dtype == np.float32 else 1e-12)


def test_gaussian_in_hand():
    V = SparseProduct([[[1.0, 0.0], [0.0, 2.0]]])
    values = V.gaussian([[1.0, 0.0], [1.0, 2.0]], 0.5)
    np.testing.assert_allclose(values, np.exp([[0.0, -2.5], [-2.0, -0.5]]))


@given(st.floats(1e-3, 1e3), st.integers(1, 40), st.sampled_from([np.float32, np.float64]))
def test_gaussian_lies_between_zero_and_one(gamma, n, dtype):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 9)).astype(dtype)
    K = SparseProduct([X]).gaussian(X, gamma)
    assert ((K >= 0) & (K <= 1)).all()
    spread = 40 * np.finfo(dtype).eps * gamma * (X**2).sum(axis=1).max()
    np.testing.assert_allclose(np.diag(K), 1, atol=min(spread, 1))
    np.testing.assert_allclose(K, K.T, atol=min(2 * spread, 1))


def test_gaussian_of_far_and_near_points():
    V = SparseProduct([np.array([[0.0, 1.0], [1e4, 1.0]])])
    np.testing.assert_array_equal(V.gaussian([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], 1.0), [[1.0, 0.0]] * 3)
    exponents = np.linspace(0, 700, 5001)
    values = SparseProduct([np.zeros((1, 1)) + 0.0]).gaussian(np.sqrt(exponents)[:, None], 1.0)
    np.testing.assert_allclose(values[:, 0], np.exp(-(np.sqrt(exponents) ** 2)), rtol=1e-14)


def test_gaussian_rows_do_not_depend_on_their_neighbours(isa, chain, rng):
    V = SparseProduct(chain(50, 40, 30, density=0.3))
    X, mean = rng.standard_normal((200, 30)).astype(np.float32), rng.standard_normal(30)
    together = V.gaussian(X, 0.2, mean=mean, n_threads=1)
    np.testing.assert_array_equal(V.gaussian(X, 0.2, mean=mean, n_threads=2), together)
    for i in (0, 77):
        np.testing.assert_array_equal(V.gaussian(X[i : i + 1], 0.2, mean=mean), together[i : i + 1])


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"gamma": 0.0}, np.ones((1, 2)), "gamma must be a finite number above 0, got 0.0"),
        ({"gamma": True}, np.ones((1, 2)), "gamma must be"),
        ({"mean": np.ones(3)}, np.ones((1, 2)), r"mean must have shape \(2,\)"),
        ({"mean": np.full(2, np.nan)}, np.ones((1, 2)), "mean must be finite"),
        ({"mean": np.full(2, 1e200)}, np.ones((1, 2)), "mean is too large for float64"),
        ({}, np.array([[1.0, np.nan]]), r"X contains NaN \(row 0, column 1\)"),
        ({}, np.full((5, 2), 1e200), "may overflow float64; scale X"),
    ],
)
def test_gaussian_refuses(options, X, message):
    with pytest.raises(ValueError, match=message):
        SparseProduct([np.eye(2)]).gaussian(X, **{"gamma": 1.0} | options)
