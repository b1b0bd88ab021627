r"""The objective as a function of one factor alone.

With the other factors fixed it is :math:`\|N^{1/2} U\|^2 - 2 \langle M, S\rangle + \langle S, P S G\rangle`. Products
with a factor go by its non-zeros while they are few.
"""

import os

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native

Matrix = NDArray[np.float64]

_FEW = 0.15  # share of non-zeros up to which they are handled one by one; above, dense products are faster


class Factor:
    """A matrix that multiplies dense ones, by its non-zeros if they are few."""

    def __init__(self, values: Matrix, entries: _native.Entries | None = None) -> None:
        self.values, self.entries = values, entries

    @classmethod
    def of(cls, values: Matrix) -> "Factor":
        most = int(_FEW * values.size)
        entries = _native.Entries(values, most)
        return cls(values, entries if len(entries) <= most else None)

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
        out = np.empty((self.values.shape[1 if transposed else 0], X.shape[1]))
        self.entries.times(np.ascontiguousarray(X), out, transposed, _isa())
        return out


class Quadratic:
    """The function of one factor, with its P, G and M; without P the diagonal N stands for it, without G the identity.

    The second derivative along entry (i, j) is rows_i columns_j.
    """

    def __init__(self, P: Matrix | None, n: Matrix, G: Matrix | None, M: Matrix) -> None:
        self.P, self.n, self.G, self.M = P, n, G, M
        self.rows = away_from_zero(n if P is None else np.diag(P))
        self.columns = away_from_zero(np.ones(M.shape[1]) if G is None else np.diag(G))

    def gradient(self, S: Factor) -> Matrix:
        """P S G - M."""
        if self.P is not None and self.G is None:
            return S.adjoint_times(self.P).T - self.M
        return self._left(S.values if self.G is None else S.times(self.G)) - self.M

    def bound(self) -> float:
        """A number that no second derivative exceeds, in any direction: that of the norms |P| |G|, by sums of rows."""
        P = self.n.max() if self.P is None else np.abs(self.P).sum(axis=1).max()
        G = 1.0 if self.G is None else np.abs(self.G).sum(axis=1).max()
        return float(P * G)

    def refine(self, S: Factor, n_steps: int) -> tuple[float, float]:
        """Some conjugate gradients on the support of S, in place; <M, S> and <S, P S G> afterwards."""
        if S.entries is None:
            return self._refine_dense(S.values, n_steps)
        result = S.entries.refine(self.P, self.n, self.G, self.M, self.rows, self.columns, n_steps, _isa())
        S.entries.put(S.values)
        return result

    def _refine_dense(self, S: Matrix, n_steps: int) -> tuple[float, float]:
        curvature, support = np.multiply.outer(self.rows, self.columns), S != 0
        residual = np.where(support, self.M - self._apply(S), 0)
        direction = residual / curvature
        size = float((residual * direction).sum())
        for _ in range(n_steps):
            image = np.where(support, self._apply(direction), 0)
            bend = float((direction * image).sum())
            if size <= 0 or bend <= 0:
                break
            S += size / bend * direction
            residual -= size / bend * image
            scaled = residual / curvature
            size, before = float((residual * scaled).sum()), size
            direction = scaled + size / before * direction
        inner = float((self.M * S).sum())
        return inner, inner - float((residual * S).sum())

    def _left(self, Y: Matrix) -> Matrix:
        return self.n[:, None] * Y if self.P is None else self.P @ Y

    def _apply(self, S: Matrix) -> Matrix:
        return self._left(S if self.G is None else S @ self.G)


def _isa() -> str:
    return os.environ.get("QUICKMEANS_ISA", "")


def away_from_zero(values: Matrix) -> Matrix:
    """Values that are not negative, with a little instead of nothing."""
    return np.asarray(np.maximum(values, 1e-12 * values.max() + np.finfo(float).tiny), np.float64)
