"""Landmarks refined on the error of the kernel matrix, and which compression is chosen by it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from quickmeans import QKNystroem, SparseProduct
from quickmeans.data.rows import as_rows
from quickmeans.nystroem.compression import compressed
from quickmeans.nystroem.heldout import HeldOut
from quickmeans.nystroem.kernels import Gaussian, Landmarks, make_kernel
from quickmeans.nystroem.refinement import error_gradient, factor_gradients, refined

GAMMA = 0.1


def gaussian(mean):
    return lambda product: Gaussian(GAMMA, Landmarks(product, mean))


def weighted_squares(X, U, diagonal):
    """The error by its definition."""
    R = rbf_kernel(X, gamma=GAMMA) - rbf_kernel(X, U, GAMMA) @ np.linalg.solve(
        rbf_kernel(U, gamma=GAMMA) + 1e-5 * np.eye(len(U)), rbf_kernel(U, X, GAMMA)
    )
    return (R**2).sum() - (1 - diagonal) * (np.diagonal(R) ** 2).sum()


@pytest.fixture
def product(rng):
    """Three factors with empty rows and columns."""
    first, last = rng.standard_normal((5, 4)), rng.standard_normal((3, 6)) * (rng.random((3, 6)) < 0.5)
    first[1] = 0
    return SparseProduct([first, rng.standard_normal((4, 3)), last])


def test_the_gradient_is_that_of_the_error(rng, product):
    X = rng.standard_normal((40, 6))
    mean = X.mean(axis=0)
    factors = [sp.csr_array(S, copy=True) for S in product.factors]
    loss, G = error_gradient(X, gaussian(mean)(product), 0.3, 1)
    assert loss == pytest.approx(weighted_squares(X, product.toarray() + mean, 0.3))
    for S, gradient in zip(factors, factor_gradients(factors, G, 1), strict=True):
        assert gradient.shape == S.data.shape
        for i in range(S.nnz):
            value, around = S.data[i], []
            for step in (-1e-5, 1e-5):
                S.data[i] = value + step
                around.append(weighted_squares(X, SparseProduct(factors).toarray() + mean, 0.3))
            S.data[i] = value
            assert gradient[i] == pytest.approx((around[1] - around[0]) / 2e-5, rel=1e-4, abs=1e-6)


def test_refined_landmarks_have_the_same_supports_and_a_smaller_error(rng, product):
    X = rng.standard_normal((200, 6))
    mean = X.mean(axis=0)
    better = refined(product, gaussian(mean), lambda: X, 1)
    for S, T in zip(better.factors, product.factors, strict=True):
        np.testing.assert_array_equal(sp.csr_array(S).indices, sp.csr_array(T).indices)
    before, after = (error_gradient(X, gaussian(mean)(each), 0.3, 1)[0] for each in (product, better))
    assert after < 0.95 * before


def test_kernels_without_a_slope_leave_landmarks_as_they_are(rng, product):
    X = rng.standard_normal((50, 6))

    def kernel(each):
        return make_kernel("polynomial", GAMMA, 3, 1, Landmarks(each, np.zeros(6)))

    assert refined(product, kernel, lambda: X, 1) is product


def heldout(X, points, seed=0):
    mean = X.mean(axis=0)
    return HeldOut(as_rows(X), SparseProduct([points - mean]), gaussian(mean), X.dtype, np.random.RandomState(seed), 1)


def test_the_excess_is_the_larger_of_few_and_of_all_rows(rng):
    X = rng.standard_normal((60, 4))
    judge, other = heldout(X, X[:5]), X[5:10] - X.mean(axis=0)
    U = [X[:5], other + X.mean(axis=0)]
    parts = [[weighted_squares(judge.held, each, weight) for weight in (1, 0)] for each in U]
    share = (len(judge.held) - 1) / (len(X) - 1)  # of the diagonal in all rows, beside that in the held-out ones
    ratios = [(own[1] + w * (own[0] - own[1])) / (base[1] + w * (base[0] - base[1]))
              for base, own in [parts] for w in (1, share)]  # fmt: skip
    assert judge.excess(SparseProduct([other])) == pytest.approx(np.sqrt(max(ratios)), rel=1e-3)
    assert judge.excess(SparseProduct([X[:5] - X.mean(axis=0)])) == pytest.approx(1)


def test_few_rows_are_all_measured_and_nothing_is_refined(rng):
    X = rng.standard_normal((30, 4))
    judge = heldout(X, X[:10])
    assert len(judge.held) == 30
    product = SparseProduct([X[:10]])
    assert judge.refined(product) is product
    assert len(heldout(X, X[:3]).held) == 15


class Judge:
    """Landmarks are good enough up to a compression of `need`, or of `need` times `gain` once they are refined."""

    def __init__(self, need, gain):
        self.need, self.gain, self.results = need, gain, []

    def excess(self, product):
        most = self.need * (self.gain if any(product is result for result in self.results) else 1)
        return 1.0 if product.shape[0] * product.shape[1] <= 1.05 * most * product.macs else 1.1

    def refined(self, product):
        self.results.append(SparseProduct(product.factors))
        return self.results[-1]


@pytest.mark.parametrize(
    ("need", "gain", "expected"), [(20, 1, 20), (5, 1, 5), (20, 2, 20), (5, 2, 10), (1, 2, 1), (2, 2, 2.5)]
)
def test_which_compression_is_chosen(rng, need, gain, expected):
    judge = Judge(need, gain)
    product = compressed(rng.standard_normal((100, 300)), np.ones(100), "auto", judge, np.dtype(np.float32))
    assert product.shape[0] * product.shape[1] / product.macs == pytest.approx(expected, rel=0.05)
    assert any(product is result for result in judge.results) == (gain == 2 and 1 < need < 10)


def test_errors_below_those_of_kmeans_landmarks_on_rows_of_a_network(rng):
    """Non-negative, sparse and heavy-tailed rows."""
    hidden = np.maximum(rng.standard_normal((6, 40)).T @ rng.standard_normal((6, 3000)), 0)
    X = (np.maximum(rng.standard_normal((200, 40)) @ hidden - 3, 0) ** 1.5).T.astype(np.float32)
    X, test = X[:2200], X[2200:]
    options = {"gamma": "mean-distance", "n_components": 50, "random_state": 0}
    dense, uniform, found = (
        QKNystroem(landmarks=kind, **options).fit(X).approximation_error(test)
        for kind in ("kmeans", "uniform", "qkmeans")
    )
    assert found <= 1.03 * dense
    assert found < uniform
