"""Every public way into QKMeans takes rows of every layout and type: equal results, or one clear sentence."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from layouts import BITS, WHOLE, layouts, sparse_layouts, unusable

from quickmeans import QKMeans, open_rows

METHODS = {
    "fit": lambda model, X: model.fit(X).labels_,
    "fit_predict": lambda model, X: model.fit_predict(X),
    "partial_fit": lambda model, X: model.partial_fit(X).labels_,
    "predict": lambda model, X: model.predict(X),
    "predict exact": lambda model, X: model.predict(X, exact=True),
    "transform": lambda model, X: model.transform(X),
    "score": lambda model, X: model.score(X),
    "assign": lambda model, X: np.concatenate([squares for _, _, squares in model.assign(X)]),
}
FITS = {"fit", "fit_predict", "partial_fit"}


def result_of(method, X, fitted):
    """The result of a method: of a new model, or of one that is fitted to an array."""
    # Frames have names of features, which a model that was fitted to an array warns of.
    model = QKMeans(6, init=fitted.cluster_centers_, max_iter=3) if method in FITS else fitted
    return np.asarray(METHODS[method](model, X), np.float64)


@pytest.fixture(scope="module", params=[WHOLE, BITS], ids=["whole", "bits"])
def rows(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(rows):
    return QKMeans(6, random_state=0).fit(rows)


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("method", METHODS)
def test_dense_layouts(rows, fitted, method):
    expected = result_of(method, rows, fitted)
    for name, variant in layouts(rows):
        result = result_of(method, variant, fitted)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=f"{method}: {name}")


@pytest.mark.parametrize("method", METHODS)
def test_sparse_layouts(rows, fitted, method):
    expected = result_of(method, rows, fitted)
    for name, variant in sparse_layouts(rows):
        result = result_of(method, variant, fitted)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=f"{method}: {name}")


@pytest.mark.parametrize("method", METHODS)
def test_what_is_no_matrix_of_numbers_is_refused_in_a_sentence(rows, fitted, method):
    for name, variant, words in unusable(rows):
        with pytest.raises((ValueError, TypeError), match=words) as error:
            result_of(method, variant, fitted)
        assert "incompatible function arguments" not in str(error.value), name


def dask_layouts(X):
    yield "C order", da.from_array(X, chunks=(30, -1))
    yield "split columns", da.from_array(X, chunks=(30, 3))
    yield "Fortran order", da.from_array(np.asfortranarray(X), chunks=(30, -1))
    yield "reversed", da.from_array(X[::-1].copy(), chunks=(30, -1))[::-1]
    for dtype in ("f4", ">f8", ">f4", "i8", "u1", "f2"):
        yield dtype, da.from_array(X.astype(dtype), chunks=(30, -1))
    yield "unknown chunks", da.from_array(X, chunks=(30, -1))[da.from_array(np.ones(len(X), bool), chunks=30)]
    yield "data frame", dd.from_pandas(pd.DataFrame(X), npartitions=3)


@pytest.mark.filterwarnings("ignore:X has feature names", "ignore::DeprecationWarning")
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"partial_fit"}))
def test_dask_layouts(rows, fitted, method):
    expected = result_of(method, rows, fitted)
    for name, variant in dask_layouts(rows):
        result = result_of(method, variant, fitted)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=f"{method}: {name}")


@pytest.mark.parametrize("method", METHODS)
def test_files_and_functions(rows, fitted, method, tmp_path):
    expected = result_of(method, rows, fitted)
    for name, variant in layouts(rows):
        if isinstance(variant, np.ndarray) and variant.dtype.kind in "fiu" and variant.dtype.itemsize <= 8:
            file = tmp_path / "rows.npy"
            np.save(file, variant)
            chunks = [variant[:40], variant[40:]]
            for source in (file, open_rows(file), lambda chunks=chunks: chunks):
                result = result_of(method, source, fitted)
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=f"{method}: {name}")


@pytest.mark.parametrize("kind", ["reversed", "big-endian", "list", "series", "integers", "float32", "column"])
def test_weights_of_every_layout(rows, fitted, kind):
    weights = np.arange(1.0, len(rows) + 1)
    variants = {
        "reversed": weights[::-1].copy()[::-1],
        "big-endian": weights.astype(">f8"),
        "list": weights.tolist(),
        "series": pd.Series(weights),
        "integers": weights.astype(np.int32),
        "float32": weights.astype(np.float32),
    }
    options = {"n_clusters": 6, "init": fitted.cluster_centers_, "max_iter": 2}
    if kind == "column":
        with pytest.raises(ValueError, match="sample_weight must have shape"):
            QKMeans(**options).fit(rows, sample_weight=weights[:, None])
        return
    expected = QKMeans(**options).fit(rows, sample_weight=weights)
    model = QKMeans(**options).fit(rows, sample_weight=variants[kind])
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert model.score(rows, sample_weight=variants[kind]) == expected.score(rows, sample_weight=weights)
