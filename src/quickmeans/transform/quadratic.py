r"""The objective as a function of one factor alone.

With the other factors fixed it is :math:`\|N^{1/2} U\|^2 - 2 \langle M, S\rangle + \langle S, P S G\rangle`. Products
with a factor go by its non-zeros while they are few.
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native

Matrix = NDArray[np.float64]

_FEW = 0.15  # share of non-zeros up to which they are handled one by one; above, dense products are faster


def _are_few(S: Matrix) -> bool:
    return bool(np.count_nonzero(S) <= _FEW * S.size)


def _isa() -> str:
    return os.environ.get("QUICKMEANS_ISA", "")


class Factor:
    """A matrix that multiplies dense ones, by its non-zeros if they are few."""

    def __init__(self, values: Matrix) -> None:
        self.values = values
        self.entries = _native.Entries(values) if _are_few(values) else None

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


@dataclass(frozen=True)
class Quadratic:
    """P, G and M of a factor; without P the diagonal N stands for it, without G the identity."""

    P: Matrix | None
    n: Matrix
    G: Matrix | None
    M: Matrix

    def gradient(self, S: Factor) -> Matrix:
        """P S G - M."""
        if self.P is not None and self.G is None:
            return np.ascontiguousarray(S.adjoint_times(self.P).T) - self.M
        return self._left(S.values if self.G is None else S.times(self.G)) - self.M

    def curvature(self) -> tuple[Matrix, Matrix]:
        """The second derivative along entry (i, j) is P_ii G_jj: the two diagonals, away from zero."""
        rows = self.n if self.P is None else np.diag(self.P)
        columns = np.ones(self.M.shape[1]) if self.G is None else np.diag(self.G)
        return away_from_zero(rows), away_from_zero(columns)

    def bound(self) -> tuple[Matrix, Matrix]:
        """Two numbers, the same for all rows and for all columns, whose product no second derivative exceeds."""
        rows = self.n if self.P is None else np.abs(self.P).sum(axis=1)
        columns = np.ones(self.M.shape[1]) if self.G is None else np.abs(self.G).sum(axis=1)
        return away_from_zero(np.full_like(rows, rows.max())), away_from_zero(np.full_like(columns, columns.max()))

    def refine(self, S: Matrix, n_steps: int) -> tuple[float, float]:
        """Some conjugate gradients on the support of S, in place; <M, S> and <S, P S G> afterwards."""
        rows, columns = self.curvature()
        if _are_few(S):
            return _native.refine(self.P, self.n, self.G, self.M, rows, columns, S, n_steps, _isa())
        curvature, support = np.multiply.outer(rows, columns), S != 0
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


def away_from_zero(values: Matrix) -> Matrix:
    """Values that are not negative, with a little instead of nothing."""
    return np.asarray(np.maximum(values, 1e-12 * values.max() + np.finfo(float).tiny), np.float64)
