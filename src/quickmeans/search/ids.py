"""Ids of rows: row numbers in the order in which rows were added, never used again after a removal."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_ids(ids: ArrayLike, removed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The different ids, in order; every one must be the id of a row that is not `removed`."""
    given = np.asarray(ids)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"ids must be whole numbers, got an array of {given.dtype}.")
    given = np.unique(given)
    unknown = given[(given < 0) | (given >= len(removed))]
    missing = unknown if len(unknown) else given[removed[given.astype(np.int64)]]
    if len(missing):
        raise ValueError(
            f"The index has no row with id {missing[0]}; {len(missing)} of the {len(given)} ids are unknown."
        )
    return given.astype(np.int64)
