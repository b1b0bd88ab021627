r"""How rows are compared with centroids.

With the mean :math:`m` of the rows, every centroid is written as :math:`m + c_k`, and scores are compared:

.. math:: \|x - m - c_k\|^2 = \|x - m\|^2 - 2 (\langle x, c_k\rangle - b_k), \qquad
          b_k = \|c_k\|^2 / 2 + \langle m, c_k\rangle.

The nearest centroid has the largest score :math:`\langle x, c_k\rangle - b_k`. Centring costs one number per centroid,
and X is neither copied nor changed. Spherical k-means compares directions: the mean is taken as zero, centroids have
length one, and b is zero:

.. math:: \|x / |x| - c_k\|^2 = 2 - 2 \langle x, c_k\rangle / |x|.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_DIRECTION = "Row {} of X is zero and has no direction; spherical k-means cannot place it."


@dataclass(frozen=True)
class Geometry:
    """The mean that rows and centroids are taken about, the dtype of the arithmetic, and whether only directions count.

    Attributes
    ----------
    mean : array of shape (n_features,)
        Zero if `spherical`.
    dtype : numpy.dtype
        float32 or float64.
    spherical : bool
    """

    mean: NDArray[np.float64]
    dtype: np.dtype[Any]
    spherical: bool = False

    def offset(self, centers: NDArray[np.float64], squares: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The -b_k of these centered centroids; `squares` are their squared norms, if known."""
        if self.spherical:
            return np.zeros(len(centers))
        squares = squared_norms(centers) if squares is None else squares
        return np.asarray(0.0 - (squares / 2 + centers @ self.mean), np.float64)

    def squared_distances(self, norms: NDArray[Any], scores: NDArray[Any]) -> NDArray[Any]:
        """Squared distances from the squared norms of the centered rows and the scores of their centroids."""
        if self.spherical:
            return np.asarray(np.maximum(2 - 2 * scores / np.sqrt(norms), 0))
        return np.asarray(np.maximum(norms - 2 * scores, 0))

    def centered(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """x - m, or x / |x| if spherical."""
        if self.spherical:
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            if not lengths.all():
                raise ValueError(NO_DIRECTION.format(int(np.flatnonzero(lengths == 0)[0])))
            return np.asarray(rows / lengths, np.float64)
        return np.asarray(rows - self.mean, np.float64)


def squared_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """|x|^2 of every row."""
    return np.asarray(np.einsum("kd,kd->k", rows, rows), np.float64)
