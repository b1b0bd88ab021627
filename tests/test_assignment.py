"""The native screen and assignment, against exact distances, and the grouping of labels."""

from dataclasses import dataclass

import numpy as np
import pytest
import reference
import scipy.sparse as sp

from quickmeans import SparseProduct, kernels

KINDS = ["dense", "sparse", "low rank"]


@dataclass
class Problem:
    """Rows, centers about their mean, and a product near the centers."""

    X: np.ndarray
    centers: np.ndarray
    mean: np.ndarray
    product: SparseProduct | None
    offset: np.ndarray
    center_offset: np.ndarray
    slack: np.ndarray

    def screen(self, margin=1.0, shortlist=0):
        product = None if self.product is None else self.product.native(self.X.dtype)
        return kernels.Screen(
            product, self.centers, self.mean, self.offset, self.center_offset, self.slack, margin, shortlist
        )

    def nearest(self, m=1):
        return reference.nearest_rows(self.X, self.centers + self.mean, m)


def problem(kind, dtype, n=300, K=70, D=30, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, D)) + 1).astype(dtype)
    mean = X.mean(axis=0, dtype=np.float64)
    centers = (X[rng.integers(0, n, K)] - mean + 0.1 * rng.standard_normal((K, D))).astype(dtype)
    exact = 0.0 - ((centers.astype(float) ** 2).sum(axis=1) / 2 + centers @ mean)
    if kind == "dense":
        return Problem(X, centers, mean, None, exact, exact, np.zeros(K))
    if kind == "low rank":
        basis = np.linalg.svd(centers.astype(float))[2][:8].T.astype(dtype)
        product = SparseProduct([centers @ basis, basis.T])
    else:
        product = SparseProduct([sp.csr_array(np.where(np.abs(centers) > 0.7, centers, 0))])
    rest = centers.astype(float) - product.toarray()
    return Problem(X, centers, mean, product, exact + rest @ mean, exact, np.linalg.norm(rest, axis=1))


def copied(assignment):
    """The arrays of an assignment as bytes, and its counters."""
    arrays = (assignment.labels, assignment.best, assignment.second, assignment.norms)
    return [a.tobytes() for a in arrays], assignment.n_listed, assignment.n_settled


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_assign_with_a_margin_of_one_is_exact(isa, kind, dtype):
    p = problem(kind, dtype)
    assignment = kernels.make_assignment(len(p.X), dtype)
    assert p.screen().assign(p.X, assignment) == -1
    exact = p.nearest(2)
    np.testing.assert_array_equal(assignment.labels, exact[:, 0])
    scores = p.X.astype(float) @ p.centers.T.astype(float) + p.center_offset
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(assignment.best, scores.max(axis=1), atol=tolerance)
    assert (assignment.second >= np.take_along_axis(scores, exact, 1)[:, 1] - tolerance).all()
    np.testing.assert_allclose(assignment.norms, ((p.X - p.mean) ** 2).sum(axis=1), rtol=1e-5)
    assert assignment.n_settled <= assignment.n_listed
    assert assignment.n_listed >= len(p.X)


