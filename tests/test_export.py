"""Clusters in other programs: scikit-learn's KMeans, and ONNX as onnxruntime runs it."""

import pickle
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from commands import done, refused, run
from saved import X, decoded, fitted, make_rows
from sklearn.exceptions import NotFittedError

import quickmeans
from quickmeans import QKMeans
from quickmeans.export import onnx_graph
from quickmeans.files import container

KINDS = [
    pytest.param({}, id="dense"),
    pytest.param({"compression": 3}, id="screened"),
    pytest.param({"shortlist": 0, "compression": 4}, id="product"),
    pytest.param({"shortlist": 0, "solver": "palm4msa", "n_factors": 3}, id="three factors"),
    pytest.param({"metric": "cosine"}, id="spherical"),
]


def onnx_run(path, rows):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["labels", "distances"], {"X": rows})


def squares(model, rows):
    """All squared distances in float64, from differences."""
    rows = rows.astype(np.float64)
    if model.metric == "cosine":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.stack([((rows - center) ** 2).sum(axis=1) for center in model.cluster_centers_.astype(np.float64)], 1)


def near_ties(model, rows, rng):
    """Rows in the middle between two centroids, and moved by a few units of rounding."""
    i, j = rng.integers(len(model.cluster_centers_), size=(2, 300))
    middle = (model.cluster_centers_[i].astype(np.float64) + model.cluster_centers_[j]) / 2
    return (middle * (1 + 1e-7 * rng.standard_normal(middle.shape))).astype(rows.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", KINDS)
def test_onnx_finds_the_nearest_centroids(tmp_path, rng, options, dtype):
    rows = make_rows(dtype)
    model = fitted(rows, **options)
    model.to_onnx(tmp_path / "model.onnx")
    labels, distances = onnx_run(tmp_path / "model.onnx", rows)
    np.testing.assert_array_equal(labels, model.predict(rows, exact=True))
    assert (labels.dtype, distances.dtype) == (np.int64, dtype)
    np.testing.assert_allclose(distances**2, squares(model, rows).min(axis=1), rtol=1e-5)
    ties = near_ties(model, rows, rng)
    labels, distances = onnx_run(tmp_path / "model.onnx", ties)
    exact = squares(model, ties)
    lost = exact[np.arange(len(ties)), labels] - exact.min(axis=1)
    assert lost.max() < 30 * np.finfo(dtype).eps * np.square(rows - rows.mean(axis=0)).sum(axis=1).max()
    np.testing.assert_allclose(distances**2, exact.min(axis=1), rtol=2e-5, atol=1e-10)  # some are centroids


@pytest.mark.parametrize("far", [300.123, 20_000.123])
def test_onnx_of_rows_far_from_zero(tmp_path, far):
    """float32 has few digits left for the differences; the mean must not lose them."""
    rows = (make_rows(np.float64) + far).astype(np.float32)
    for options in ({}, {"shortlist": 0, "compression": 4}):
        model = fitted(rows, **options)
        model.to_onnx(tmp_path / "model.onnx")
        labels, distances = onnx_run(tmp_path / "model.onnx", rows.astype(model.assigner_.geometry.dtype))
        about = rows.astype(np.float64) - model.mean_
        centers = model.cluster_centers_ - model.mean_ if model.product_ is None else model.product_.toarray()
        exact = np.stack([((about - center) ** 2).sum(axis=1) for center in centers], 1)
        lost = exact[np.arange(len(rows)), labels] - exact.min(axis=1)
        assert lost.max() < 1e-4
        np.testing.assert_allclose(distances**2, exact.min(axis=1), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Only .* clusters have rows")
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_sparse_factors_make_a_small_file(tmp_path):
    """The file has positions and values of the factors; the runtime makes the matrices."""
    rows = make_rows(n=600, D=400)
    model = fitted(rows, n_clusters=100, shortlist=0, compression=20)
    model.to_onnx(tmp_path / "small.onnx")
    fitted(rows, n_clusters=100).to_onnx(tmp_path / "dense.onnx")
    small, dense = ((tmp_path / name).stat().st_size for name in ("small.onnx", "dense.onnx"))
    assert small < dense / 3
    np.testing.assert_array_equal(onnx_run(tmp_path / "small.onnx", rows)[0], model.predict(rows))


@pytest.mark.parametrize("opset", [13, 15, 17, 18, 21])
def test_opsets(tmp_path, opset):
    model = fitted(shortlist=0, compression=4)
    model.to_onnx(tmp_path / "model.onnx", opset=opset)
    assert onnx.load(tmp_path / "model.onnx").opset_import[0].version == opset
    np.testing.assert_array_equal(onnx_run(tmp_path / "model.onnx", X)[0], model.predict(X))


@pytest.mark.parametrize("opset", [12, 0, 10**6, "17", True])
def test_opsets_that_there_are_not(tmp_path, opset):
    with pytest.raises(ValueError, match="opset must be a whole number from 13 to"):
        fitted().to_onnx(tmp_path / "model.onnx", opset=opset)
    assert not (tmp_path / "model.onnx").exists()


def test_what_cannot_be_exported(tmp_path, monkeypatch):
    for export in (QKMeans().to_sklearn, lambda: QKMeans().to_onnx(tmp_path / "model.onnx")):
        with pytest.raises(NotFittedError):
            export()
    monkeypatch.setattr(onnx_graph, "_MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most 1e-07 GB"):
        fitted().to_onnx(tmp_path / "model.onnx")
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'quickmeans\[onnx\]'"):
        fitted().to_onnx(tmp_path / "model.onnx")


def test_the_command(here):
    done("fit", "rows.npy", "-k", 6, "--seed", 0, "-o", "model.safetensors")
    printed = done("export", "model.safetensors", "-o", "model.onnx")
    assert "model.onnx" in printed
    assert "labels" in printed
    rows = np.load("rows.npy")
    model = quickmeans.load("model.safetensors")
    np.testing.assert_array_equal(onnx_run("model.onnx", rows)[0], model.predict(rows))
    refused(run("export", "model.safetensors", "-o", "model.onnx"), "exists already")
    refused(run("export", "model.safetensors", "-o", "again.onnx", "--opset", 9), "from 13 to")
    refused(run("export", "model.safetensors", "-o", "model.bin"), "must end in .onnx")
    refused(run("export", "rows.npy", "-o", "again.onnx"), "rows.npy")


# ---- scikit-learn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", KINDS)
def test_kmeans_of_scikit_learn(options, dtype):
    rows = make_rows(dtype)
    model = fitted(rows, **options)
    other = pickle.loads(pickle.dumps(model.to_sklearn()))
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows, exact=True))
    distances = other.transform(rows)
    np.testing.assert_allclose(distances, model.transform(rows), rtol=1e-4, atol=1e-4)
    kmeans = other[-1] if model.metric == "cosine" else other
    assert kmeans.get_params()["n_clusters"] == 10
    assert (kmeans.inertia_, kmeans.n_iter_) == (model.inertia_, model.n_iter_)
    np.testing.assert_array_equal(kmeans.labels_, model.labels_)
    assert kmeans.cluster_centers_ is not model.cluster_centers_
    assert len(other.get_feature_names_out()) == 10
    other.fit(rows)  # as any KMeans


