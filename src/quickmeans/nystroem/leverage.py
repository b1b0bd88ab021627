r"""Landmarks by recursive sampling of ridge leverage scores (Musco and Musco, 2017).

The ridge leverage score :math:`\ell_i = (K (K + \lambda I)^{-1})_{ii}` says how badly the other rows represent row i.
A sample S with weights w, kernel values :math:`C = k(\cdot, S)` and :math:`W = k(S, S)` gives the estimate

.. math:: \ell_i \approx \frac{q}{\lambda} \left( k(x_i, x_i) - c_i' (W + \lambda\, D^{-2})^{-1} c_i \right),
          \qquad D = \mathrm{diag}(w),

by which a larger sample is drawn. The scores of a small random subset of the rows come first, then those of subsets of
twice the size, up to all rows.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from quickmeans.kmeans.blocks import block_rows, slices
from quickmeans.kmeans.rows import Rows
from quickmeans.nystroem.kernels import Kernel


def by_leverage(
    rows: Rows, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState, n_threads: int
) -> NDArray[np.int64]:
    """Ascending indices of `n_landmarks` different rows, drawn by their ridge leverage scores."""
    n = rows.shape[0]
    # Scores with the ridge of `_scores` sum to at most 2 rank: on average a sample has at most n_landmarks / 2 rows.
    oversampling = max(1.0, np.log(n_landmarks))
    rank = max(1, int(np.ceil(n_landmarks / (4 * oversampling))))
    order = rng.permutation(n)
    sizes = [n]
    while sizes[-1] > 2 * n_landmarks:
        sizes.append(sizes[-1] // 2)
    sample = order[: min(sizes.pop(), n_landmarks)]
    weights = np.ones(len(sample))
    while True:
        subset = order[: sizes.pop() if sizes else n]
        scores = _scores(rows, subset, sample, weights, kernel, rank, oversampling, n_threads)
        if len(subset) == n:
            return _drawn(subset, scores, n_landmarks, rng)
        chosen = rng.random_sample(len(subset)) < scores
        if not chosen.any():
            chosen[scores.argmax()] = True
        sample, weights = subset[chosen], 1 / np.sqrt(scores[chosen])


def _scores(
    rows: Rows,
    subset: NDArray[np.int64],
    sample: NDArray[np.int64],
    weights: NDArray[np.float64],
    kernel: Kernel,
    rank: int,
    oversampling: float,
    n_threads: int,
) -> NDArray[np.float64]:
    """Estimated scores of the rows `subset`, between 0 and 1.

    The ridge is the sum of all eigenvalues but the `rank` largest, divided by `rank`.
    """
    points = rows.take(sample).astype(np.float64)
    to_sample = kernel.against(points, np.float64)
    W = to_sample.values(points, n_threads)
    eigenvalues = scipy.linalg.eigvalsh(W * np.outer(weights, weights), check_finite=False)
    if eigenvalues[-1] < 1e-150:  # the kernel is zero on the sample, and all rows get the same score
        return np.full(len(subset), min(1.0, rank * oversampling / len(subset)))
    ridge = max(eigenvalues[:-rank].clip(min=0).sum() / rank, 1e-12 * eigenvalues[-1])
    inverse = scipy.linalg.pinvh(W + np.diag(ridge / weights**2), check_finite=False)
    scores = np.empty(len(subset))
    for part in slices(len(subset), block_rows(rows.shape[1])):
        block = rows.take(subset[part]).astype(np.float64)
        C = to_sample.values(block, n_threads)
        residuals = kernel.diagonal(block) - np.einsum("ik,kl,il->i", C, inverse, C, optimize=True)
        scores[part] = oversampling * residuals / ridge
    return np.clip(scores, 1e-12, 1)


def _drawn(
    subset: NDArray[np.int64], scores: NDArray[np.float64], n_landmarks: int, rng: np.random.RandomState
) -> NDArray[np.int64]:
    chosen = rng.choice(len(subset), n_landmarks, replace=False, p=scores / scores.sum())
    return np.sort(subset[chosen])
