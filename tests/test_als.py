"""Least squares on supports against the slow way; budgets and starts of sparse ALS; factorize."""

from itertools import pairwise

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from quickmeans import SparseProduct, kernels
from quickmeans.testing import check_descent
from quickmeans.transform import dct, factorize, sparse_als
from quickmeans.transform.chain import Chain
from quickmeans.transform.pair import Pair, fit_rows

CLOSED = ("svd", "threshold", "dct", "haar", "hadamard")


def digits(K):
    return (load_digits().data[:K] - load_digits().data.mean(axis=0)).astype(np.float64)


def nearly_low_rank(rng, K=60, D=80):
    """Singular values that fall over three decades."""
    left, right = (np.linalg.qr(rng.standard_normal((size, 40)))[0] for size in (K, D))
    return left * np.logspace(2, -1, 40) @ right.T


@pytest.mark.parametrize("want_prices", [True, False])
@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 8, 9, 17, 33])
def test_rows_against_dense_inverses(isa, rng, r, want_prices):
    A, n = rng.standard_normal((2 * r + 5, r)), 10
    gram, targets, weights = A.T @ A, rng.standard_normal((n, r)), rng.random(n)
    support = (rng.random((n, r)) < 0.6).astype(np.uint8)
    drop = np.minimum(rng.integers(0, 4, n), np.count_nonzero(support, axis=1))
    expected, dear = np.zeros((n, r)), np.full((n, r), np.inf)
    for i in range(n):
        S = list(np.flatnonzero(support[i]))
        for dropped in range(drop[i] + 1):
            B = np.linalg.inv(gram[np.ix_(S, S)])
            c = B @ targets[i, S]
            if dropped < drop[i]:
                S.pop(int(np.argmin(c**2 / np.diag(B))))
        expected[i, S], dear[i, S] = c, weights[i] * c**2 / np.diag(B)
    values, prices = fit_rows(gram, targets, weights, support, drop, want_prices)
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_array_equal(support, expected != 0)
    if want_prices:
        np.testing.assert_allclose(prices, dear, rtol=1e-5)


def test_products_on_a_support(rng):
    rows, atoms, support = rng.standard_normal((19, 30)), rng.standard_normal((30, 7)), rng.integers(0, 2, (19, 7))
    atoms[rng.random(atoms.shape) < 0.7] = 0
    atoms[:, 3] = 0
    for n_threads in (1, 3):
        out = kernels.masked_product(rows, atoms, support.astype(np.uint8), n_threads)
        np.testing.assert_allclose(out, support * (rows @ atoms), rtol=1e-12, atol=1e-13)


def chain_solution(U, n, factors, q):
    """Factor q by dense least squares on its support, the others fixed: vec(L S R) is linear in the entries of S."""
    L, R = np.eye(len(U)), np.eye(U.shape[1])
    for S in factors[:q]:
        L = L @ S
    for S in reversed(factors[q + 1 :]):
        R = S @ R
    root, where = np.sqrt(n)[:, None], np.argwhere(factors[q])
    columns = np.stack([(root * np.outer(L[:, i], R[j])).ravel() for i, j in where], axis=1)
    S = np.zeros(factors[q].shape)
    S[tuple(where.T)] = np.linalg.lstsq(columns, (root * U).ravel(), rcond=None)[0]
    return S


@pytest.mark.parametrize("dims", [(9, 4, 4, 11), (9, 5, 3, 4, 8)])
def test_a_sweep_of_a_chain_against_dense_least_squares(rng, dims):
    U, n = rng.standard_normal((dims[0], dims[-1])), rng.uniform(1, 9, dims[0])
    factors = [rng.standard_normal(shape) * (rng.random(shape) < 0.7) for shape in pairwise(dims)]
    chain = Chain(U, n, U.size)
    chain.start([S.copy() for S in factors])
    chain.fit()
    for q in range(len(factors)):
        factors[q] = chain_solution(U, n, factors, q)
    slow = (n[:, None] * (U - reference.product(factors)) ** 2).sum()
    assert chain.objective == pytest.approx((n[:, None] * (U - reference.product(chain.S)) ** 2).sum())
    np.testing.assert_allclose(chain.objective, slow, rtol=1e-3)  # conjugate gradients stop early


