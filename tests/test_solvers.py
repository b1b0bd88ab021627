"""palm4MSA and sparse ALS."""

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from quickmeans import SparseProduct
from quickmeans.testing import check_descent
from quickmeans.transform import hadamard, hierarchical_palm4msa, palm4msa, sparse_als
from quickmeans.transform.palm import factor_shapes
from quickmeans.transform.projections import Constant, FixedSupport, NonNegative, TopPerRow, TopPerRowAndColumn

SOLVERS = {
    "palm4msa": lambda U, **kw: palm4msa(U, 2, 3, **kw),
    "hierarchical_palm4msa": lambda U, **kw: hierarchical_palm4msa(U, 3, 3, **kw),
    "sparse_als": lambda U, **kw: sparse_als(U, 3, **kw),
}


def objective(U, n, product):
    return float((n[:, None] * (U - reference.product(product.factors)) ** 2).sum())


def digits(K):
    return (load_digits().data[:K] - load_digits().data.mean(axis=0)).astype(np.float64)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(12, 30), (20, 20), (30, 12)])
@pytest.mark.parametrize("seed", range(4))
def test_history_is_the_objective_and_never_rises(solver, shape, seed):
    rng = np.random.default_rng(seed)
    U, n = rng.standard_normal(shape), rng.integers(0, 50, shape[0]) * 1.0
    result = SOLVERS[solver](U, weights=n)
    check_descent(result.history)
    assert result.history[-1] < (n[:, None] * U**2).sum()
    np.testing.assert_allclose(objective(U, n, result.product), result.history[-1], rtol=1e-6)
    np.testing.assert_allclose(
        result.relative_error, np.sqrt(result.history[-1] / (n[:, None] * U**2).sum()), rtol=1e-6
    )
    assert result.n_iter == len(result.history) - 1


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(1, 4),
    st.sampled_from(["factor", "sweep"]),
)
def test_palm_descends_on_any_shape(seed, K, D, Q, when):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((K, D)) @ rng.standard_normal((D, D))
    result = palm4msa(U, Q, 2, weights=rng.integers(0, 5, K) + (np.arange(K) == 0), lambda_update=when, max_iter=20)
    check_descent(result.history)
    assert len(result.product.factors) == Q
    assert result.product.shape == (K, D)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(1, 25), st.integers(1, 5), st.integers(1, 6))
def test_hierarchical_on_any_shape(seed, K, D, Q, k):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((K, D)) * rng.choice([0, 1, 5], (K, 1))
    result = hierarchical_palm4msa(U, Q, k, weights=rng.integers(0, 5, K) + (np.arange(K) == 0), max_iter=10)
    check_descent(result.history)
    assert [S.shape for S in result.product.factors] == factor_shapes(U.shape, Q)
    assert np.isfinite(result.product.toarray()).all()
    for S in result.product.factors:
        counts = reference.dense(S) != 0
        assert (counts.sum() <= k * sum(S.shape)) or k >= min(S.shape)


def test_there_are_as_many_factors_as_the_smaller_side_has_bits():
    assert factor_shapes((30, 784)) == [(30, 30)] * 4 + [(30, 784)]
    assert factor_shapes((784, 10)) == [(784, 10)] + [(10, 10)] * 2
    assert factor_shapes((2, 9)) == [(2, 2), (2, 9)]


@pytest.mark.parametrize("order", [4, 32, 64, 128, 256])
def test_hadamard_matrices_are_found_exactly(order):
    """Two entries in every row and column of log2(order) factors."""
    H, Q = hadamard(order).toarray(), int(np.log2(order))
    result = hierarchical_palm4msa(H, Q, 2)
    assert np.linalg.norm(result.product.toarray() - H) < 1e-6 * np.linalg.norm(H)
    for S in result.product.factors:
        for axis in (0, 1):
            np.testing.assert_array_equal((reference.dense(S) != 0).sum(axis=axis), 2)


def test_hierarchical_is_better_than_flat():
    for K, Q, k in ((40, 4, 3), (64, 4, 3), (64, 5, 5)):
        flat, levels = palm4msa(digits(K), Q, k), hierarchical_palm4msa(digits(K), Q, k)
        assert levels.relative_error < flat.relative_error
        assert levels.product.nnz < 1.05 * flat.product.nnz


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(2, 25), st.floats(1.05, 20))
def test_als_keeps_the_budget_and_every_row(seed, K, D, compression):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((K, D)) * rng.choice([0, 1, 5], (K, 1))
    budget = int(K * D / compression)
    if budget < K + 1:
        with pytest.raises(ValueError, match=f"leaves {budget} non-zeros"):
            sparse_als(U, compression)
        return
    result = sparse_als(U, compression, weights=rng.integers(1, 9, K))
    assert result.product.macs <= budget
    check_descent(result.history)
    assert np.isfinite(result.product.toarray()).all()
    assert result.relative_error <= 1 + 1e-12
    live = np.abs(U).max(axis=1) > 0
    assert (np.abs(result.product.toarray()[live]).max(axis=1) > 0).all(), "no row may lose all its coefficients"


