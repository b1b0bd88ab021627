"""The registry of solvers, and solvers that users write."""

import inspect
from pathlib import Path

import click
import numpy as np
import pytest

from quickmeans import QKMeans, SparseProduct, load
from quickmeans.cli.fit import fit
from quickmeans.testing import check_descent
from quickmeans.transform import SolverSettings, factorize, hierarchical_palm4msa, palm4msa, sparse_als
from quickmeans.transform.solvers import SOLVERS, solver_by

PARAMETERS = Path(__file__).parent.parent / "docs" / "parameters.md"


def dense(U, weights, init, settings):
    return SparseProduct([U])


@pytest.fixture
def rows(rng):
    return rng.standard_normal((300, 12))


def test_everybody_reads_the_registry(monkeypatch, rows):
    monkeypatch.setitem(SOLVERS, "own", lambda U, weights, init, settings: sparse_als(U, 1, weights=weights))
    (option,) = (param for param in fit.params if param.name == "solver")
    assert f"[{'|'.join(SOLVERS)}]" in fit.get_help(click.Context(fit))
    assert option.type.convert("own", option, None) == "own"
    with pytest.raises(click.UsageError, match="must be one of 'als', 'palm4msa', 'hierarchical', 'own', got 'sgd'"):
        option.type.convert("sgd", option, None)
    model = QKMeans(6, solver="own", shortlist=0, random_state=0).fit(rows)
    assert model.product_.nnz == model.product_.macs == 6 * 12
    assert factorize(rows, "own").relative_error == 0
    for call in (lambda: QKMeans(6, solver="sgd").fit(rows), lambda: factorize(rows, "sgd")):
        with pytest.raises(ValueError, match=r"must be one of .*'als', 'palm4msa', 'hierarchical', 'own'.* got 'sgd'"):
            call()


def test_documentation_names_every_solver():
    table = PARAMETERS.read_text("utf-8")
    for name in SOLVERS:
        assert f'"{name}"' in inspect.getdoc(QKMeans)
        assert f'"{name}"' in inspect.getdoc(factorize)
        assert f'`"{name}"`' in table


def test_registered_solvers_are_the_functions(rng):
    U, n = rng.standard_normal((20, 30)), np.arange(1.0, 21)
    settings = SolverSettings(compression=2.5, n_factors=2, sparsity_level=3)
    start = SparseProduct([rng.standard_normal((20, 4)), rng.standard_normal((4, 30))])
    for name, plain, warm in [
        ("als", sparse_als(U, 2.5, weights=n), sparse_als(U, 2.5, weights=n, init=start, max_iter=3)),
        ("palm4msa", palm4msa(U, 2, 3, weights=n), palm4msa(U, sparsity_level=3, weights=n, init=start)),
        ("hierarchical", *2 * [hierarchical_palm4msa(U, 2, 3, weights=n)]),
    ]:
        assert solver_by(name)(U, n, None, settings).product == plain.product
        assert solver_by(name)(U, n, start, settings).product == warm.product


@pytest.mark.parametrize("name", ["", "ALS", 3, None, ["als"]])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="solver must be one of 'als', 'palm4msa', 'hierarchical', or a callable, got"):
        solver_by(name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", ["factorization", "product"])
def test_a_callable_learns_the_centroids(rows, dtype, shape):
    calls = []

    def solver(U, weights, init, settings):
        calls.append((U.dtype, len(weights), init, settings))
        result = sparse_als(U.astype(np.float64), settings.compression, weights=weights)
        return result.product if shape == "product" else result

    options = {"shortlist": 0, "compression": 2, "n_factors": 3, "random_state": 0}
    model = QKMeans(10, solver=solver, **options).fit(rows.astype(dtype))
    check_descent(model.objective_history_)
    assert model.product_.dtype == dtype
    assert [init for *_, init, _ in calls[:1]] == [None]
    assert calls[-1][2].shape == (10, 12)
    for U_dtype, n_weights, _, settings in calls:
        assert (U_dtype, n_weights, settings) == (dtype, 10, SolverSettings(2.0, 3, 5))


def test_results_of_a_callable_are_checked(rows):
    huge = [np.full((6, 1), 1e200), np.full((1, 12), 1e200)]
    for result, error, message in [
        (None, TypeError, "solver must return a Factorization or a SparseProduct, got NoneType"),
        (np.ones((6, 12)), TypeError, "got ndarray"),
        (SparseProduct([np.eye(12)]), ValueError, r"solver must return a product of shape \(6, 12\), got \(12, 12\)"),
        (SparseProduct(huge), ValueError, "solver must return a product of finite numbers"),
    ]:
        with pytest.raises(error, match=message):
            QKMeans(6, solver=lambda *_, result=result: result, shortlist=0, random_state=0).fit(rows)
    result = factorize(rows, lambda *_: SparseProduct([np.zeros(rows.shape)]), weights=np.arange(300))
    assert (result.relative_error, result.n_iter, result.converged) == (1, 0, True)


def test_options_reach_a_callable(rows):
    seen = []
    factorize(rows, lambda U, *rest: seen.append(rest) or SparseProduct([U]), 3, depth=2)
    assert seen == [(None, None, SolverSettings(3, options={"depth": 2}))]


def test_a_model_with_a_callable_can_be_saved(rows, tmp_path):
    model = QKMeans(6, solver=dense, shortlist=0, random_state=0).fit(rows)
    model.save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    assert loaded.solver == "als"
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
