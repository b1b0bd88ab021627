"""Fits that begin with a model: warm starts, more clusters, fewer, and how far centroids went."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from quickmeans import QKMeans, load

rng = np.random.default_rng(0)
PLACES = 20 * rng.standard_normal((12, 5))
WHERE = rng.integers(12, size=1200)
X = (PLACES[WHERE] + rng.standard_normal((1200, 5))).astype(np.float32)
MODEL = QKMeans(12, random_state=0).fit(X)


def nearest_place(centers):
    return np.linalg.norm(centers[:, None] - PLACES, axis=2).argmin(axis=1)


def test_the_same_number_keeps_all():
    again = QKMeans(12, init=MODEL).fit(X)
    assert (again.labels_ == MODEL.labels_).all()
    assert again.drift_.origin.tolist() == list(range(12))
    assert again.drift_.distance.max() < 1e-4
    assert len(again.drift_.removed) == 0
    assert not again.drift_.is_new.any()
    assert "12 clusters moved by" in str(again.drift_)


def test_rows_added():
    """Rows around one place more, and one cluster more: the others keep their numbers."""
    more = np.concatenate([X, (100 + rng.standard_normal((90, 5))).astype(np.float32)])
    grown = QKMeans(13, init=MODEL).fit(more)
    assert (grown.labels_[:1200] == MODEL.labels_).all()
    assert (grown.labels_[1200:] == 12).all()
    assert grown.drift_.is_new.tolist() == [False] * 12 + [True]
    assert np.isnan(grown.drift_.distance[12])
    assert "1 are new" in str(grown.drift_)


@pytest.mark.parametrize("K", [1, 2, 5, 11])
def test_growth_splits_where_the_error_is(K):
    small = QKMeans(K, random_state=0).fit(X)
    grown = QKMeans(12, init=small, random_state=0).fit(X)
    assert sorted(nearest_place(grown.cluster_centers_)) == list(range(12))
    assert np.isclose(grown.inertia_, MODEL.inertia_, rtol=1e-3)
    assert (grown.drift_.origin == [*range(K), *[-1] * (12 - K)]).all()


@pytest.mark.parametrize("K", [3, 7, 11])
def test_fewer_clusters_merge_the_least_useful(K):
    fewer = QKMeans(K, init=MODEL).fit(X)
    origin = fewer.drift_.origin
    assert len(set(origin)) == K
    assert sorted([*origin, *fewer.drift_.removed]) == list(range(12))
    stay = origin < K
    assert (origin[stay] == np.flatnonzero(stay)).all()  # clusters that stay keep their numbers
    assert fewer.inertia_ <= 1.3 * QKMeans(K, random_state=0).fit(X).inertia_


def test_a_double_centroid_goes_first():
    """By hand: of 0, 10 and 10.5 one of the last two costs least."""
    rows = np.array([[0.0], [0.2], [10.0], [10.2], [10.5], [10.7]])
    model = QKMeans(3, init=[[0.1], [10.1], [10.6]]).fit(rows)
    fewer = QKMeans(2, init=model).fit(rows)
    assert fewer.drift_.origin.tolist() in ([0, 1], [0, 2])
    np.testing.assert_allclose(fewer.cluster_centers_.ravel(), [0.1, 10.35], rtol=1e-5)


def test_warm_start():
    model = QKMeans(12, warm_start=True, random_state=0, max_iter=2, init="random", search="none").fit(X)
    assert not hasattr(model, "drift_")
    first = model.inertia_
    model.fit(X)
    assert model.inertia_ <= first
    assert hasattr(model, "drift_")
    assert model.set_params(n_clusters=15).fit(X).cluster_centers_.shape == (15, 5)
    assert model.drift_.is_new.sum() == 3


@pytest.mark.parametrize("kind", ["csr", "file", "dask", "float64", "spherical", "weights", "batches", "product"])
@pytest.mark.parametrize("K", [8, 20])
def test_rows_and_models_of_all_kinds(kind, K, tmp_path):
    np.save(tmp_path / "x.npy", X)
    rows = {"csr": sp.csr_array(X), "file": tmp_path / "x.npy", "dask": da.from_array(X, chunks=(300, 5))}.get(kind, X)
    rows = X.astype(np.float64) + 100 if kind == "float64" else rows
    options = {"spherical": {"metric": "cosine"}, "batches": {"batch_size": 200}, "product": {"shortlist": 0}}
    weights = np.linspace(0, 1, len(X)) if kind == "weights" else None
    model = QKMeans(12, random_state=0, **options.get(kind, {})).fit(rows, sample_weight=weights)
    other = clone(model).set_params(n_clusters=K, init=model).fit(rows, sample_weight=weights)
    assert other.cluster_centers_.shape == (K, 5)
    assert (other.drift_.origin < 0).sum() == max(K - 12, 0)
    plain = QKMeans(K, random_state=0, **options.get(kind, {})).fit(rows, sample_weight=weights)
    assert other.inertia_ <= 1.5 * plain.inertia_


def test_many_clusters():
    rows = np.random.default_rng(0).standard_normal((6000, 40)).astype(np.float32)
    model = QKMeans(2000, max_iter=2, random_state=0).fit(rows)
    grown = QKMeans(2200, init=model, max_iter=2).fit(rows)
    assert grown.inertia_ < model.inertia_
    assert (grown.weight_in_clusters_ > 0).all()
    assert (grown.drift_.origin[:2000] == np.arange(2000)).all()
    fewer = QKMeans(1900, init=grown, max_iter=2).fit(rows)
    assert len(fewer.drift_.removed) == 300


def test_other_models_and_files(tmp_path):
    sk = KMeans(6, n_init=1, random_state=0).fit(X)
    assert QKMeans(8, init=sk).fit(X).drift_.is_new.sum() == 2
    grown = QKMeans(13, init=MODEL).fit(X)
    grown.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.init == "k-means++"
    assert QKMeans(13, init=loaded, checkpoint=tmp_path / "c").fit(X).n_iter_ >= 1


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="init is a QKMeans without cluster_centers_; fit it first"):
        QKMeans(3, init=QKMeans(3)).fit(X)
    with pytest.raises(ValueError, match="has 5 features, and X has 3; they must agree"):
        QKMeans(12, init=MODEL).fit(X[:, :3])
    with pytest.raises(ValueError, match="n_samples=10 should be >= n_clusters=12"):
        QKMeans(12, init=MODEL).fit(X[:10])
    with pytest.raises(ValueError, match="warm_start must be True or False"):
        QKMeans(12, warm_start="yes").fit(X)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than n_clusters \(5\)"):
        QKMeans(5, init=QKMeans(2, random_state=0).fit(X[:3])).fit(X[[0, 1, 2, 0, 1, 2]])
    model = QKMeans(12, warm_start=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match="they must agree"):
        model.fit(X[:, :3])
    assert (model.predict(X) == model.labels_).all()  # the earlier fit stays