def test_als_finds_a_sparse_product(rng):
    C, W = (rng.standard_normal(shape) * (rng.random(shape) < 0.25) for shape in ((60, 8), (8, 50)))
    U, budget = C @ W, np.count_nonzero(C) + np.count_nonzero(W) + 30
    result = sparse_als(U, U.size / budget, inner_dim=8, max_iter=50, tol=0)
    s = np.linalg.svd(U, compute_uv=False)
    assert result.relative_error < 0.1 < np.linalg.norm(s[budget // sum(U.shape) :]) / np.linalg.norm(s)


def test_als_beats_the_svd_of_the_same_cost():
    U = digits(120)
    result = sparse_als(U, 6)
    r = result.product.macs // sum(U.shape)
    s = np.linalg.svd(U, compute_uv=False)
    assert result.history[-1] < 0.7 * (s[r:] ** 2).sum()


def test_als_goes_on_from_a_product():
    U = digits(120)
    first = sparse_als(U, 6, max_iter=1)
    refit = sparse_als(U, 6, init=first.product, max_iter=0)
    assert refit.history[-1] <= first.history[-1] * (1 + 1e-9)
    assert [np.count_nonzero(reference.dense(S)) for S in refit.product.factors] == [
        S.nnz for S in first.product.factors
    ]
    further = sparse_als(U, 6, init=first.product, max_iter=5)
    assert further.history[-1] < refit.history[-1]
    for wrong in (SparseProduct([U]), SparseProduct([np.eye(3), np.eye(3)])):
        with pytest.raises(ValueError, match="init must be a product of two or more factors"):
            sparse_als(U, 6, init=wrong)


def test_als_is_the_same_for_every_number_of_threads(monkeypatch):
    U, results = digits(100), []
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("QUICKMEANS_NUM_THREADS", n_threads)
        results.append(sparse_als(U, 6).product)
    assert results[0] == results[1] == results[2]


def test_least_squares_on_supports_by_hand(isa):
    """min |u - c W|^2 for W = [[1, 0], [1, 1]]: c = [-1, 2] for u = [1, 2]; the first entry costs 1/2, the second 2."""
    from quickmeans.transform.pair import fit_rows

    W, u = np.array([[1.0, 0], [1, 1]]), np.array([[1.0, 2]])
    support = np.ones((1, 2), np.uint8)
    values, prices = fit_rows(W @ W.T, u @ W.T, np.ones(1), support)
    np.testing.assert_allclose(values, [[-1, 2]], rtol=1e-8)
    np.testing.assert_allclose(prices, [[0.5, 2.0 * 2 / 1 / 1]], rtol=1e-8)
    values, prices = fit_rows(W @ W.T, u @ W.T, np.ones(1), support, np.array([1]))
    np.testing.assert_allclose(values, [[0, 1.5]], rtol=1e-8)
    np.testing.assert_array_equal(support, [[0, 1]])


def test_identity_keeps_the_largest_entries():
    U = np.array([[5.0, 1, 0], [0.1, 0.2, 0], [4, 3, 2]])
    result = sparse_als(U, 9 / 4, init="identity")
    np.testing.assert_array_equal(result.product.toarray(), [[5, 0, 0], [0, 0.2, 0], [4, 3, 0]])


@pytest.mark.parametrize("solver", SOLVERS)
def test_degenerate_matrices(solver, rng):
    ones = np.ones((10, 12))
    for U in (
        np.zeros((10, 12)),
        ones,
        np.outer(np.arange(10.0), np.arange(12.0)),
        np.tile(rng.standard_normal(12), (10, 1)),
    ):
        result = SOLVERS[solver](U)
        assert np.isfinite(result.product.toarray()).all()
        assert result.relative_error < 1e-4 or solver != "sparse_als"
        check_descent(result.history, rtol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_types_and_inputs_left_alone(solver, rng):
    U = rng.standard_normal((12, 20)).astype(np.float32)
    U.flags.writeable = False
    assert SOLVERS[solver](U).product.dtype == np.float32
    assert SOLVERS[solver](U.astype(np.float64)).product.dtype == np.float64
    assert SOLVERS[solver](rng.integers(0, 9, (12, 20))).product.dtype == np.float64


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"U": np.ones(3)}, ValueError, "U must be a matrix"),
        ({"U": np.ones((0, 3))}, ValueError, "U must be a matrix"),
        ({"U": np.array([[1, np.nan], [1, 1]])}, ValueError, "U holds nan at row 0, column 1"),
        ({"U": np.ones((3, 3)) * 1j}, TypeError, "U has dtype complex128"),
        ({"weights": np.ones(3)}, ValueError, r"weights must have shape \(8,\)"),
        ({"weights": -np.ones(8)}, ValueError, "weights must be finite, not negative"),
        ({"weights": np.zeros(8)}, ValueError, "not all zero"),
        ({"max_iter": -1}, ValueError, "max_iter must be"),
        ({"max_iter": 1.5}, ValueError, "max_iter must be a whole number"),
        ({"max_iter": 2**70}, ValueError, "max_iter must be a whole number from [01] to 9223372036854775807, got 1180"),
        ({"tol": -1.0}, ValueError, "tol must be a finite number not below 0, got -1.0"),
        ({"tol": "small"}, ValueError, "tol must be a finite number"),
        ({"tol": 10**400}, ValueError, "tol must be a finite number"),
    ],
)
def test_bad_input(solver, change, error, message):
    arguments = {"U": np.eye(8)} | change
    with pytest.raises(error, match=message):
        SOLVERS[solver](arguments.pop("U"), **arguments)


