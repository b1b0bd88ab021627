r"""Projection on an l1 ball: :math:`\arg\min_V \|V - U\|_F` with :math:`\sum_{kd} |v_{kd}| \le r`.

The projection is a soft threshold, :math:`v = \mathrm{sign}(u) \max(|u| - t, 0)`. To every number of non-zeros
belongs a threshold and so a radius.
"""

import numpy as np
from numpy.typing import NDArray


def project_rows(U: NDArray[np.float64], n_nonzeros: int) -> NDArray[np.float64]:
    """Return the projection of U on the l1 ball on which it has so many non-zeros, if there are no ties."""
    if n_nonzeros >= U.size:
        return U.copy()
    sizes = np.abs(U)
    threshold = np.partition(sizes.ravel(), U.size - n_nonzeros - 1)[U.size - n_nonzeros - 1]
    return np.asarray(np.sign(U) * np.maximum(sizes - threshold, 0))