def test_names_of_features_go_along():
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    for options in ({}, {"metric": "cosine"}):
        model = fitted(frame, **options)
        other = model.to_sklearn()
        np.testing.assert_array_equal(other.predict(frame), model.predict(frame))
        with pytest.raises(ValueError, match="feature names"):
            other.predict(frame.rename(columns=str.upper))


# ---- the file format ----------------------------------------------------------------------------------------------


def format_page():
    """The names that the program of the page defines."""
    page = Path(__file__).parent.parent / "docs" / "file-format.md"
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S):
        exec(compile(code, page.name, "exec"), names)
    return names


@pytest.mark.parametrize("options", KINDS)
def test_numpy_alone_reads_a_model(tmp_path, options):
    page, model = format_page(), fitted(**options)
    model.save(tmp_path / "model.safetensors", labels=True)
    facts, arrays = page["read"](tmp_path / "model.safetensors")
    assert facts["class"] == "QKMeans"
    centers = page["centroids"](facts, arrays)
    np.testing.assert_allclose(centers, model.cluster_centers_, rtol=1e-5, atol=1e-6)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if facts["spherical"] else X
    np.testing.assert_array_equal(page["nearest"](rows, centers), model.predict(X, exact=True))
    np.testing.assert_array_equal(arrays["labels"], model.labels_)
    if model.product_ is not None:
        shapes = facts["factors_shapes"]
        assert shapes == [list(S.shape) for S in model.product_.factors]
        for q, S in enumerate(model.product_.factors):
            stored = page["factor"](arrays, f"factors.{q}", shapes[q])
            np.testing.assert_array_equal(stored, S.toarray() if hasattr(S, "toarray") else S)


def test_shapes_of_a_forged_file():
    state = fitted(shortlist=0, compression=4).to_state()
    state.facts["factors_shapes"][0][1] += 1
    with pytest.raises(quickmeans.InvalidModelError, match="factors_shapes must be"):
        decoded(container.encode(state))
    for wrong in (None, 3, "x", [[]]):
        state.facts["factors_shapes"] = wrong
        with pytest.raises(quickmeans.InvalidModelError, match="factors_shapes must be"):
            decoded(container.encode(state))
    del state.facts["factors_shapes"]  # as in files of earlier versions
    decoded(container.encode(state))