def test_bad_arguments_of_one_solver():
    U = np.eye(8)
    for arguments, message in [
        ({"compression": 0}, "compression must be a finite number above 0, got 0"),
        ({"compression": 60}, r"at most 7\.111 is possible"),
        ({"inner_dim": 0}, "inner_dim must be a whole number not below 1 or 'auto', got 0"),
        ({"init": "random"}, "init must be 'auto', 'svd', 'identity'"),
        ({"n_factors": 10**6}, "n_factors must be a whole number from 2 to 64, got 1000000"),
    ]:
        with pytest.raises(ValueError, match=message):
            sparse_als(U, **({"compression": 3} | arguments))
    for arguments, message in [
        ({"n_factors": 0}, "n_factors must be a whole number from 1 to 64, 'auto', 'paper' or 'journal', got 0"),
        (
            {"n_factors": 10**6},
            "n_factors must be a whole number from 1 to 64, 'auto', 'paper' or 'journal', got 1000000",
        ),
        ({"n_factors": 2**70}, "n_factors must be a whole number from 1 to 64"),
        ({"sparsity_level": 0}, "sparsity_level must be a whole number not below 1, got 0"),
        ({"lambda_update": "never"}, "lambda_update must be 'factor' or 'sweep'"),
        ({"init": SparseProduct([np.eye(3)])}, r"init must be a SparseProduct of shape \(8, 8\), got shape \(3, 3\)"),
        ({"init": [np.eye(8)]}, r"init must be a SparseProduct of shape \(8, 8\), got \[array"),
        ({"n_factors": 2, "projections": [TopPerRow(1)]}, "one projection per factor: 2 factors, got 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            palm4msa(U, **arguments)
        if not arguments.keys() & {"lambda_update", "init", "projections"}:
            with pytest.raises(ValueError, match=message):
                hierarchical_palm4msa(U, **arguments)


def test_no_compression_is_the_matrix_itself(rng):
    U = rng.standard_normal((5, 6))
    result = sparse_als(U, 1)
    np.testing.assert_array_equal(result.product.toarray(), U)
    assert result.relative_error == 0


def test_callback_sees_the_history_and_stops():
    for solve in SOLVERS.values():
        seen = []
        result = solve(digits(60), callback=lambda i, value, seen=seen: seen.append((i, value)) or i >= 2)
        assert [i for i, _ in seen] == [1, 2]
        assert [value for _, value in seen] == list(result.history[1:])
        assert not result.converged


def test_palm_warm_start_and_other_sets(rng):
    U = digits(40)
    first = palm4msa(U, 3, 4, max_iter=10)
    again = palm4msa(U, init=first.product, sparsity_level=4, max_iter=10)
    assert again.history[0] == pytest.approx(first.history[-1])
    assert again.history[-1] <= first.history[-1]
    fixed = palm4msa(
        U, init=first.product, projections=[FixedSupport(reference.dense(S) != 0) for S in first.product.factors]
    )
    assert fixed.product.nnz <= first.product.nnz
    assert fixed.history[-1] < first.history[-1]


@pytest.mark.parametrize("when", ["factor", "sweep"])
def test_palm_stays_in_sets_that_restrict_values(rng, when):
    U, fixed = np.abs(digits(40)), rng.standard_normal((40, 40))
    sets = [Constant(fixed), NonNegative(TopPerRow(4)), NonNegative(TopPerRowAndColumn(3))]
    result = palm4msa(U, 3, projections=sets, max_iter=50, lambda_update=when)
    check_descent(result.history)
    assert result.history[-1] < 0.99 * (U**2).sum()
    first, *rest = (reference.dense(S) for S in result.product.factors)
    np.testing.assert_allclose(first / first[0, 0], fixed / fixed[0, 0], rtol=1e-9)
    for S in rest:
        assert (S >= 0).all()
    assert (np.count_nonzero(rest[0], axis=1) <= 4).all()


def test_palm_recovers_a_sparse_matrix_exactly(rng):
    U = np.diag(rng.uniform(1, 2, 16))
    assert palm4msa(U, 2, 1, max_iter=500, tol=0).relative_error < 1e-6


def test_non_convergence_is_reported(rng):
    U = rng.standard_normal((20, 20))
    assert not palm4msa(U, 2, 3, max_iter=2, tol=0).converged
    assert palm4msa(U, 2, 3, max_iter=2000, tol=1e-3).converged
