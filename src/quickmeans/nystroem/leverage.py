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

from quickmeans.nystroem.features import dense
from quickmeans.nystroem.kernels import Kernel, Landmarks

_ROWS = 4096  # whose scores are computed together


def by_leverage(
    X: Any, kernel: Kernel, mean: NDArray[np.float64], n_landmarks: int, rng: np.random.RandomState, n_threads: int
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
        scores = _scores(X, among, sample, weights, kernel, mean, rank, oversampling, n_threads)
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
    mean: NDArray[np.float64],
    rank: int,
    oversampling: float,
    n_threads: int,
) -> NDArray[np.float64]:
    """Estimates of the scores, between 0 and 1; the ridge is the mean of what `rank` eigenvalues leave over."""
    points = dense(X[sample]).astype(np.float64)
    to_sample = kernel.against(Landmarks.dense(points, mean, np.float64))
    W = to_sample.values(points, n_threads)
    eigenvalues = scipy.linalg.eigvalsh(W * np.outer(weights, weights), check_finite=False)
    largest = max(eigenvalues[-1], np.finfo(np.float64).tiny)
    ridge = max(eigenvalues[:-rank].clip(min=0).sum() / rank, 1e-12 * largest)
    inverse = scipy.linalg.pinvh(W + np.diag(ridge / weights**2), check_finite=False)
    scores = np.empty(len(among))
    for begin in range(0, len(among), _ROWS):
        rows = dense(X[among[begin : begin + _ROWS]]).astype(np.float64)
        C = to_sample.values(rows, n_threads)
        missed = kernel.diagonal(rows) - np.einsum("ik,kl,il->i", C, inverse, C, optimize=True)
        scores[begin : begin + _ROWS] = oversampling * missed / ridge
    return np.clip(scores, 1e-12, 1)


def _drawn(
    among: NDArray[np.int64], scores: NDArray[np.float64], n_landmarks: int, rng: np.random.RandomState
) -> NDArray[np.int64]:
    chosen = rng.choice(len(among), n_landmarks, replace=False, p=scores / scores.sum())
    return np.sort(among[chosen])
