r"""How much larger the error of compressed landmarks is than that of the points that they replace.

Errors are measured on held-out rows: the landmarks are not refined on them. A matrix of few rows has a larger share of
its squares on the diagonal than one of many rows, and landmarks may be good on one part and bad on the other. So the
errors are those of the kernel matrix of the held-out rows, and of all rows as estimated from them; every number of rows
in between has an excess in between.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.rows import as_rows
from quickmeans.kmeans.rows import Rows
from quickmeans.nystroem.features import error_squares, features, root_inverse, scaled_up
from quickmeans.nystroem.kernels import Kernel
from quickmeans.nystroem.refinement import refined
from quickmeans.threads import with_one_blas_thread
from quickmeans.transform import SparseProduct

# The ratio of errors on so many rows differs by 0.003 from that on 4000 (MNIST and Fashion-MNIST;
# benchmarks/thresholds.py).
_HELD_OUT = 1000
_MOST = 8000  # rows that landmarks are refined on
_LEAST_PER_LANDMARK = 4  # with fewer rows the landmarks would fit these, and not others
_STEP, _STEP_PER_LANDMARK = 1000, 2  # rows of a step

Array = NDArray[Any]


class HeldOut:
    """Errors of landmarks on held-out rows, and landmarks refined on others.

    Parameters
    ----------
    rows : Rows
    points : SparseProduct
        The landmarks that others are compared with.
    kernel : callable
        The kernel with the rows of a product as landmarks.
    dtype : numpy.dtype
        Of the arithmetic.
    rng : numpy.random.RandomState
    n_threads : int
    """

    def __init__(
        self,
        rows: Rows,
        points: SparseProduct,
        kernel: Callable[[SparseProduct], Kernel],
        dtype: np.dtype[Any],
        rng: np.random.RandomState,
        n_threads: int,
    ) -> None:
        self.n_total, self.n_landmarks, self.kernel = rows.shape[0], points.shape[0], kernel
        self.rng, self.n_threads = rng, n_threads
        order = rng.permutation(self.n_total)
        n = min(_HELD_OUT, -(-self.n_total // 2))
        spare = order[n : n + _MOST]
        if len(spare) < _LEAST_PER_LANDMARK * points.shape[0]:
            n, spare = min(_HELD_OUT, self.n_total), order[:0]
        self.held, self.spare = (rows.take(np.sort(index)).astype(dtype) for index in (order[:n], spare))
        self.of_points = self._squares(points)

    def excess(self, product: SparseProduct) -> float:
        """The error with these landmarks over that with the points, for the number of rows for which it is larger."""
        own, n, tiny = self._squares(product), len(self.held), np.finfo(np.float64).tiny
        ratios = [
            max(scaled_up(own, n, total)[0], tiny) / max(scaled_up(self.of_points, n, total)[0], tiny)
            for total in (n, self.n_total)
        ]
        return float(np.sqrt(max(ratios)))

    def refined(self, product: SparseProduct) -> SparseProduct:
        """Landmarks with the same multiply-adds and, as far as the rows tell, a smaller error."""
        return refined(product, self.kernel, self._draw, self.n_threads) if len(self.spare) else product

    def _draw(self) -> Array:
        n = max(_STEP, _STEP_PER_LANDMARK * self.n_landmarks)
        return self.spare[np.sort(self.rng.permutation(len(self.spare))[:n])]

    @with_one_blas_thread
    def _squares(self, product: SparseProduct) -> NDArray[np.float64]:
        kernel = self.kernel(product)
        W = kernel.values(kernel.landmarks.rows(), self.n_threads)
        normalization = root_inverse(W, self.held.dtype).astype(self.held.dtype)
        F = features(as_rows(self.held), kernel, normalization, self.n_threads)
        return error_squares(self.held, F, kernel, self.n_threads)
