"""The inner loops of sparse ALS."""

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import UINT8, Floats, Ints, floats, ints, packed, writable
from quickmeans.threads import instruction_set


def fit_supports(
    gram: Floats,
    targets: Floats,
    weights: Floats,
    drop: Ints,
    support: NDArray[np.uint8],
    n_threads: int,
    *,
    prices: bool,
) -> tuple[Floats, Floats | None]:
    """For every row the least-squares coefficients on its support, after removing the ``drop`` cheapest entries.

    ``support`` is changed. The prices, if wanted, are what the removal of an entry would add to the objective, times
    the row's weight, and infinite outside the support.
    """
    mask = writable(support, "support", UINT8)
    values, priced = np.empty(targets.shape), np.empty(targets.shape) if prices else None
    problem = floats(gram), floats(targets), floats(weights), ints(drop)
    _native.fit_supports(*problem, mask, values, priced, n_threads, instruction_set())
    return values, priced


def masked_product(rows: Floats, atoms: Floats, support: NDArray[np.uint8], n_threads: int) -> Floats:
    """``rows @ atoms`` on the support, and zero elsewhere; it skips the zeros of the atoms."""
    out = np.empty(support.shape)
    _native.masked_product(floats(rows), floats(atoms), packed(support, UINT8), out, n_threads)
    return out
