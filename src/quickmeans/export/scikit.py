"""Fitted clusters as scikit-learn's KMeans."""

from collections.abc import Mapping
from typing import Any

from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.threads import resolve_threads


def as_kmeans(fitted: FittedClusters, features: Mapping[str, Any]) -> KMeans | Pipeline:
    """A fitted KMeans with copies of these clusters; `features` are attributes such as `n_features_in_`.

    Spherical clusters compare directions, so that a Normalizer comes before the KMeans.
    """
    centers = fitted.cluster_centers.copy()
    model = KMeans(len(centers), init=centers, n_init=1)
    model.cluster_centers_, model.inertia_, model.n_iter_ = centers, fitted.inertia, fitted.n_iter
    if fitted.labels is not None:
        model.labels_ = fitted.labels.copy()
    model._n_threads, model._n_features_out = resolve_threads(None), len(centers)
    if not fitted.assigner.geometry.spherical:
        model.__dict__.update(features)
        return model
    model.n_features_in_, before = centers.shape[1], Normalizer()
    before.__dict__.update(features)
    return make_pipeline(before, model)
