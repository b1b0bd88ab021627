"""Arrays of a fitted model from a file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.state import UNSIGNED, State
from quickmeans.transform import SparseProduct


def stored_arrays(
    state: State, product: SparseProduct, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """The normalization, and which rows of X the landmarks are if they are rows; a ValueError says what is wrong."""
    K = product.shape[0]
    normalization = state.tensor("normalization", 2, (dtype.name,))
    if normalization.shape != (K, K):
        raise ValueError(f"normalization must have shape {(K, K)}, got {normalization.shape}.")
    if "components" in state.tensors and state.tensor("components", 2, (dtype.name,)).shape != product.shape:
        raise ValueError(f"components must have shape {product.shape}.")
    if "component_indices" not in state.tensors:
        return normalization, None
    indices = state.tensor("component_indices", 1, UNSIGNED)
    if len(indices) != K or (indices >= 2**63).any():
        raise ValueError(f"component_indices must name {K} rows.")
    return normalization, indices.astype(np.int64)
