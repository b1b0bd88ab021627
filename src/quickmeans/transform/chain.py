r"""Three or more sparse factors of a matrix, :math:`U \approx S_1 \cdots S_Q`: least squares on supports.

For factor q, with :math:`L = S_1 \cdots S_{q-1}` and :math:`R = S_{q+1} \cdots S_Q`, the objective is

.. math:: \langle S, P S G\rangle - 2 \langle S, M\rangle + \|N^{1/2} U\|^2, \qquad
          P = L' N L, \quad G = R R', \quad M = L' N U R'.

For the first factor it is a sum over rows and for the last over columns, each solved exactly. The other factors are
solved for by conjugate gradients on their supports. No step raises the objective. The gain of adding an entry is about
:math:`g_{ij}^2 / (P_{ii} G_{jj})`, with g the gradient; the price of removing one is about
:math:`s_{ij}^2 P_{ii} G_{jj}`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from quickmeans.transform.factorization import Array, Factors
from quickmeans.transform.pair import cost, fit_rows, protect_one_of_every_row, smallest

_STEPS = 10  # of conjugate gradients for a middle factor in one sweep (see benchmarks/solver_constants.py)
_TINY = float(np.finfo(float).tiny)


class Chain:
    """The factors and their supports."""

    def __init__(self, U: Array, n: Array, budget: int) -> None:
        self.U, self.n, self.budget = U, n, budget
        self.total = float(n @ np.einsum("kd,kd->k", U, U))

    def start(self, factors: Factors) -> None:
        """Start from these factors, on their supports."""
        self.S = [np.ascontiguousarray(S) for S in factors]
        self.supports = [(S != 0).astype(np.uint8) for S in self.S]

    def factors(self) -> Factors:
        """Return the present factors."""
        return self.S

    def fit(self) -> float:
        """Solve for every factor, from the first to the last, and return the objective."""
        last = len(self.S) - 1
        for q, (L, R) in enumerate(self._sides()):
            if q == 0:
                self.S[q], _ = fit_rows(R @ R.T, self.U @ R.T, self.n, self.supports[q], prices=False)
            elif q < last:
                M, apply, curvature = self._terms(q, L, R)
                self.S[q] = _conjugate_gradients(self.S[q], M, apply, curvature, self.supports[q])
            else:
                weighted = self.n[:, None] * L
                targets = self.U.T @ weighted
                support = np.ascontiguousarray(self.supports[q].T)
                solved, _ = fit_rows(weighted.T @ L, targets, np.ones(len(targets)), support, prices=False)
                self.S[q] = np.ascontiguousarray(solved.T)
        self.objective = max(self.total - float(np.vdot(solved, targets)), 0.0)
        return self.objective

    def meet_budget(self, keep: float) -> None:
        """Prune the factors if they exceed the budget."""
        if self.macs > self.budget:
            self.prune(keep)

    def prune(self, keep: float) -> float:
        """Remove the entries of lowest price, a share at a time, until the budget is met; return the objective."""
        while (surplus := self.macs - self.budget) > 0:
            prices = [
                np.where(support > 0, S**2 * self._terms(q, L, R)[2], np.inf)
                for q, ((L, R), S, support) in enumerate(zip(self._sides(), self.S, self.supports, strict=True))
            ]
            protect_one_of_every_row(prices[0])
            most = max(1, int((1 - keep) * sum(map(np.count_nonzero, self.supports))))
            limit = smallest(min(surplus, most), *prices)
            for S, support, price in zip(self.S, self.supports, prices, strict=True):
                support[price <= limit] = 0
                S[price <= limit] = 0
            self.fit()
        return self.fit()

    def grow(self, count: int) -> None:
        """Add the `count` entries of largest gain to the supports, and solve on them."""
        gains = []
        for q, ((L, R), S, support) in enumerate(zip(self._sides(), self.S, self.supports, strict=True)):
            M, apply, curvature = self._terms(q, L, R)
            useful = (support == 0) & (curvature > 1e-12 * curvature.max())
            gains.append(np.divide((M - apply(S)) ** 2, curvature, out=np.zeros(S.shape), where=useful))
        limit = -smallest(min(max(count, 1), sum(gain.size for gain in gains)), *(-gain for gain in gains))
        for support, gain in zip(self.supports, gains, strict=True):
            support[gain >= max(limit, _TINY)] = 1
        self.fit()

    @property
    def macs(self) -> int:
        """The multiply-adds of all factors."""
        return sum(map(cost, self.supports))

    def state(self) -> dict[str, Any]:
        """Return a copy of the factors and supports for :meth:`restore`."""
        return {name: [np.copy(part) for part in getattr(self, name)] for name in ("S", "supports")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        vars(self).update(state)

    def _sides(self) -> Any:
        """Yield L and R of every factor in turn; L is computed from the factors as they are at that moment."""
        right: list[Any] = [None]
        for S in self.S[:0:-1]:
            right.insert(0, S if right[0] is None else S @ right[0])
        L: Any = None
        for q, R in enumerate(right):
            yield L, R
            L = self.S[q] if L is None else L @ self.S[q]

    def _terms(self, q: int, L: Any, R: Any) -> tuple[Array, Callable[[Array], Array], Array]:
        """Return M, the map S -> P S G, and the diagonal of that map."""
        n, right = self.n[:, None], self.U if R is None else self.U @ R.T
        if q == 0:
            G = R @ R.T
            return n * right, lambda S: n * (S @ G), np.multiply.outer(self.n, np.diag(G))
        P = (n * L).T @ L
        if R is None:
            return (n * L).T @ right, lambda S: P @ S, np.multiply.outer(np.diag(P), np.ones(self.U.shape[1]))
        G = R @ R.T
        return (n * L).T @ right, lambda S: P @ S @ G, np.multiply.outer(np.diag(P), np.diag(G))


def _conjugate_gradients(S: Array, M: Array, apply: Callable[[Array], Array], curvature: Array, support: Any) -> Array:
    """Minimise <S, A S> - 2 <S, M> over the entries of the support; the diagonal of A is the preconditioner."""
    on = (support > 0) & (curvature > 1e-12 * curvature.max())
    inverse = np.divide(1.0, curvature, out=np.zeros(S.shape), where=on)
    residual = np.where(on, M - apply(S), 0)
    direction = inverse * residual
    slope = first = float(np.vdot(residual, direction))
    for _ in range(_STEPS):
        image = np.where(on, apply(direction), 0)
        bend = float(np.vdot(direction, image))
        if slope <= 1e-20 * first or bend <= _TINY:
            break
        S = S + slope / bend * direction
        residual = residual - slope / bend * image
        last, slope = slope, float(np.vdot(residual, inverse * residual))
        direction = inverse * residual + slope / last * direction
    return S
