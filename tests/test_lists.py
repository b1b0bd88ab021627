"""Columns of lists, such as embeddings, in memory: of pandas, polars and pyarrow."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quickmeans import QKMeans
from quickmeans.data import open_rows
from quickmeans.data.reading import Note

X = np.random.default_rng(0).standard_normal((40, 3))
SERIES = pl.Series("v", X.tolist())
FIXED = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
COLUMNS = {
    "pandas, lists": pd.Series(X.tolist()),
    "pandas, arrays": pd.Series(list(X)),
    "pandas, frame": pd.DataFrame({"v": list(X)}),
    "pandas, float32": pd.Series(list(X.astype(np.float32))),
    "polars, lists": SERIES,
    "polars, arrays": SERIES.cast(pl.Array(pl.Float64, 3)),
    "polars, frame": SERIES.to_frame(),
    "polars, frame of arrays": SERIES.cast(pl.Array(pl.Float64, 3)).to_frame(),
    "pyarrow, lists": pa.chunked_array([pa.array(X[:7].tolist()), pa.array(X[7:].tolist())]),
    "pyarrow, arrays": pa.chunked_array([FIXED]),
    "pyarrow, table": pa.table({"v": FIXED}),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_lists_are_rows(name):
    expected = QKMeans(4, random_state=0).fit(X)
    model = QKMeans(4, random_state=0).fit(COLUMNS[name])
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(COLUMNS[name]), expected.labels_)


def test_a_table_with_lists_and_text():
    table = pa.table({"id": range(40), "v": FIXED, "t": ["x"] * 40})
    with pytest.warns(Note, match="because the lists in 'v' are the rows: 'id', 't'"):
        rows = open_rows(table)
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), X)
    assert QKMeans(4, random_state=0).fit(table.select(["v"])).n_features_in_ == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (pd.Series([[1.0, 2], [3]]), "X has lists of 1 and of 2 numbers; all must have the same length"),
        (pa.chunked_array([[[1.0, 2], [3]]]), "X has lists of 1 and of 2 numbers; all must have the same length"),
        (pa.chunked_array([[[1.0, 2], None]]), "X has 1 empty values; every value must be a list of numbers"),
        (pd.Series([[1.0, 2], None]), "X has values that are no lists; every value must be a list"),
    ],
)
def test_wrong_lists(wrong, message):
    with pytest.raises(ValueError, match=message):
        QKMeans(1).fit(wrong)
