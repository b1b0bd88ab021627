"""palm4MSA's sweeps against slow NumPy, its presets, and the paper's steps."""

import numpy as np
import pytest
import reference

from quickmeans import QKMeans, kernels
from quickmeans.experiments.l1 import project_rows
from quickmeans.transform import factorize, hierarchical_palm4msa, palm4msa
from quickmeans.transform.palm import factor_shapes
from quickmeans.transform.presets import preset_sets
from quickmeans.transform.projections import TopByShare, TopPerRowAndColumn


def paper_sweep(U, n, factors, scale, sets):
    """The body of the paper's Algorithm 2, with the exact spectral norms and D_sqrt(n) as a fixed first factor."""
    factors, root = list(factors), np.diag(np.sqrt(n))
    for q in reversed(range(len(factors))):
        L, R = root, np.eye(U.shape[1])
        for S in factors[:q]:
            L = L @ S
        for S in reversed(factors[q + 1 :]):
            R = S @ R
        c = 1.001 * scale**2 * np.linalg.norm(L, 2) ** 2 * np.linalg.norm(R, 2) ** 2
        step = factors[q] - scale / c * L.T @ (scale * L @ factors[q] @ R - root @ U) @ R.T
        kept = sets[q].project(step)
        factors[q] = kept / np.linalg.norm(kept)
    V = root @ reference.product(factors)
    return factors, float((V * (root @ U)).sum() / (V**2).sum())


@pytest.mark.parametrize("shape", [(9, 21), (21, 9), (16, 64)])
def test_the_papers_steps_are_those_of_its_appendix(shape, isa, rng):
    U, n = rng.standard_normal(shape), rng.integers(1, 9, shape[0]) * 1.0
    begin = palm4msa(U, 3, 3, weights=n, max_iter=2).product
    factors = [reference.dense(S) for S in begin.factors]
    scale = np.prod([np.linalg.norm(S) for S in factors])
    factors = [S / np.linalg.norm(S) for S in factors]
    sets = [TopPerRowAndColumn(3)] * 3
    for sweeps in (1, 2):
        factors, scale = paper_sweep(U, n, factors, scale, sets)
        result = palm4msa(U, 3, 3, weights=n, init=begin, steps="paper", lambda_update="sweep", max_iter=sweeps, tol=0)
        np.testing.assert_allclose(result.product.toarray(), scale * reference.product(factors), rtol=1e-3, atol=1e-3)
        error = (n[:, None] * (U - result.product.toarray()) ** 2).sum()
        np.testing.assert_allclose(result.history[-1], error, rtol=1e-9)


def test_paper_steps_with_the_scale_after_every_factor(rng):
    U = rng.standard_normal((12, 30))
    result = palm4msa(U, 3, 3, steps="paper", max_iter=60, tol=0)
    np.testing.assert_allclose(result.history[-1], ((U - result.product.toarray()) ** 2).sum(), rtol=1e-9)
    assert palm4msa(U, 3, 3, max_iter=60, tol=0).history[-1] < result.history[-1] < 0.9 * (U**2).sum()


def test_presets_are_the_papers_numbers():
    assert factor_shapes((30, 784), "paper") == [(30, 30)] * 3 + [(30, 784)]
    assert len(factor_shapes((30, 784), "journal")) == 9
    assert factor_shapes((128, 2000), "paper")[-1] == (128, 2000)
    for level, budget, per_row, per_column in ((2, 2940, 98, 3), (3, 2940, 98, 3), (5, 3920, 130, 5)):
        *square, large = preset_sets((30, 784), level, 4)
        assert square == [TopPerRowAndColumn(level)] * 3
        assert large == TopByShare(budget)
        assert large.quota((30, 784))[:2] == (per_row, per_column)
        turned, *_ = preset_sets((784, 30), level, 4)
        assert turned.quota((784, 30))[:2] == (per_column, per_row)


