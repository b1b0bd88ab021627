r"""How many lists have to be searched.

A true neighbour is found if its list is among those probed. So the recall of m probes is the share of the true
neighbours whose list comes among the first m when lists are ordered by the distance of their centroids.
"""

import numpy as np
from numpy.typing import NDArray

from quickmeans.search.scan import brute_force

_SAMPLE = 256


def held_back(n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some rows to tune with: a tenth of all, 256 at the most."""
    return np.sort(rng.choice(n_rows, min(_SAMPLE, -(-n_rows // 10)), replace=False))


def fewest_probes(
    rows: NDArray[np.float32],
    sample: NDArray[np.int64],
    labels: NDArray[np.int32],
    centers: NDArray[np.float32],
    k: int,
    recall: float,
    similarity: bool,
    n_threads: int,
) -> int:
    """The least number of lists with which the sampled rows find the wanted share of their k nearest others."""
    queries = rows[sample]
    _, ids = brute_force(rows, queries, k + 1, similarity, n_threads)
    others = ids != sample[:, None]
    others[others.all(axis=1), -1] = False  # rows that are not among their own nearest
    scores = queries @ centers.T.astype(np.float32)
    if not similarity:
        scores -= np.einsum("kd,kd->k", centers, centers) / 2
    wanted = np.take_along_axis(scores, labels[ids].astype(np.int64), axis=1)
    ranks = np.stack([(scores > column[:, None]).sum(axis=1) for column in wanted.T], axis=1)[others]
    found = np.cumsum(np.bincount(ranks, minlength=len(centers))) / len(ranks)
    return int(np.searchsorted(found, recall - 1e-9) + 1)
