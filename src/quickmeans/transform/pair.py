r"""Two sparse factors of a matrix, :math:`U \approx C W`: least squares on supports, and the choice of supports.

On fixed supports every row of C and every column of W is a small least-squares problem,

.. math:: c_k = \arg\min \|u_k - c W\|^2, \qquad w_j = \arg\min \|N^{1/2} (u_j - C w)\|^2,

with the Gram matrices :math:`W W'` and :math:`C' N C`. Solving them in turn never raises the objective
:math:`\sum_k n_k \|u_k - c_k W\|^2`. Removing an entry of C raises it by its *price* :math:`n_k c_i^2 / B_{ii}`, with B
the inverse of the Gram matrix on its support (the optimal brain surgeon). Adding one lowers it by a *gain* of about
:math:`g_i^2 / G_{ii}`, with g the gradient. Both hold for W too, in the same unit, so that the entries of C and W are
ranked together.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.threads import resolve_threads
from quickmeans.transform.factorization import Array, Factors
from quickmeans.transform.factors import DENSE_SHARE

Support = NDArray[np.uint8]

_WHOLE = 0.5  # a factor whose size is at most this share of the budget is kept dense; see als.py for its origin
# Dense multiply-adds in the time of one of kernels.masked_product, at shares of non-zeros of about 0.3, where both ways
# take the same time (benchmarks/solver_constants.py).
_GATHER = 16

_TINY = float(np.finfo(float).tiny)


class Pair:
    """The factors C and W' with their supports and prices. W is transposed so that both have one problem per row."""

    def __init__(self, U: Array, n: Array, budget: int) -> None:
        self.U, self.n, self.budget = U, n, budget
        self.Ut = np.ascontiguousarray(U.T)
        self.total = float(n @ np.einsum("kd,kd->k", U, U))

    def start(self, factors: Factors) -> None:
        """Start from these factors, on their supports."""
        self.C, self.Wt = np.ascontiguousarray(factors[0]), np.ascontiguousarray(factors[1].T)
        self.support_C, self.support_W = ((factor != 0).astype(np.uint8) for factor in (self.C, self.Wt))

    def factors(self) -> Factors:
        """Return C and W without the atoms that have no entry in C or none in W."""
        live = self._live()
        return [self.C[:, live], self.Wt[:, live].T]

    def _live(self) -> NDArray[np.bool]:
        live: NDArray[np.bool] = self.support_C.any(axis=0) & self.support_W.any(axis=0)
        return live if live.any() else np.arange(len(live)) == 0

    # ---- least squares on the supports ----------------------------------------------------------------------------

    def fit(self, drop: tuple[Any, Any] = (None, None), *, prices: bool = False) -> float:
        """Solve for C, then for W, and return the objective.

        Before that, `drop` removes so many of the entries of lowest price from every row of C and of W'.
        """
        targets = _products(self.U, self.Wt, self.support_C)
        self.C, self.price_C = fit_rows(self.Wt.T @ self.Wt, targets, self.n, self.support_C, drop[0], prices)
        weighted = self.n[:, None] * self.C
        targets = _products(self.Ut, weighted, self.support_W)
        ones = np.ones(len(self.Wt))
        self.Wt, self.price_W = fit_rows(weighted.T @ self.C, targets, ones, self.support_W, drop[1], prices)
        self.objective = max(self.total - float(np.vdot(self.Wt, targets)), 0.0)
        return self.objective

    # ---- supports -------------------------------------------------------------------------------------------------

    def cut(self, price_C: Array, price_W: Array) -> None:
        """Remove the entries of lowest price until the budget is met.

        This is repeated because removing whole atoms makes the factors denser, and a dense factor costs more.
        """
        while True:
            self.price_C = np.where(self.support_C > 0, price_C, np.inf)
            self.price_W = np.where(self.support_W > 0, price_W, np.inf)
            limits = self._limits(0.0)
            if limits is None:
                return
            self.support_C[self.price_C <= limits[0]] = 0
            self.support_W[self.price_W <= limits[1]] = 0
            self._rescue()

    def meet_budget(self, keep: float) -> None:
        """Prune the factors if they exceed the budget."""
        if self.macs > self.budget:
            self.fit(prices=True)
            self.prune(keep)

    def prune(self, keep: float) -> float:
        """Remove the entries of lowest price, a share at a time, until the budget is met; return the objective."""
        while (limits := self._limits(keep)) is not None:
            drop_C, drop_W = (
                np.count_nonzero(p <= x, axis=1) for p, x in zip((self.price_C, self.price_W), limits, strict=True)
            )
            self.fit((drop_C, drop_W), prices=True)
            if self._rescue():
                self.fit(prices=True)
        return self.fit()

    def _rescue(self) -> bool:
        """Give rows of C that use removed atoms only an entry for the best remaining atom; return if there were any."""
        live = self._live()
        lost = self.support_C.any(axis=1) & ~self.support_C[:, live].any(axis=1)
        if lost.any():
            W = self.Wt * self.support_W
            worth = (self.U[lost] @ W) ** 2 / np.maximum(np.square(W).sum(axis=0), _TINY)
            self.support_C[lost] = 0
            self.support_C[np.flatnonzero(lost), np.where(live, worth, -1).argmax(axis=1)] = 1
        return bool(lost.any())

    def grow(self, count: int) -> None:
        """Add the `count` entries of largest gain to the supports, and solve on them."""
        gram, weighted = self.Wt.T @ self.Wt, self.n[:, None] * self.C
        gain_C = self.n[:, None] * _gain(self.U @ self.Wt - self.C @ gram, gram, self.support_C)
        gram = weighted.T @ self.C
        gain_W = _gain(self.Ut @ weighted - self.Wt @ gram, gram, self.support_W)
        limit = -smallest(min(max(count, 1), gain_C.size + gain_W.size), -gain_C, -gain_W)
        self.support_C |= (gain_C >= max(limit, _TINY)).astype(np.uint8)
        self.support_W |= (gain_W >= max(limit, _TINY)).astype(np.uint8)
        self.fit(prices=True)

    @property
    def macs(self) -> int:
        """The multiply-adds of both factors: non-zeros, or all entries of a factor that is stored dense."""
        live = self._live()
        return cost(self.support_C[:, live]) + cost(self.support_W[:, live])

    def _limits(self, keep: float) -> tuple[float, float] | None:
        """Return the prices up to which entries of C and of W are removed in one step; None if the budget is met.

        A factor more than half full is stored dense, and all its entries cost. So it is kept dense with all its entries
        if it is small beside the budget, and made at most half full otherwise.
        """
        if self.macs <= self.budget:
            return None
        supports, prices = (self.support_C, self.support_W), (self.price_C, self.price_W)
        counts = [int(np.count_nonzero(support)) for support in supports]
        protect_one_of_every_row(self.price_C)
        half = DENSE_SHARE * np.count_nonzero(self._live())
        caps = [max(int(half * len(self.C)), len(self.C)), int(half * len(self.Wt))]
        for q, (support, price) in enumerate(zip(supports, prices, strict=True)):
            if support.size <= _WHOLE * (self.budget - len(self.C)):
                support[:], price[:], counts[q], caps[q] = 1, np.inf, support.size, support.size
        most = max(1, int((1 - keep) * sum(counts)))
        surplus = sum(counts) - self.budget
        excess = [min(count - cap, most) for count, cap in zip(counts, caps, strict=True)]
        if max(surplus, *excess) <= 0:  # a single atom is stored dense even if some rows do not use it
            surplus = self.macs - self.budget
        limit = smallest(min(surplus, most), *prices) if surplus > 0 else -1.0
        limits = [max(limit, smallest(e, p)) if e > 0 else limit for e, p in zip(excess, prices, strict=True)]
        return limits[0], limits[1]

    def state(self) -> dict[str, Any]:
        """Return a copy of the factors and supports for :meth:`restore`."""
        return {name: np.copy(getattr(self, name)) for name in ("C", "Wt", "support_C", "support_W")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        vars(self).update(state)


def fit_rows(
    gram: Array,
    targets: Array,
    weights: Array,
    support: Support,
    drop: NDArray[np.int64] | None = None,
    prices: bool = True,
) -> tuple[Array, Array]:
    """Solve one least-squares problem per row on its support; return coefficients and, if wanted, their prices.

    Before that, `drop` entries of lowest price are removed from every row of the support, in place.
    """
    drop = np.zeros(len(targets), np.int64) if drop is None else drop
    values, priced = kernels.fit_supports(
        regular(gram), targets, weights, drop, support, resolve_threads(), prices=prices
    )
    return values, np.empty((0, 0)) if priced is None else priced


def regular(gram: Array) -> Array:
    """Return the Gram matrix with 1e-10 of its mean diagonal added, so that it is regular with zero or equal atoms."""
    ridge = 1e-10 * float(np.trace(gram)) / len(gram) + _TINY
    return gram + ridge * np.eye(len(gram))


def _products(rows: Array, atoms: Array, support: Support) -> Array:
    """Return rows @ atoms; entries outside the support may be zero instead."""
    gathered = np.count_nonzero(support) * np.count_nonzero(atoms) / atoms.shape[1]
    if _GATHER * gathered > support.size * rows.shape[1]:
        return rows @ atoms
    return kernels.masked_product(rows, atoms, support, resolve_threads())


def protect_one_of_every_row(prices: Array) -> None:
    """Set the highest price of every row to infinity, so that no row loses all its entries."""
    dearest = np.where(np.isfinite(prices), prices, -1).argmax(axis=1)
    prices[np.arange(len(prices)), dearest] = np.inf


def cost(support: Support) -> int:
    """Return the multiply-adds of a factor: its non-zeros, or all entries if it is stored dense."""
    count = int(np.count_nonzero(support))
    return count if count <= DENSE_SHARE * support.size else support.size


def _gain(gradient: Array, gram: Array, support: Support) -> Array:
    """Return by how much each entry outside the support would lower the objective if it alone were added."""
    diagonal = np.diag(gram)
    gain = np.divide(gradient**2, diagonal, out=np.zeros_like(gradient), where=diagonal > 1e-12 * diagonal.max())
    gain[support > 0] = 0
    return gain


def smallest(count: int, *arrays: Array) -> float:
    """Return the count-th smallest number of all arrays together."""
    together = np.concatenate([array.ravel() for array in arrays])
    return float(np.partition(together, count - 1)[count - 1])