@pytest.mark.parametrize("kind", KINDS)
def test_assign_in_parts_and_by_threads_gives_the_same_bits(kind):
    p = problem(kind, np.float32, n=3000, K=200)
    whole = kernels.make_assignment(3000, np.float32)
    whole.best[:] = whole.second[:] = whole.norms[:] = 0
    p.screen(0.1).assign(p.X, whole, n_threads=3)
    parts = kernels.make_assignment(3000, np.float32)
    for first, end in ((0, 1), (1, 700), (700, 3000)):
        p.screen(0.1).assign(p.X[first:end], parts, first, n_threads=1)
    assert copied(parts) == copied(whole)
    for X in (np.asfortranarray(p.X), p.X.astype(">f4"), p.X[::-1].copy()[::-1]):
        again = kernels.make_assignment(3000, np.float32)
        p.screen(0.1).assign(X, again)
        assert copied(again) == copied(whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_nearest_with_all_centers_listed(isa, kind, dtype):
    p = problem(kind, dtype)
    labels, scores, bad = p.screen().nearest(p.X, 3, 70, 2)
    assert bad == -1
    np.testing.assert_array_equal(np.sort(labels, axis=1), np.sort(p.nearest(3), axis=1))
    exact = p.X.astype(float) @ p.centers.T.astype(float) + p.center_offset
    np.testing.assert_allclose(scores, np.take_along_axis(exact, labels, 1), atol=1e-3)
    one = problem(kind, dtype, K=1)
    labels, scores, bad = one.screen().nearest(one.X, 1, 1)
    assert (bad, labels.any()) == (-1, False)


def test_rows_that_cannot_be_compared_are_named(isa):
    p = problem("low rank", np.float32, n=500)
    p.X[300:, 4] = np.nan
    assignment = kernels.make_assignment(500, np.float32)
    bad = p.screen().assign(p.X, assignment)
    assert 300 - 64 < bad <= 300
    assert p.screen().assign(p.X, assignment, index=np.arange(10)) == -1
    assert p.screen().assign(p.X, assignment, index=np.array([5, 300])) == 1
    assert p.screen().nearest(p.X, 2, 4)[2] == bad


def test_a_screen_keeps_what_it_was_made_of():
    p = problem("low rank", np.float32)
    screen, assignment = p.screen(0.1), kernels.make_assignment(300, np.float32)
    screen.assign(p.X, assignment)
    X, expected = p.X, copied(assignment)
    derived = screen.with_margin(0.1)
    del p, screen
    again = kernels.make_assignment(300, np.float32)
    derived.assign(X, again)
    assert copied(again) == expected


def test_an_assignment_shares_its_arrays():
    labels, best = np.zeros(4, np.int32), np.zeros(4)
    assignment = kernels.bind_assignment(labels, best, best.copy(), best.copy())
    assert assignment.labels is labels
    assert assignment.best is best
    assert (len(assignment), assignment.norms_known, assignment.n_listed, assignment.n_settled) == (4, False, 0, 0)
    with pytest.raises(ValueError, match="equally long"):
        kernels.bind_assignment(labels, best[:3], best, best)
    for wrong in (labels.astype(np.int64), np.zeros(8, np.int32)[::2], labels[None]):
        with pytest.raises((TypeError, ValueError), match="labels must be"):
            kernels.bind_assignment(wrong, best, best, best)


def test_the_screen_refuses_what_does_not_fit():
    p = problem("low rank", np.float32)
    screen, assignment = p.screen(), kernels.make_assignment(300, np.float32)
    for first in (-1, 1, 2**62):
        with pytest.raises(ValueError, match="rows do not fit the assignment"):
            screen.assign(p.X, assignment, first)
    for index in ([-1], [300], [3, 2], [2, 2]):
        with pytest.raises(ValueError, match="index"):
            screen.assign(p.X, assignment, index=np.array(index))
    with pytest.raises(ValueError, match="rows do not fit"):
        screen.assign(p.X[:, 1:], assignment)
    with pytest.raises(ValueError, match="projected"):
        screen.assign(p.X, assignment, projected=np.zeros((300, 8), np.float32))  # the norms are not known
    with pytest.raises(ValueError, match="shortlist"):
        screen.with_margin(1.0, shortlist=71)
    with pytest.raises(ValueError, match="margin"):
        screen.with_margin(np.nan)
    with pytest.raises(ValueError, match="offset"):
        screen.with_margin(1.0, np.zeros(3))
    with pytest.raises(ValueError, match="m out of range"):
        screen.nearest(p.X, 71, 71)
    p.slack = p.slack[1:]
    with pytest.raises(ValueError, match="slack"):
        p.screen()


@pytest.mark.parametrize(("n", "K"), [(0, 1), (0, 5), (1, 1), (1000, 3), (5000, 700)])
def test_group_by_label(rng, n, K):
    labels = rng.integers(0, K, n)
    expected = np.argsort(labels, kind="stable").tolist(), np.searchsorted(np.sort(labels), np.arange(K + 1)).tolist()
    for dtype in (np.int32, np.int64, np.uint8, ">i4"):
        order, starts = kernels.group_by_label((labels % 256 if dtype == np.uint8 else labels).astype(dtype), K)
        if dtype != np.uint8 or K <= 256:
            assert (order.tolist(), starts.tolist()) == expected


@pytest.mark.parametrize("labels", [[0, 5, 1], [-1, 0], [3], [2**40], [-(2**31)]])
def test_group_by_label_refuses_labels_that_are_none(labels):
    with pytest.raises(ValueError, match=r"Label -?\d+ at position \d is not between 0 and 2"):
        kernels.group_by_label(np.array(labels), 3)
