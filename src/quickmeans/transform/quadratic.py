r"""The objective as a function of one factor alone.

With the other factors fixed it is :math:`\|N^{1/2} U\|^2 - 2 \langle M, S\rangle + \langle S, P S G\rangle`. Products
with a factor go by its non-zeros while they are few.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels

Matrix = NDArray[np.float64]

_FEW = 0.15  # share of non-zeros up to which they are handled one by one; above, dense products are faster


class Factor:
    """A matrix that multiplies dense ones, by its non-zeros if they are few."""

    def __init__(self, values: Matrix, entries: kernels.Entries | None = None) -> None:
        self.values, self.entries = values, entries

    @classmethod
    def of(cls, values: Matrix) -> "Factor":
        most = int(_FEW * values.size)
        entries = kernels.Entries(values, most)
        return cls(values, entries if len(entries) <= most else None)

    def norm(self) -> float:
        return float(np.sqrt(np.square(self.values).sum())) if self.entries is None else self.entries.norm()

    def scaled(self, c: float) -> "Factor":
        return Factor(c * self.values, self.entries and self.entries.scaled(c))

    def times(self, X: Matrix) -> Matrix:
        """S X."""
        return self._product(X, transposed=False)

    def adjoint_times(self, X: Matrix) -> Matrix:
        """S' X."""
        return self._product(X, transposed=True)

    def _product(self, X: Matrix, transposed: bool) -> Matrix:
        if self.entries is None:
            return (self.values.T if transposed else self.values) @ X
        return self.entries.times(X, transposed=transposed)


class Quadratic:
    """The function of the factor right of L, with its P = L' N L, G and M = L' H.

    No P stands for N, where L is the identity, and no G for the identity. The second derivative along entry (i, j) is
    rows_i columns_j.
    """

    def __init__(self, L: Sequence[Factor], P: Matrix | None, n: Matrix, G: Matrix | None, H: Matrix) -> None:
        self.L, self.P, self.n, self.G, self.H = L, P, n, G, H
        self.M = self._left_adjoint(H)
        self.rows = away_from_zero(n if P is None else np.diag(P))
        self.columns = away_from_zero(np.ones(H.shape[1]) if G is None else np.diag(G))

    def gradient(self, S: Factor) -> Matrix:
        """P S G - M, with sparse products only."""
        if self.G is None:
            return (self.n[:, None] * S.values if self.P is None else S.adjoint_times(self.P).T) - self.M
        V = S.times(self.G)
        for factor in reversed(self.L):
            V = factor.times(V)
        return self._left_adjoint(self.n[:, None] * V - self.H)

    def _left_adjoint(self, Y: Matrix) -> Matrix:
        """L' Y."""
        for factor in self.L:
            Y = factor.adjoint_times(Y)
        return Y

    def bound(self) -> float:
        """A number that no second derivative exceeds, in any direction: that of the norms |P| |G|, by sums of rows."""
        P = self.n.max() if self.P is None else np.abs(self.P).sum(axis=1).max()
        G = 1.0 if self.G is None else np.abs(self.G).sum(axis=1).max()
        return float(P * G)

    def refine(self, S: Factor, n_steps: int) -> tuple[float, float]:
        """Some conjugate gradients on the support of S, in place; <M, S> and <S, P S G> afterwards."""
        if S.entries is None:
            return self._refine_dense(S.values, n_steps)
        result = S.entries.refine(self.P, self.n, self.G, self.M, self.rows, self.columns, n_steps)
        S.entries.put(S.values)
        return result

    def _refine_dense(self, S: Matrix, n_steps: int) -> tuple[float, float]:
        inverse = (S != 0) / np.multiply.outer(self.rows, self.columns)  # 0 outside the support
        residual = self.M - self._apply(S)
        direction = inverse * residual
        size = _inner(residual, direction)
        for _ in range(n_steps):
            image = self._apply(direction)
            bend = _inner(direction, image)
            if size <= 0 or bend <= 0:
                break
            S += size / bend * direction
            image *= size / bend
            residual -= image
            scaled = inverse * residual
            size, before = _inner(residual, scaled), size
            direction *= size / before
            direction += scaled
        inner = _inner(self.M, S)
        return inner, inner - _inner(residual, S)

    def _apply(self, S: Matrix) -> Matrix:
        """P S G."""
        left = self.n[:, None] * S if self.P is None else self.P @ S
        return left if self.G is None else left @ self.G


def _inner(A: Matrix, B: Matrix) -> float:
    return float(np.einsum("ij,ij->", A, B))


def away_from_zero(values: Matrix) -> Matrix:
    """Values that are not negative, with a little instead of nothing, and ones if all are nothing."""
    return np.asarray(np.maximum(values, 1e-12 * values.max() or 1.0), np.float64)
