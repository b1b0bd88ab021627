"""How Algorithm 1 learns its factors: by a solver, from the last product on."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.algorithm1 import Learn
from quickmeans.kmeans.assignment import Assigner
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.rows import Points
from quickmeans.kmeans.settings import Settings
from quickmeans.transform import SparseProduct
from quickmeans.transform.solvers import SOLVERS


def learner(settings: Settings, dtype: np.dtype[Any]) -> Learn:
    """The solver of the settings, as Algorithm 1 calls it.

    A product that is farther from U than the last one is dropped, but for the paper's hierarchical variant, which
    factors U anew in every iteration. Sparse ALS does so too after 3, 6, 12, ... iterations, and the best product is
    kept: supports were chosen for the means of the first iterations, which are still far from the last ones. With less
    than one number per centroid left, the product is dense.
    """
    solve, options = settings.solver, settings.solver_settings
    anew = solve is SOLVERS["hierarchical"]

    def learn(U: NDArray[np.float64], n: NDArray[np.float64], init: SparseProduct | None, n_iter: int) -> SparseProduct:
        U = U.astype(dtype)
        feasible = U.size / options.compression >= len(U) + 1
        allowed = options if feasible else replace(options, compression=1.0)
        product = solve(U, n, init, allowed).product
        if init is None or anew:
            return product
        candidates = [init, product]
        if solve is SOLVERS["als"] and _is_turn(n_iter):
            candidates.append(solve(U, n, None, allowed).product)
        return min(candidates, key=lambda V: _error(U, n, V))

    return learn


def _is_turn(n_iter: int) -> bool:
    """Whether n_iter is 3, 6, 12, 24, ...: rarer and rarer, as means move less and less."""
    third, rest = divmod(n_iter, 3)
    return rest == 0 and third > 0 and third & (third - 1) == 0


def _error(U: NDArray[Any], n: NDArray[np.float64], product: SparseProduct) -> float:
    difference = U.astype(np.float64) - product.toarray()
    return float(np.einsum("kd,kd,k->", difference, difference, n))


class ProductLearner:
    """Makes the assigners of mini-batches whose centroids are the rows of a product."""

    rows_between = 64.0  # rows per centroid between two products: learning one costs about as much as assigning these

    def __init__(self, learn: Learn, geometry: Geometry, last: Assigner | None) -> None:
        self.learn, self.geometry, self.last = learn, geometry, last

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64]) -> ProductRows:
        """A product near these means, each of which has so much weight."""
        init = None if self.last is None else self.last.product
        rows = self.last = ProductRows(self.learn(centers, np.maximum(counts, 1.0), init, 0), self.geometry)
        return rows

    def for_rows(self, points: Points) -> "ProductLearner":
        """A copy; the rows do not matter."""
        return copy(self)

    def is_outdated(self, listed: float, listed_at_first: float) -> bool:
        """Never: a product is learned anew after `rows_between` rows, and not before."""
        return False
