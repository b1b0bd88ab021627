"""Algorithm 1 of the paper, line by line against the slow reference."""

import ast
import inspect

import numpy as np
import pytest
import reference
from points import points_of

from quickmeans import QKMeans
from quickmeans.kmeans import algorithm1
from quickmeans.kmeans.algorithm1 import quick_means
from quickmeans.kmeans.lloyd import Iterate
from quickmeans.kmeans.memory_pass import MemoryPass
from quickmeans.kmeans.screen import Screen
from quickmeans.testing import check_descent
from quickmeans.transform import SparseProduct, palm4msa
from quickmeans.transform.solvers import SOLVERS


@pytest.fixture
def data(rng):
    X = rng.standard_normal((12, 16))[rng.integers(0, 12, 300)] + 0.2 * rng.standard_normal((300, 16))
    return X, X[rng.permutation(300)[:8]]


def learn(U, n, init, n_iter=0):
    return palm4msa(U, 2, 4, weights=n, init=init, max_iter=50).product


class Recorded(MemoryPass):
    """A pass that records what the algorithm sees after every assignment."""

    def __init__(self, points, n_clusters):
        super().__init__(points, n_clusters)
        self.labels, self.weights, self.means = [], [], []

    def assign(self, assigner, center_shift=None):
        changed = super().assign(assigner, center_shift)
        self.labels.append(self.assignment.labels.copy())
        self.weights.append(self.sums.weights.copy())
        self.means.append(self.sums.means(assigner.centers))
        return changed


@pytest.mark.parametrize("weighted", [False, True])
def test_every_line_is_that_of_the_reference(data, rng, weighted):
    X, start = data
    w = rng.random(300) if weighted else None
    points = points_of(X, w)
    mean = points.geometry.mean
    passes = Recorded(points, 8)
    iterate = Iterate(start - mean, assigner=Screen(start - mean, points.geometry))
    quick_means(passes, iterate, learn, max_iter=6, tol=0.0)
    steps = reference.quick_means(X - mean, start - mean, learn, np.ones(300) if w is None else w, iterate.n_iter)
    assert len(steps) == len(passes.labels) == iterate.n_iter + 1  # line 1 assigns once to make the first factors
    for i, step in enumerate(steps):
        np.testing.assert_array_equal(passes.labels[i], step["t"])  # line 3
        np.testing.assert_allclose(passes.weights[i], step["n"])  # line 4
        np.testing.assert_allclose(passes.means[i], step["U"], atol=1e-12)  # line 4
    objectives = [value for step in steps[1:] for value in (step["assigned"], step["updated"])]
    np.testing.assert_allclose(iterate.history, objectives, rtol=1e-9)
    np.testing.assert_allclose(iterate.latest.centers, steps[-1]["V"], atol=1e-9)  # lines 5 to 8
    check_descent(iterate.history)


def test_the_best_iterate_is_kept(data):
    """A solver that spoils the factors now and then, as a hierarchical one may."""
    X, start = data
    points = points_of(X)
    calls = []

    def spoiling(U, n, init, n_iter):
        calls.append(1)
        noise = 3.0 if len(calls) % 3 == 0 else 0.0
        return SparseProduct([U + noise * np.random.default_rng(len(calls)).standard_normal(U.shape)])

    centers = start - points.geometry.mean
    iterate = Iterate(centers, assigner=Screen(centers, points.geometry))
    quick_means(MemoryPass(points, 8), iterate, spoiling, max_iter=9, tol=0.0)
    best = np.argmin(iterate.history[1::2])
    assert min(iterate.history[1::2]) < iterate.history[-1] or best == iterate.n_iter - 1
    labels = reference.nearest_rows(X - points.geometry.mean, iterate.assigner.centers, 1)[:, 0]
    distances = ((X - points.geometry.mean - iterate.assigner.centers[labels]) ** 2).sum()
    assert distances <= min(iterate.history[1::2]) * (1 + 1e-9)


def test_it_is_what_shortlist_0_runs(data, monkeypatch):
    X, start = data
    calls = []
    original = algorithm1.quick_means
    monkeypatch.setattr("quickmeans.kmeans.run.quick_means", lambda *a, **k: calls.append(1) or original(*a, **k))
    model = QKMeans(8, init=start, shortlist=0, solver="palm4msa", n_factors=2, sparsity_level=4, max_iter=3).fit(X)
    assert calls == [1]
    np.testing.assert_allclose(model.cluster_centers_, model.product_.toarray() + model.mean_)


@pytest.mark.parametrize("solver", ["als", "palm4msa"])
def test_sparse_als_starts_anew_after_3_6_and_12_iterations(data, monkeypatch, solver):
    """It is called once more then; the first call is that of line 1."""
    X, start = data
    original, calls = SOLVERS[solver], []

    def recorded(U, n, init, settings):
        calls.append(init is None)
        return original(U, n, init, settings)

    monkeypatch.setitem(SOLVERS, solver, recorded)
    options = {"compression": 2} if solver == "als" else {"n_factors": 2, "sparsity_level": 4}
    model = QKMeans(8, init=start, shortlist=0, solver=solver, max_iter=13, tol=0, **options)
    model.fit(X)
    check_descent(model.objective_history_)
    anew = [i for i, is_fresh in enumerate(calls) if is_fresh]
    turns = [n for n in (3, 6, 12) if n < model.n_iter_] if solver == "als" else []
    assert len(calls) == 1 + model.n_iter_ + len(turns)
    assert anew == [0, *(2 + n + i for i, n in enumerate(turns))]


def test_it_fits_on_a_screen():
    lines = set()
    for node in ast.walk(ast.parse(inspect.getsource(algorithm1))):
        if isinstance(node, ast.expr | ast.stmt) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            lines |= {node.lineno} if not isinstance(node, ast.Constant) else set()
    assert len(lines) <= 50
