r"""The objective as a function of one factor alone.

With the other factors fixed it is :math:`\|N^{1/2} U\|^2 - 2 \langle M, S\rangle + \langle S, P S G\rangle`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels

Matrix = NDArray[np.float64]

# Share of non-zeros up to which they are listed. Products by non-zeros take 0.3 to 0.7 of the time of dense products at
# this share, and the same time at 0.3 to 0.4 (benchmarks/solver_constants.py).
_SPARSE_SHARE = 0.15


class WorkingFactor:
    """A factor while it is being learned: its dense values, and a list of its non-zeros while they are few.

    Products with a factor use its non-zeros if they are listed.
    """

    def __init__(self, values: Matrix, entries: kernels.Entries | None = None) -> None:
        self.values, self.entries = values, entries

    @classmethod
    def of(cls, values: Matrix) -> "WorkingFactor":
        """Make it from a matrix, which is changed in place later."""
        values = np.ascontiguousarray(values, np.float64)
        most = int(_SPARSE_SHARE * values.size)
        entries = kernels.Entries(values, most)
        return cls(values, entries if len(entries) <= most else None)

    def norm(self) -> float:
        return float(np.sqrt(np.square(self.values).sum())) if self.entries is None else self.entries.norm()

    def scaled(self, c: float) -> "WorkingFactor":
        return WorkingFactor(c * self.values, self.entries and self.entries.scaled(c))

    def times(self, X: Matrix) -> Matrix:
        """Return S X."""
        return self._product(X, transposed=False)

    def adjoint_times(self, X: Matrix) -> Matrix:
        """Return S' X."""
        return self._product(X, transposed=True)

    def _product(self, X: Matrix, transposed: bool) -> Matrix:
        if self.entries is None:
            return (self.values.T if transposed else self.values) @ X
        return self.entries.times(X, transposed=transposed)


class Quadratic:
    """The objective as a function of the factor S right of L, with P = L' N L, G and M = L' H.

    P is None if L is the identity; then P S is N S. G is None if it is the identity. The second derivative along entry
    (i, j) of S is ``row_curvature[i] * column_curvature[j]``.
    """

    def __init__(self, L: Sequence[WorkingFactor], P: Matrix | None, n: Matrix, G: Matrix | None, H: Matrix) -> None:
        self.L, self.P, self.n, self.G, self.H = L, P, n, G, H
        self.M = self._left_adjoint(H)
        self.row_curvature = away_from_zero(n if P is None else np.diag(P))
        self.column_curvature = away_from_zero(np.ones(H.shape[1]) if G is None else np.diag(G))

    def gradient(self, S: WorkingFactor) -> Matrix:
        """Return P S G - M, computed with products by factors only."""
        if self.G is None:
            return (self.n[:, None] * S.values if self.P is None else S.adjoint_times(self.P).T) - self.M
        V = S.times(self.G)
        for factor in reversed(self.L):
            V = factor.times(V)
        return self._left_adjoint(self.n[:, None] * V - self.H)

    def _left_adjoint(self, Y: Matrix) -> Matrix:
        """Return L' Y."""
        for factor in self.L:
            Y = factor.adjoint_times(Y)
        return Y

    def bound(self) -> float:
        """Return a bound of the second derivative in every direction: |P| |G| in the norm of largest row sums."""
        P = self.n.max() if self.P is None else np.abs(self.P).sum(axis=1).max()
        G = 1.0 if self.G is None else np.abs(self.G).sum(axis=1).max()
        return float(P * G)

    def refine(self, S: WorkingFactor, n_steps: int) -> tuple[float, float]:
        """Take steps of conjugate gradients on the support of S, in place; return <M, S> and <S, P S G> afterwards."""
        if S.entries is None:
            return self._refine_dense(S.values, n_steps)
        result = S.entries.refine(self.P, self.n, self.G, self.M, self.row_curvature, self.column_curvature, n_steps)
        S.entries.put(S.values)
        return result

    def _refine_dense(self, S: Matrix, n_steps: int) -> tuple[float, float]:
        """Conjugate gradients, preconditioned by the diagonal; the preconditioner is zero outside the support."""
        inverse = (S != 0) / np.multiply.outer(self.row_curvature, self.column_curvature)
        residual = self.M - self._apply(S)
        direction = inverse * residual
        slope = _inner(residual, direction)
        for _ in range(n_steps):
            image = self._apply(direction)
            curvature = _inner(direction, image)
            if slope <= 0 or curvature <= 0:
                break
            step = slope / curvature
            S += step * direction
            image *= step
            residual -= image
            scaled = inverse * residual
            slope, last_slope = _inner(residual, scaled), slope
            direction *= slope / last_slope
            direction += scaled
        inner = _inner(self.M, S)
        return inner, inner - _inner(residual, S)

    def _apply(self, S: Matrix) -> Matrix:
        """Return P S G."""
        left = self.n[:, None] * S if self.P is None else self.P @ S
        return left if self.G is None else left @ self.G


def _inner(A: Matrix, B: Matrix) -> float:
    return float(np.einsum("ij,ij->", A, B))


def away_from_zero(values: Matrix) -> Matrix:
    """Return non-negative values raised to at least 1e-12 of the largest, or ones if all of them are zero.

    The floor keeps divisions by curvatures finite. Entries with a curvature that small hardly change the objective.
    """
    return np.asarray(np.maximum(values, 1e-12 * values.max() or 1.0), np.float64)
