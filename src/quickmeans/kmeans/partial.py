"""Fitting a model to one batch after the other."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from quickmeans.checks import check_sample_weight
from quickmeans.kmeans.calibration import Screener
from quickmeans.kmeans.follower import ProductFollower
from quickmeans.kmeans.minibatch import MiniBatch, batches
from quickmeans.kmeans.points import Points
from quickmeans.kmeans.run import follower_of, screener_of, starting_centers
from quickmeans.kmeans.screen import ProductRows
from quickmeans.threads import resolve_threads, with_one_blas_thread


@with_one_blas_thread
def partial_fit(model: Any, X: Any, sample_weight: ArrayLike | None) -> None:
    """Change the fitted attributes of the model by the rows of X; see :meth:`quickmeans.QKMeans.partial_fit`."""
    begun = hasattr(model, "cluster_centers_")
    if begun and getattr(model, "_counts", None) is None:
        raise ValueError("A loaded model does not know how many rows its centroids stand for; fit it first.")
    X = model._check_rows(X, reset=not begun)
    weights = None if sample_weight is None else check_sample_weight(sample_weight, X.shape[0])
    points = Points(X, weights, resolve_threads(model.n_threads), spherical=bool(model.spherical))
    if not begun:
        _begin(model, points)
    if not hasattr(model, "_batch"):  # its frame stays: what rows and centroids are taken about is no matter of fitting
        points.frame = model._frame
        centers = model.cluster_centers_.astype(np.float64) - model.mean_
        model._batch = MiniBatch(model._frame, centers, model._counts, _screener(model, points))
    _follow(model, points)


def _screener(model: Any, points: Points) -> Screener | ProductFollower:
    """What makes the screens, or the products whose rows are the centroids."""
    if model.shortlist != 0:
        return screener_of(model, points, _rng(model))
    screen = getattr(model, "_screen", None)
    return follower_of(model, model._frame, screen if isinstance(screen, ProductRows) else None)


def _rng(model: Any) -> np.random.Generator:
    return np.random.default_rng(check_random_state(model.random_state).randint(2**31))


def _begin(model: Any, points: Points) -> None:
    """A start from the first rows that come."""
    if len(points) < model.n_clusters:
        raise ValueError(f"n_samples={len(points)} should be >= n_clusters={model.n_clusters} in the first batch.")
    centers, counts = starting_centers(model, points, _rng(model), lambda text: None)
    model.mean_, model._frame = points.frame.mean, points.frame
    model.cluster_centers_ = (centers + points.frame.mean).astype(points.result_dtype)
    model._counts = np.zeros(model.n_clusters) if counts is None else counts
    model.n_iter_, model._n_features_out = 0, model.n_clusters


def _follow(model: Any, points: Points) -> None:
    batch: MiniBatch = model._batch
    size = len(points) if model.batch_size is None else int(model.batch_size)
    order = np.random.default_rng((model.n_iter_, len(points)))
    found, labels = [], np.empty(len(points), np.int32)
    for which, rows, weights in batches(points, size, order):
        found.append(batch.step(rows, weights, points.n_threads))
        labels[which] = found[-1].labels
    batch.refresh()
    model._counts, model._fitted_shortlist = batch.counts, model.shortlist
    centers = batch.screen.centers if isinstance(batch.screen, ProductRows) else batch.centers
    model.cluster_centers_ = (centers + model.mean_).astype(model.cluster_centers_.dtype)
    model.product_, model.reach_, model._screen = batch.screen.product, batch.screen.reach, batch.screen
    model.labels_ = labels
    model.objective_history_ = np.array([part.objective for part in found])
    model.inertia_ = float(model.objective_history_.sum())
    model.n_candidates_ = sum(part.n_settled for part in found) / len(points)
    model.n_iter_ += 1
