"""Whatever is in memory, as rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from quickmeans.data.memory_rows import ArrayRows, MemoryRows
from quickmeans.data.sparse_rows import SparseRows
from quickmeans.kmeans.rows import Weights


def as_rows(X: Any, weights: Weights = None) -> MemoryRows:
    """An array or a sparse matrix as rows."""
    return SparseRows(X, weights) if sp.issparse(X) else ArrayRows(np.asarray(X), weights)
