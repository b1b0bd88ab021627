"""Products of sparse matrices as the paper applies them: a chain of SciPy's CSR products."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans import QKMeans


def scipy_chain(factors: Sequence[Any], M: NDArray[Any]) -> NDArray[Any]:
    """Return S_1 (S_2 (... M))."""
    return np.asarray(reduce(lambda Y, S: S @ Y, reversed(factors), M))


def csr_factors(model: QKMeans) -> list[Any]:
    """Return the factors of a fitted model for `scipy_chain`."""
    assert model.product_ is not None
    return [sp.csr_array(S) for S in model.product_.factors]


def nearest(products: NDArray[Any], centers: NDArray[Any]) -> NDArray[np.int64]:
    """Return the centroid of least ||u||^2 / 2 - <u, x> for every column of the K x N products <u, x>."""
    return np.asarray(((centers**2).sum(axis=1)[:, None] / 2 - products).argmin(axis=0))
