import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quickmeans.testing import check_projection
from quickmeans.transform.projections import (
    Constant,
    FixedSupport,
    NonNegative,
    TopInAll,
    TopPerColumn,
    TopPerRow,
    TopPerRowAndColumn,
    UnitNorm,
    largest_per_row,
)

M = np.array([[3.0, -4.0, 1.0], [2.0, 2.0, -2.0]])


def test_hand_worked():
    np.testing.assert_array_equal(TopPerRow(1).project(M), [[0, -4, 0], [2, 0, 0]])
    np.testing.assert_array_equal(TopPerColumn(1).project(M), [[3, -4, 0], [0, 0, -2]])
    np.testing.assert_array_equal(TopInAll(3).project(M), [[3, -4, 0], [2, 0, 0]])
    np.testing.assert_array_equal(TopPerRowAndColumn(1).project(M), [[3, -4, 0], [2, 0, -2]])
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


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 8), st.integers(1, 10))
def test_largest_per_row_counts_and_ties(seed, n, m, k):
    """Few distinct values, so that ties abound: exactly k stay, none larger goes, and of equals the first stays."""
    A = np.random.default_rng(seed).integers(-2, 3, (n, m)).astype(float)
    kept = largest_per_row(A, k)
    assert (kept.sum(axis=1) == min(k, m)).all()
    for row, mask in zip(np.abs(A), kept, strict=True):
        order = sorted(range(m), key=lambda j: (-row[j], j))
        assert set(np.flatnonzero(mask)) == set(order[:k])


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_counts(k):
    for kind in (TopPerRow, TopPerColumn, TopInAll, TopPerRowAndColumn):
        with pytest.raises(ValueError, match="positive whole number"):
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
