"""Choosing the number of clusters: indices as scikit-learn has them, fits that follow each other, a suggestion."""

import json
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from commands import done, refused, run
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score

from quickmeans import QKMeans, sweep
from quickmeans.kmeans.indices import calinski_harabasz, davies_bouldin, simplified_silhouette
from quickmeans.sweeps import suggested

rng = np.random.default_rng(0)
X = (10 * rng.standard_normal((6, 4))[rng.integers(6, size=900)] + rng.standard_normal((900, 4))).astype(np.float32)
KS = [2, 4, 6, 9]


def test_indices_are_those_of_scikit_learn():
    result = sweep(X, KS, random_state=0, max_iter=100, tol=0)
    for i, model in enumerate(result.models):
        assert np.isclose(result.calinski_harabasz[i], calinski_harabasz_score(X, model.labels_), rtol=1e-3)
        assert np.isclose(result.davies_bouldin[i], davies_bouldin_score(X, model.labels_), rtol=1e-3)
        first, second = np.sort(model.transform(X).astype(np.float64), axis=1)[:, :2].T
        assert np.isclose(result.silhouette[i], (1 - first / second).mean(), rtol=1e-4)
        assert model.n_clusters == result.ks[i]


def test_indices_by_hand():
    distances = np.array([[1.0, 2], [0, 4], [0, 0]])
    assert simplified_silhouette(distances, np.array([1.0, 1, 2])) == (0.5 + 1 + 0) / 4
    centers = np.array([[0.0], [4.0], [99.0]])
    assert calinski_harabasz(centers, np.array([2.0, 2, 0]), np.array([2.0]), 4.0) == 16 / 1 / (4 / 2)
    found = davies_bouldin(centers, np.array([0, 0, 1]), np.array([1.0, 3, 1]), np.ones(3))
    assert found == (2 + 1) / 4


def test_the_right_number_is_suggested():
    result = sweep(X, [9, 2, 6, 4], random_state=0)
    assert result.ks.tolist() == [2, 4, 6, 9]
    assert result.suggestion == 6
    assert "most separate" in result.reason
    assert result.model.n_clusters == 6
    assert (np.diff(result.inertia) < 0).all()
    assert np.isclose(result.inertia[-1], QKMeans(9, random_state=0).fit(X).inertia_, rtol=0.05)
    assert len(str(result).splitlines()) == 6


def test_suggestions_say_why():
    ks, flat = np.array([2, 4, 8, 16]), np.full(4, 0.1)
    assert suggested(ks, np.array([100.0, 20, 18, 16]), flat, flat)[0] == 4
    assert "bend" in suggested(ks, np.array([100.0, 20, 18, 16]), flat, flat)[1]
    assert "no number stands out" in suggested(ks, np.array([100.0, 90, 81, 72.9]), flat, flat)[1]
    assert suggested(ks[:1], np.ones(1), np.array([np.nan]), np.ones(1))[0] == 2
    assert "nothing more to tell apart" in suggested(ks, np.zeros(4), flat, flat)[1]


def test_equal_rows_need_one_cluster():
    with pytest.warns(ConvergenceWarning):
        result = sweep(np.ones((20, 3)), [1, 2, 3])
    assert result.suggestion == 1
    assert "nan" not in str(result)


def test_data_frames_and_standardized_columns(tmp_path):
    frame = pd.DataFrame(X * [1, 1, 1, 1e6], columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sweep(frame, KS, random_state=0, standardize=True).suggestion == 6
    frame.to_csv(tmp_path / "x.csv", index=False)
    text = done("sweep", tmp_path / "x.csv", "-k", "2,4,6,9", "--seed", 0, "--standardize")
    assert "K = 6:" in text


@pytest.mark.parametrize("kind", ["file", "dask", "weights"])
def test_rows_of_other_kinds(kind, tmp_path):
    np.save(tmp_path / "x.npy", X)
    rows = {"file": tmp_path / "x.npy", "dask": da.from_array(X, chunks=(300, 4))}.get(kind, X)
    weights = np.ones(len(X)) if kind == "weights" else None
    result = sweep(rows, KS, random_state=0, sample_weight=weights)
    assert result.suggestion == 6
    np.testing.assert_allclose(result.silhouette[2], sweep(X, KS, random_state=0).silhouette[2], rtol=1e-3)


def test_one_cluster_and_callbacks():
    seen = []
    result = sweep(X, [1, 6], random_state=0, callback=seen.append)
    assert np.isnan(result.silhouette[0])
    assert [record["n_clusters"] for record in seen] == [1, 6]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="n_samples=900 should be >= the largest number of clusters, 901"):
        sweep(X, [2, 901])
    with pytest.raises(ValueError, match="ks must be one or more different numbers"):
        sweep(X, [2, 2])
    with pytest.raises(ValueError, match="ks must be one or more different numbers of clusters, got 12"):
        sweep(X, 12)
    with pytest.raises(ValueError, match="ks must be one or more"):
        sweep(X, [])
    with pytest.raises(ValueError, match="every number of clusters must be a whole number"):
        sweep(X, [2, 2.5])
    with pytest.raises(ValueError, match="init is not a parameter of a sweep"):
        sweep(X, [2, 3], init="random")


def test_the_command(tmp_path):
    np.save(tmp_path / "x.npy", X)
    rows, picture = tmp_path / "x.npy", tmp_path / "sweep.png"
    shown = run("sweep", rows, "-k", "2,4,6,9", "--seed", "0", "-o", picture)
    assert shown.exit_code == 0, shown.output
    assert "K = 6:" in shown.output
    assert picture.read_bytes()[:4] == b"\x89PNG"
    found = json.loads(run("sweep", rows, "-k", "1,6", "--seed", "0", "--json").stdout)
    assert found["fits"][0]["silhouette"] is None
    assert found["suggestion"] == 6
    assert run("sweep", rows, "-k", "2,x").exit_code in (1, 2)
    assert run("sweep", rows, "-k", "2,1000").exit_code == 1


def test_the_command_names_its_option(tmp_path):
    np.save(tmp_path / "x.npy", X)
    refused(run("sweep", tmp_path / "x.npy", "-k", "2,2"), "-k must be different numbers, got 2,2", code=2)
    refused(run("sweep", tmp_path / "x.npy", "-k", "2,x"), "-k must be", code=2)
