r"""Landmarks by recursive sampling of ridge leverage scores (Musco and Musco, 2017).

The ridge leverage score :math:`\ell_i = (K (K + \lambda I)^{-1})_{ii}` says how much row i is missed if it is left out.
From the scores by way of a sample S with weights w (kernel values :math:`C = k(\cdot, S)`, :math:`W = k(S, S)`)

.. math:: \ell_i \approx \frac{q}{\lambda} \left( k(x_i, x_i) - c_i' (W + \lambda\, D^{-2})^{-1} c_i \right),
          \qquad D = \mathrm{diag}(w),

a larger sample is drawn: from few rows to twice as many, and so on up to all.
"""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from quickmeans.kmeans.blocks import block_rows as rows_at_a_time
from quickmeans.nystroem.features import dense
from quickmeans.nystroem.kernels import Kernel


def by_leverage(
    X: Any, kernel: Kernel, n_landmarks: int, rng: np.random.RandomState, n_threads: int
) -> NDArray[np.int64]:
    """Indices of so many different rows, drawn by their ridge leverage scores."""
    n = X.shape[0]
    oversampling = max(1.0, np.log(n_landmarks))
    rank = max(1, int(np.ceil(n_landmarks / (4 * oversampling))))
    order = rng.permutation(n)
    sizes = [n]
    while sizes[-1] > 2 * n_landmarks:
        sizes.append(sizes[-1] // 2)
    sample = order[: min(sizes.pop(), n_landmarks)]
    weights = np.ones(len(sample))
    while True:
        among = order[: sizes.pop() if sizes else n]
        scores = _scores(X, among, sample, weights, kernel, rank, oversampling, n_threads)
        if len(among) == n:
            return _drawn(among, scores, n_landmarks, rng)
        chosen = rng.random_sample(len(among)) < scores
        if not chosen.any():
            chosen[scores.argmax()] = True
        sample, weights = among[chosen], 1 / np.sqrt(scores[chosen])


def _scores(
    X: Any,
    among: NDArray[np.int64],
    sample: NDArray[np.int64],
    weights: NDArray[np.float64],
    kernel: Kernel,
    rank: int,
    oversampling: float,
    n_threads: int,
) -> NDArray[np.float64]:
    """Estimates of the scores, between 0 and 1; the ridge is the mean of what `rank` eigenvalues leave over."""
    points = dense(X[sample]).astype(np.float64)
    to_sample = kernel.against(points, np.float64)
    W = to_sample.values(points, n_threads)
    eigenvalues = scipy.linalg.eigvalsh(W * np.outer(weights, weights), check_finite=False)
    if eigenvalues[-1] < 1e-150:  # a sample of zeros: nothing to tell rows by
        return np.full(len(among), min(1.0, rank * oversampling / len(among)))
    ridge = max(eigenvalues[:-rank].clip(min=0).sum() / rank, 1e-12 * eigenvalues[-1])
    inverse = scipy.linalg.pinvh(W + np.diag(ridge / weights**2), check_finite=False)
    scores = np.empty(len(among))
    step = rows_at_a_time(X.shape[1])
    for begin in range(0, len(among), step):
        rows = dense(X[among[begin : begin + step]]).astype(np.float64)
        C = to_sample.values(rows, n_threads)
        missed = kernel.diagonal(rows) - np.einsum("ik,kl,il->i", C, inverse, C, optimize=True)
        scores[begin : begin + step] = oversampling * missed / ridge
    return np.clip(scores, 1e-12, 1)


def _drawn(
    among: NDArray[np.int64], scores: NDArray[np.float64], n_landmarks: int, rng: np.random.RandomState
) -> NDArray[np.int64]:
    chosen = rng.choice(len(among), n_landmarks, replace=False, p=scores / scores.sum())
    return np.sort(among[chosen])
