"""Columns divided by their standard deviations: the same as dividing X, in the fit and afterwards."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from commands import done

from quickmeans import QKMeans, load
from quickmeans.data import open_rows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3)) * [1, 1000, 0] + RNG.integers(3, size=(300, 1)) * [5, 0, 0] + [0, 0, 7]
SCALE = np.r_[X[:, :2].std(axis=0), 1]
KINDS = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "frame": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
    "csr": sp.csr_array,
    "source": open_rows,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}, {"batch_size": 100}])
def test_as_divided_rows(kind, options, tmp_path):
    rows, divided = KINDS[kind](X), KINDS[kind](X / SCALE)
    model = QKMeans(3, random_state=0, standardize=True, **options).fit(rows)
    expected = QKMeans(3, random_state=0, **options).fit(divided)
    np.testing.assert_allclose(model.scale_, SCALE, rtol=1e-5)
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    model.save(tmp_path / "m.safetensors")
    for again in (model, load(tmp_path / "m.safetensors")):
        np.testing.assert_array_equal(again.predict(rows), expected.labels_)
        np.testing.assert_allclose(again.transform(rows), expected.transform(divided), rtol=1e-4, atol=1e-4)
        assert again.score(rows) == pytest.approx(expected.score(divided), rel=1e-4)


def test_a_start_is_in_the_units_of_the_rows():
    model = QKMeans(3, standardize=True, init=X[:3], max_iter=1, tol=0).fit(X)
    expected = QKMeans(3, init=X[:3] / SCALE, max_iter=1, tol=0).fit(X / SCALE)
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_)


def test_the_scale_is_that_of_the_last_fit():
    model = QKMeans(3, standardize=True, random_state=0).fit(X)
    model.partial_fit(10 * X[:100])
    np.testing.assert_allclose(model.scale_, SCALE)
    model.set_params(standardize=False).fit(X)
    assert not hasattr(model, "scale_")


def test_a_fit_that_begins_with_a_model():
    model = QKMeans(3, standardize=True, random_state=0).fit(X)
    again = QKMeans(3, standardize=True, init=model, max_iter=1).fit(2 * X)
    np.testing.assert_allclose(2 * model.scale_[:2], again.scale_[:2])
    model.set_params(warm_start=True, max_iter=1).fit(2 * X)
    np.testing.assert_array_equal(model.labels_, again.labels_)
    np.testing.assert_allclose(model.cluster_centers_, again.cluster_centers_)


def test_weights_count():
    weights = np.r_[np.ones(100), np.zeros(200)]
    model = QKMeans(2, standardize=True, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.scale_[:2], X[:100, :2].std(axis=0))


def test_bad_input(tmp_path):
    with pytest.raises(ValueError, match="standardize must be True or False"):
        QKMeans(2, standardize="yes").fit(X)
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"standardize=True is not for Dask arrays; give X / X.std"):
        QKMeans(2, standardize=True).fit(da.from_array(X, chunks=100))
    model = QKMeans(2, standardize=True).fit(X)
    with pytest.raises(ValueError, match="A model with standardize=True cannot be exported"):
        model.to_sklearn()
    state = model.to_state()
    for wrong in (np.ones(2), np.array([1.0, 0, 1]), np.array([1.0, np.nan, 1])):
        state.tensors["scale"] = wrong
        with pytest.raises(ValueError, match="scale must be"):
            QKMeans.from_state(state)


def test_in_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv("x.csv", index=False)
    done("fit", "x.csv", "-k", "3", "--standardize", "--seed", "0", "-o", "m.safetensors")
    model = load("m.safetensors")
    np.testing.assert_allclose(model.scale_, SCALE)
    done("predict", "m.safetensors", "x.csv", "--distance", "-o", "out.csv")
    expected = np.linalg.norm((X / SCALE)[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(pd.read_csv("out.csv")["distance"], expected.min(axis=1))
    hole = pd.DataFrame({"a": [None], "b": [0.0], "c": [7.0]})
    hole.to_csv("hole.csv", index=False)
    hole.to_parquet("hole.parquet")
    expected = np.linalg.norm(np.array([X[:, 0].mean(), 0, 7]) / SCALE - model.cluster_centers_, axis=1).min()
    for name in ("hole.csv", "hole.parquet"):
        done("predict", "m.safetensors", name, "--missing", "mean", "--distance", "-o", "out.parquet", "--force")
        np.testing.assert_allclose(pd.read_parquet("out.parquet")["distance"], [expected])
