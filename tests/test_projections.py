import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quickmeans.testing import check_projection
from quickmeans.transform.projections import (
    AtMostPerRowAndColumn,
    Constant,
    FixedSupport,
    NonNegative,
    TopInAll,
    TopPerColumn,
    TopPerRow,
    TopPerRowAndColumn,
    UnitNorm,
    largest,
)

M = np.array([[3.0, -4.0, 1.0], [2.0, 2.0, -2.0]])


def test_hand_worked():
    np.testing.assert_array_equal(TopPerRow(1).project(M), [[0, -4, 0], [2, 0, 0]])
    np.testing.assert_array_equal(TopPerColumn(1).project(M), [[3, -4, 0], [0, 0, -2]])
    np.testing.assert_array_equal(TopInAll(3).project(M), [[3, -4, 0], [2, 0, 0]])
    np.testing.assert_array_equal(TopPerRowAndColumn(1).project(M), [[3, -4, 0], [2, 0, -2]])
    np.testing.assert_array_equal(AtMostPerRowAndColumn(1).project(M), [[0, -4, 0], [2, 0, 0]])
    np.testing.assert_array_equal(NonNegative(TopPerRow(1)).project(M), [[3, 0, 0], [2, 0, 0]])
    np.testing.assert_allclose(UnitNorm(TopInAll(2)).project(M), [[0.6, -0.8, 0], [0, 0, 0]])
    np.testing.assert_array_equal(FixedSupport(M > 1).project(M), [[3, 0, 0], [2, 2, 0]])
    np.testing.assert_array_equal(Constant(np.ones((2, 3))).project(M), np.ones((2, 3)))


def test_scaled_union_on_a_rectangle(rng):
    wide = TopPerRowAndColumn(2, scaled=True).project(rng.standard_normal((5, 50)))
    assert (np.count_nonzero(wide, axis=1) >= 20).all()
    assert (np.count_nonzero(wide, axis=0) >= 2).all()


@pytest.mark.parametrize(
    "projection",
    [
        TopPerRow(2),
        TopPerColumn(2),
        TopInAll(4),
        NonNegative(),
        NonNegative(TopInAll(2)),
        UnitNorm(TopInAll(3)),
        UnitNorm(TopPerRow(1)),
        FixedSupport(M > 0),
    ],
)
def test_nothing_in_the_set_is_nearer(projection, rng):
    assert projection.name
    for _ in range(5):
        check_projection(projection, rng.standard_normal((2, 3)))


def test_union_is_feasible_and_stays(rng):
    for shape in ((6, 6), (4, 9), (9, 4)):
        check_projection(TopPerRowAndColumn(2), rng.standard_normal(shape), exact=False)
        kept = TopPerRowAndColumn(2).project(rng.standard_normal(shape)) != 0
        assert kept.sum(axis=0).min() >= 2
        assert kept.sum(axis=1).min() >= 2


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12), st.integers(1, 6))
def test_greedy_matching(seed, n, m, k):
    """Neither rows nor columns have more than k, and an entry that is left out met a full one of larger entries."""
    A = np.random.default_rng(seed).integers(-3, 4, (n, m)).astype(float)
    check_projection(AtMostPerRowAndColumn(k), A, exact=False)
    kept, size = AtMostPerRowAndColumn(k).project(A) != 0, np.abs(A)
    assert kept.sum(axis=0).max() <= k
    assert kept.sum(axis=1).max() <= k
    for i, j in np.argwhere((A != 0) & ~kept):
        assert (kept[i] & (size[i] >= size[i, j])).sum() == k or (kept[:, j] & (size[:, j] >= size[i, j])).sum() == k


def test_greedy_matching_of_equals_fills_blocks():
    """Rounding does not decide between equal entries: the upper rows take the left columns, then comes the rest."""
    noise = 1 + 1e-13 * np.random.default_rng(0).standard_normal((8, 8))
    np.testing.assert_array_equal(AtMostPerRowAndColumn(4).project(noise) != 0, np.kron(np.eye(2), np.ones((4, 4))))
    scaled = AtMostPerRowAndColumn(2, scaled=True).project(np.ones((4, 8))) != 0
    assert (scaled.sum(axis=0) == 2).all()
    assert (scaled.sum(axis=1) == 4).all()


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 30), st.one_of(st.integers(0, 10), st.integers(15, 40)))
def test_largest_counts_and_ties(seed, n, m, k):
    """Few distinct values, so that ties abound: exactly k stay, none larger goes, and of equals the first stays."""
    A = np.random.default_rng(seed).integers(-2, 3, (n, m)).astype(float)
    kept = largest(A, k, 0)
    for row, mask in zip(np.abs(A), kept, strict=True):
        order = sorted(range(m), key=lambda j: (-row[j], j))
        assert set(np.flatnonzero(mask)) == set(order[:k])
    np.testing.assert_array_equal(largest(A.T, 0, k), kept.T)
    np.testing.assert_array_equal(largest(A, k, 2), kept | largest(A, 0, 2))


def test_largest_survives_what_is_no_number():
    A = np.full((3, 40), np.nan)
    A[:, 7] = [-np.inf, 2, 0]
    for k in (1, 20):
        kept = largest(A, k, k)
        assert kept[:2, 7].all()
        assert (kept.sum(axis=1) >= 1).all()
    assert np.count_nonzero(np.isfinite(AtMostPerRowAndColumn(2).project(A))) == A.size - 1


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_counts(k):
    for kind in (TopPerRow, TopPerColumn, TopInAll, TopPerRowAndColumn, AtMostPerRowAndColumn):
        with pytest.raises(ValueError, match=f"k must be a whole number not below 1, got {k!r}"):
            kind(k)


def test_zero_matrix_has_no_norm_to_divide_by():
    np.testing.assert_array_equal(UnitNorm(TopInAll(1)).project(np.zeros((2, 2))), np.zeros((2, 2)))


def test_a_wrong_projection_is_found(rng):
    class Upwards:
        def project(self, A):
            return np.ceil(A)

    class Half:
        def project(self, A):
            return A / 2

    with pytest.raises(AssertionError, match="A point of the set is at"):
        check_projection(Upwards(), rng.standard_normal((1, 2)))
    with pytest.raises(AssertionError, match="second time"):
        check_projection(Half(), rng.standard_normal((3, 3)))
