"""Rows of few bytes per number stay as they are; blocks of them are widened."""

import tracemalloc

import numpy as np
import pytest

from quickmeans import QKMeans
from quickmeans.kmeans import start

ml_dtypes = pytest.importorskip("ml_dtypes")
TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8, "uint8": np.uint8}


def rows(n, D, dtype):
    rng = np.random.default_rng(0)
    middles = rng.integers(20, 100, (12, D))
    return (middles[rng.integers(12, size=n)] + rng.integers(-9, 9, (n, D))).astype(dtype)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("options", [{}, {"batch_size": 100}, {"metric": "cosine"}, {"shortlist": 0, "compression": 2}])
@pytest.mark.parametrize("whole_entries", [0, start._WHOLE_ENTRIES])
def test_as_in_float32(name, options, whole_entries, monkeypatch):
    monkeypatch.setattr(start, "_WHOLE_ENTRIES", whole_entries)
    X, weights = rows(600, 10, TYPES[name]), np.linspace(0, 2, 600)
    wide = X.astype(np.float32)
    model, expected = (
        QKMeans(12, random_state=0, max_iter=5, **options).fit(rows, sample_weight=weights) for rows in (X, wide)
    )
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-5)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(wide))
    np.testing.assert_allclose(model.transform(X), expected.transform(wide), rtol=1e-4, atol=1e-3)
    assert model.score(X) == pytest.approx(expected.score(wide), rel=1e-5)


@pytest.mark.parametrize("name", TYPES)
def test_there_is_no_copy_of_all_rows(name, monkeypatch):
    monkeypatch.setattr(start, "_WHOLE_ENTRIES", 0)
    monkeypatch.setattr(start, "_SAMPLE_ENTRIES", 1 << 18)
    X = rows(100_000, 128, TYPES[name])
    tracemalloc.start()
    try:
        model = QKMeans(6, random_state=0, max_iter=2).fit(X)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 4 * X.size


def test_bad_rows_of_bfloat16():
    X = rows(50, 4, ml_dtypes.bfloat16)
    model = QKMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 3 columns, but the model was fitted to 4"):
        model.predict(X[:, :3])
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN \(row 7, column 2\)"):
        model.fit(X)
