"""Small models, and their bytes in files."""

import io

import numpy as np

from quickmeans import QKMeans
from quickmeans.files import models as persistence


def make_rows(dtype=np.float32, n=400, D=24):
    rng = np.random.default_rng(1)
    centers = 3 * rng.standard_normal((12, D))
    return (centers[rng.integers(12, size=n)] + rng.standard_normal((n, D)) + 2).astype(dtype)


X = make_rows()


def fitted(rows=X, **options):
    return QKMeans(**{"n_clusters": 10, "max_iter": 5, "random_state": 0} | options).fit(rows)


def encoded(**options):
    return persistence.encode_model(fitted(**options), labels=True)


def decoded(data):
    return persistence.read_model(io.BytesIO(data))
