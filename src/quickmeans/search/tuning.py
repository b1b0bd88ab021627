r"""How many lists an index has, and how many of them are searched.

A true neighbour is found if its list is probed. So the recall of m probes is the share of the true neighbours whose
list is among the m that the coarse step finds.
"""

import math

import numpy as np
from numpy.typing import NDArray

from quickmeans.search.index import InvertedIndex
from quickmeans.search.input import Input
from quickmeans.search.probes import Neighbors
from quickmeans.search.scan import brute_force

# The share of neighbours found by so many queries has a standard error below 1.4 % at a recall of 0.95.
_SAMPLE = 256
_LISTS_PER_ROOT = 8  # for N rows, in units of sqrt(N); faiss's guide recommends 4 to 16
_ROWS_PER_LIST = 8  # on average; it limits the number of lists below 4096 rows


def default_n_lists(n_rows: int) -> int:
    """The number of lists for so many rows."""
    return max(1, min(round(_LISTS_PER_ROOT * math.sqrt(n_rows)), n_rows // _ROWS_PER_LIST))


def tuning_sample(n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows to tune with: a tenth of all, at most 256."""
    return np.sort(rng.choice(n_rows, min(_SAMPLE, -(-n_rows // 10)), replace=False))


def fewest_probes(
    rows: Input,
    sample: NDArray[np.int64],
    queries: NDArray[np.float32],
    labels: NDArray[np.int32],
    index: InvertedIndex,
    k: int,
    recall: float,
    n_threads: int,
) -> tuple[int, float]:
    """The smallest number of lists in which the sampled rows find the share `recall` of their k nearest other rows.

    `queries` are the sampled rows. Returned with the share that they find.
    """
    n_rows, n_lists, similarity = rows.shape[0], index.lists.nlist, index.metric.similarity
    if n_lists == 1 or n_rows < 3:
        return n_lists, 1.0
    k = min(k, n_rows - 1)
    ids = _nearest_rows(rows, queries, k + 1, similarity, n_threads)
    is_other = ids != sample[:, None]
    is_other[is_other.all(axis=1), -1] = False  # for rows that are not among their own k + 1 nearest
    lists = labels[ids].astype(np.int64)

    def found(m: int) -> float:
        probes = index.nearest_lists(queries, m, n_threads)
        is_found = np.stack([(probes == column[:, None]).any(axis=1) for column in lists.T], axis=1)
        return float(is_found[is_other].mean())

    least, m = 0, 1  # lists that are not enough, and that may be
    while (share := found(m)) < recall - 1e-9 and m < n_lists:
        least, m = m, min(2 * m, n_lists)
    while m - least > 1:
        middle = (least + m) // 2
        if (other := found(middle)) < recall - 1e-9:
            least = middle
        else:
            m, share = middle, other
    return m, share


def _nearest_rows(
    rows: Input, queries: NDArray[np.float32], k: int, similarity: bool, n_threads: int
) -> NDArray[np.int64]:
    """The numbers of the k nearest rows of every query, block by block."""
    nearest: Neighbors | None = None
    for place, block in rows.blocks():
        values, ids = brute_force(block, queries, min(k, len(block)), similarity, n_threads)
        ids += place.start
        if nearest is not None:
            values, ids = np.hstack([nearest[0], values]), np.hstack([nearest[1], ids])
            order = np.argsort(-values if similarity else values, axis=1, kind="stable")[:, :k]
            values, ids = np.take_along_axis(values, order, 1), np.take_along_axis(ids, order, 1)
        nearest = values, ids
    assert nearest is not None
    return nearest[1]