def test_a_sweep_of_a_pair_against_dense_least_squares(rng):
    U, n = rng.standard_normal((12, 15)), rng.uniform(1, 9, 12)
    factors = [rng.standard_normal(shape) * (rng.random(shape) < 0.5) for shape in ((12, 5), (5, 15))]
    pair = Pair(U, n, U.size)
    pair.start([S.copy() for S in factors])
    pair.fit()
    for q in (0, 1):
        factors[q] = chain_solution(U, n, factors, q)
    np.testing.assert_allclose(reference.product(pair.factors()), reference.product(factors), rtol=1e-6, atol=1e-8)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(6, 25), st.integers(6, 25), st.floats(1.2, 3), st.integers(3, 5))
def test_chains_keep_the_budget_and_descend(seed, K, D, compression, n_factors):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((K, D))
    result = sparse_als(U, compression, weights=rng.integers(1, 9, K), n_factors=n_factors, inner_dim=2, init="svd")
    assert len(result.product.factors) == n_factors
    assert result.product.macs <= K * D / compression
    check_descent(result.history)
    refit = sparse_als(U, compression, init=result.product, max_iter=0)
    assert refit.product.macs <= K * D / compression
    check_descent(refit.history)


def test_a_chain_gains_from_its_middle_factor():
    U = digits(120)
    result = sparse_als(U, 6, n_factors=3, init="svd")
    middle = reference.dense(result.product.factors[1])
    assert np.count_nonzero(middle - np.diag(np.diag(middle))) > 0
    assert result.history[-1] < result.history[0]


def test_a_steep_spectrum_is_no_trap(rng):
    """A rotation across the whole spectrum spreads the few strong directions over all atoms."""
    U = nearly_low_rank(rng)
    for compression in (4, 8, 12):
        assert sparse_als(U, compression, init="svd").relative_error < factorize(U, "svd", compression).relative_error


def test_there_may_be_more_atoms_than_the_rank():
    """Rows that are sums of 24 parts: a basis of the 16 rows needs all its entries, the parts need few."""
    rng = np.random.default_rng(0)
    parts = np.kron(np.eye(24), np.ones(8))
    U = (rng.standard_normal((16, 24)) * (rng.random((16, 24)) < 0.3)) @ parts
    free, bounded = (sparse_als(U, U.size / 320, inner_dim=r, max_iter=10) for r in ("auto", 16))
    assert free.product.factors[0].shape[1] > 16 >= bounded.product.factors[0].shape[1]
    assert free.relative_error < 0.7 * bounded.relative_error


def test_wide_weights_starve_nobody(rng):
    U = rng.standard_normal((40, 200))
    n = np.r_[np.full(36, 1.0), np.full(4, 1e6)]
    U[36:] *= 1e-2
    rows = np.linalg.norm(sparse_als(U, 20, weights=n).product.toarray(), axis=1)
    assert (rows > 0).all()


def test_a_product_over_the_budget_is_pruned():
    U = digits(120)
    for n_factors in (2, 3):
        large = sparse_als(U, 3, n_factors=n_factors, init="svd").product
        result = sparse_als(U, 8, init=large, max_iter=0)
        assert result.product.macs <= U.size / 8 < large.macs


