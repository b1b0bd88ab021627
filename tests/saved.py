"""Small models, and their bytes in files."""

import numpy as np

from quickmeans import QKMeans
from quickmeans.files import container


def make_rows(dtype=np.float32, n=400, D=24):
    rng = np.random.default_rng(1)
    centers = 3 * rng.standard_normal((12, D))
    return (centers[rng.integers(12, size=n)] + rng.standard_normal((n, D)) + 2).astype(dtype)


X = make_rows()


def fitted(rows=X, **options):
    return QKMeans(**{"n_clusters": 10, "max_iter": 5, "random_state": 0} | options).fit(rows)


def encoded(**options):
    return container.encode(fitted(**options).to_state(labels=True))


def decoded(data):
    with container.explaining("file", "model"):
        return QKMeans.from_state(container.decode(data))
