import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from quickmeans.testing import check_adjoint, check_descent


def test_a_matrix_passes(rng):
    check_adjoint(aslinearoperator(rng.standard_normal((5, 7))))


def test_a_wrong_adjoint_is_found(rng):
    U = rng.standard_normal((5, 7))
    wrong = LinearOperator((5, 7), matvec=U.dot, rmatvec=lambda y: 1.001 * (U.T @ y), dtype=np.float64)
    with pytest.raises(AssertionError, match="is not the adjoint"):
        check_adjoint(wrong)
    check_adjoint(wrong, rtol=0.01)


def test_nan_is_not_an_adjoint():
    with pytest.raises(AssertionError, match="is not the adjoint"):
        check_adjoint(aslinearoperator(np.full((2, 2), np.nan)))


def test_descent():
    check_descent([3, 2, 2, 0])
    for bad in ([1, 2], [1, np.nan], [1, -1]):
        with pytest.raises(AssertionError, match="objective"):
            check_descent(bad)