@pytest.mark.parametrize("n_factors", [2, 3])
@pytest.mark.parametrize("max_iter", [0, 2])
def test_a_refit_returns_what_its_history_says(rng, n_factors, max_iter):
    U = digits(120)
    first = sparse_als(U, 5, n_factors=n_factors, init="svd", max_iter=1).product
    moved = U + 0.3 * rng.standard_normal(U.shape)
    result = sparse_als(moved, 5, init=first, max_iter=max_iter)
    check_descent(result.history)
    assert result.history[-1] == pytest.approx(((moved - result.product.toarray()) ** 2).sum())
    assert result.history[-1] < ((moved - first.toarray()) ** 2).sum()
    if max_iter == 0:
        assert result.n_iter == 2
        assert [S.nnz for S in result.product.factors] == [S.nnz for S in first.factors]


@pytest.mark.parametrize("method", CLOSED)
@pytest.mark.parametrize("compression", [1.1, 1.9, 3.0])
def test_closed_forms_keep_the_budget(method, compression):
    U = digits(300)
    result = factorize(U, method, compression)
    assert result.product.macs <= U.size / compression
    difference = U - result.product.toarray()
    assert result.history[-1] == pytest.approx((difference**2).sum())
    assert result.relative_error == pytest.approx(np.linalg.norm(difference) / np.linalg.norm(U))


def test_closed_forms_by_hand(rng):
    U = digits(120)
    s = np.linalg.svd(U, compute_uv=False)
    assert factorize(U, "svd", 6).history[-1] == pytest.approx((s[U.size // 6 // sum(U.shape) :] ** 2).sum())
    sparse = rng.standard_normal((200, 64)) * (rng.random((200, 64)) < 0.05)
    sparse[:, 0] = 1
    assert factorize(sparse @ dct(64).toarray(), "dct", 6).relative_error < 1e-12


def test_auto_is_the_best_of_all(rng):
    U = digits(120)
    best = factorize(U, compression=4)
    assert best.relative_error <= min(factorize(U, m, 4).relative_error for m in ("als", "svd", "threshold", "dct"))
    sparse = rng.standard_normal((300, 64)) * (rng.random((300, 64)) < 0.05)
    assert factorize(sparse @ dct(64).toarray(), compression=8).relative_error < 1e-12
    assert factorize(U, "palm4msa", max_iter=5, sparsity_level=2).n_iter == 5
    assert factorize(U.astype(np.float32), "svd", 4).product.dtype == np.float32


def test_bad_arguments():
    U = digits(100)
    for arguments, error, message in [
        ({"method": "magic"}, ValueError, "method must be one of 'auto', 'als'"),
        ({"method": "svd", "tol": 1}, TypeError, "'svd' is in closed form and takes no tol"),
        ({"method": "svd", "compression": 60}, ValueError, "'svd' does not fit compression 60"),
        ({"method": "haar", "compression": 40}, ValueError, "'haar' does not fit compression 40"),
        ({"method": "dct", "compression": 0}, ValueError, "compression must be a finite number above 0, got 0"),
        ({"n_factors": 1}, ValueError, "n_factors must be a whole number from 2 to 64, got 1"),
        ({"n_factors": 2.5}, ValueError, "n_factors must be a whole number"),
        ({"n_factors": 40, "init": "svd"}, ValueError, "take fewer factors"),
        ({"init": SparseProduct([U])}, ValueError, "a product of two or more factors"),
    ]:
        with pytest.raises(error, match=message):
            factorize(U, **({"compression": 10} | arguments))
    for scale in (1e-200, 1e200):
        with pytest.raises(ValueError, match="out of the safe range of float64; scale U"):
            sparse_als(U * scale)
    with pytest.raises(ValueError, match="haar needs an order that is a power of two"):
        factorize(U[:, :60], "haar")


def test_no_compression_is_exact(rng):
    U = rng.standard_normal((30, 32))
    for method in ("auto", "als", "threshold"):
        assert factorize(U, method, 1).relative_error == 0


def test_a_budget_that_few_atoms_fill_by_more_than_half(rng):
    U = rng.standard_normal((200, 12)) @ rng.standard_normal((12, 120)) + 0.05 * rng.standard_normal((200, 120))
    assert sparse_als(U, 12).product.macs <= 2000
