"""Rows with their moments, as the algorithms get them."""

from quickmeans.data.rows import as_rows
from quickmeans.kmeans.rows import local_points


def points_of(X, weights=None, n_threads=1, *, spherical=False):
    return local_points(as_rows(X, weights), n_threads, spherical=spherical)