def test_shares_are_a_union_of_rows_and_columns(rng):
    M = rng.standard_normal((6, 15))
    kept = TopByShare(30).project(M) != 0
    expected = np.zeros(M.shape, bool)
    for i, j in enumerate(np.argsort(-np.abs(M), axis=1)[:, :5]):
        expected[i, j] = True
    for j, i in enumerate(np.argsort(-np.abs(M), axis=0)[:2].T):
        expected[i, j] = True
    np.testing.assert_array_equal(kept, expected)
    assert TopByShare(30).name == "30 shared by rows and by columns"
    assert (TopByShare(1).project(M) != 0).any(axis=1).all()


@pytest.mark.parametrize("shape", [(12, 60), (60, 12)])
def test_presets_of_both_solvers(shape, rng):
    U = rng.standard_normal(shape) + 3
    for solve in (palm4msa, hierarchical_palm4msa):
        result = solve(U, "paper", 2)
        assert [S.shape for S in result.product.factors] == factor_shapes(shape, "paper")
        large = reference.dense(result.product.factors[-1 if shape[0] < shape[1] else 0])
        assert (np.count_nonzero(large, axis=0) >= min(720 // 4 // shape[1], 2)).all()
        letter = solve(U, "paper", 2, steps="paper", lambda_update="sweep")
        assert max(result.history[-1], letter.history[-1]) < 0.1 * (U**2).sum()


def test_the_first_factorization_of_a_preset_is_hierarchical(rng):
    U = rng.standard_normal((12, 60))
    first = factorize(U, "palm4msa", n_factors="paper", sparsity_level=2)
    assert first.product == hierarchical_palm4msa(U, "paper", 2).product
    X = np.repeat(U, 10, axis=0) + 0.1 * rng.standard_normal((120, 60))
    model = QKMeans(12, solver="palm4msa", n_factors="journal", sparsity_level=2, shortlist=0, random_state=0).fit(X)
    assert len(model.product_.factors) == 5
    assert (np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0]).all()


def test_bad_presets_and_steps():
    for shape in ((3, 50), (50, 3)):
        for solve in (palm4msa, hierarchical_palm4msa):
            with pytest.raises(ValueError, match=r"n_factors='paper' is for matrices with at least 4 rows and columns"):
                solve(np.ones(shape), "paper")
    with pytest.raises(ValueError, match="steps must be 'scaled' or 'paper', got 'long'"):
        palm4msa(np.eye(8), steps="long")
    with pytest.raises(ValueError, match="n_factors must be a whole number from 1 to 64, 'auto', 'paper' or 'journal'"):
        QKMeans(3, n_factors="letter").fit(np.eye(8))


def test_native_code_refuses_what_does_not_fit():
    options, set_ = kernels.PalmOptions(False, False, 0.1, 7, 3), kernels.FactorSet(1, 1, False, True)
    for U, n, factors, sets in (
        (np.eye(4), np.ones(3), [np.eye(4)], [set_]),
        (np.eye(4), np.ones(4), [np.eye(3)], [set_]),
        (np.eye(4), np.ones(4), [np.eye(4), np.ones((4, 3))], [set_] * 2),
        (np.eye(4), np.ones(4), [np.eye(4)], [set_] * 2),
        (np.eye(4), np.ones(4), [np.eye(4)], [set_._replace(per_row=-1)]),
    ):
        with pytest.raises(ValueError, match=r"wrong|negative"):
            kernels.Palm(U, n, factors, sets, options)


def test_threads_change_nothing(monkeypatch, rng):
    U, results = rng.standard_normal((300, 320)), []
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("QUICKMEANS_NUM_THREADS", n_threads)
        results.append(palm4msa(U, 2, 40, max_iter=2, tol=0).product)
    assert results[0] == results[1] == results[2]


def test_l1_ball_by_hand():
    U = np.array([[3.0, -2], [1, 0.5]])
    np.testing.assert_array_equal(project_rows(U, 2), [[2, -1], [0, 0]])
    np.testing.assert_array_equal(project_rows(U, 4), U)
