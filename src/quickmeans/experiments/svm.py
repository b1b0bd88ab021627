r"""The linear support vector machine of the tables, for many classes at once.

One machine per class against the rest, as in scikit-learn's ``LinearSVC``, with the intercept among the weights;
:math:`y_{ic}` is 1 for the class of the row and -1 for the others:

.. math:: \min_W \; \tfrac12 \|W\|^2 + C \sum_{i, c} \max(0, 1 - y_{ic} \langle w_c, f_i\rangle)^2

The curvature of every column of W is at most :math:`H = I + 2 C F' F`, which is the same for all classes. So gradient
steps scaled by :math:`H^{-1}`, with momentum, reach the optimum of all classes in some dozens of matrix products.
LinearSVC solves one class after the other and takes half an hour for the thousand classes of Blobs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import inv

CHOICES = (1.0, 10.0, 100.0)  # values of C
_BLOCK = 4096  # rows


class LinearSVM:
    """One squared hinge per class; it stops when the step without momentum is below `tol` times the weights."""

    def __init__(self, C: float = 1.0, max_iter: int = 200, tol: float = 1e-4) -> None:
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, F: NDArray[Any], y: NDArray[Any]) -> "LinearSVM":
        """Learn the weights `coef_` of shape (features + 1, classes)."""
        self.classes_, classes = np.unique(y, return_inverse=True)
        F = _with_ones(F)
        step_sizes = inv(np.eye(F.shape[1]) + 2 * self.C * (F.T @ F).astype(np.float64))
        W = ahead = np.zeros((F.shape[1], len(self.classes_)))
        momentum = 1.0
        for _ in range(self.max_iter):
            fall = step_sizes @ _gradient(F, classes, ahead, self.C)
            step = ahead - fall - W
            if np.vdot(fall, step) > 0:  # the momentum points uphill: restart it
                momentum = 1.0
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            W = ahead - fall
            ahead, momentum = W + (momentum - 1) / grown * step, grown
            if np.linalg.norm(fall) <= self.tol * np.linalg.norm(W):
                break
        self.coef_ = W
        return self

    def score(self, F: NDArray[Any], y: NDArray[Any]) -> float:
        """Return the share of rows whose class has the largest score."""
        scores = _with_ones(F) @ self.coef_
        return float((self.classes_[scores.argmax(axis=1)] == y).mean())


def _with_ones(F: NDArray[Any]) -> NDArray[Any]:
    return np.hstack([F, np.ones((len(F), 1), F.dtype)])


def best_c(F: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the C with the best accuracy on the last fifth of the rows after training on the others."""
    n = len(F) * 4 // 5
    return max(CHOICES, key=lambda C: LinearSVM(C).fit(F[:n], y[:n]).score(F[n:], y[n:]))


def _gradient(F: NDArray[Any], classes: NDArray[np.int64], W: NDArray[np.float64], C: float) -> NDArray[np.float64]:
    """Return the gradient W + 2 C F' (...), block by block."""
    total, weights = W.copy(), W.astype(F.dtype)
    for begin in range(0, len(F), _BLOCK):
        rows, labels = F[begin : begin + _BLOCK], classes[begin : begin + _BLOCK]
        scores = rows @ weights
        correct = np.arange(len(rows)), labels
        own_scores = np.minimum(scores[correct] - 1, 0)
        np.maximum(scores + 1, 0, out=scores)
        scores[correct] = own_scores
        total += 2 * C * (rows.T @ scores)
    return total
