"""Every recipe of docs/recipes.md runs on small files, and its results are right."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import done
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import quickmeans

PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
TOPICS = np.arange(600) % 20
rng = np.random.default_rng(0)
DIRECTIONS = rng.standard_normal((20, 32))
EMBEDDINGS = ((DIRECTIONS[TOPICS] + 0.2 * rng.standard_normal((600, 32))) * rng.uniform(1, 9, (600, 1))).astype("f4")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def recipe(title):
    """Run the Python of a section and return its names; the commands of the section run too."""
    names = {}
    for code in re.findall(r"```python\n(.*?)```", SECTIONS[title], re.S):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, title, "exec"), names)
    return names


def commands(title):
    for block in re.findall(r"```\n(quickmeans .*?)```", SECTIONS[title], re.S):
        for line in block.splitlines():
            done(*shlex.split(line)[1:], "--force")


def test_a_text_corpus():
    title = "A text corpus: from embeddings to a labelled table"
    titles = [f"topic {topic}, article {i}" for i, topic in enumerate(TOPICS)]
    pq.write_table(
        pa.table({"id": np.arange(600) + 5, "title": titles, "embedding": list(EMBEDDINGS)}), "articles.parquet"
    )
    names = recipe(title)
    table = pq.read_table("labelled.parquet")
    assert table.column_names == ["id", "title", "cluster"]
    assert adjusted_rand_score(TOPICS, table["cluster"].to_numpy()) == 1
    page = Path("articles.html").read_text("utf-8")
    assert all(f"topic {topic}, article" in page for topic in range(20))
    np.testing.assert_array_equal(quickmeans.load("articles.safetensors").predict(EMBEDDINGS), names["model"].labels_)
    commands(title)
    labels = pq.read_table("labels.parquet")
    assert labels.column_names == ["id", "title", "label", "distance"]
    assert adjusted_rand_score(TOPICS, labels["label"].to_numpy()) == 1
    assert "topic 7, article" in Path("articles.html").read_text("utf-8")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_in_three_commands(ending):
    page = (Path(__file__).parent.parent / "docs" / "getting-started.md").read_text("utf-8")
    block = re.search(r"## A table with ids and texts.*?```\n(.*?)```", page, re.S)[1]
    topics = TOPICS % 12
    frame = pd.DataFrame(5 * DIRECTIONS[topics] + rng.standard_normal((600, 32)), columns=[f"e{i}" for i in range(32)])
    frame.insert(0, "id", np.arange(600) + 5)
    frame.insert(1, "title", [f"topic {topic}, article {i}" for i, topic in enumerate(topics)])
    getattr(frame, f"to_{ending}")(f"articles.{ending}", index=False)
    for line in block.replace("articles.parquet", f"articles.{ending}").splitlines():
        done(*shlex.split(line)[1:])
    labelled = pd.read_parquet("labelled.parquet")
    assert labelled.columns.tolist() == ["id", "title", "label", "distance"]
    assert adjusted_rand_score(topics, labelled["label"]) == 1
    html = Path("articles.html").read_text("utf-8")
    assert all(f"topic {topic}, article" in html for topic in range(12))


def test_images():
    digits = load_digits()
    np.save("images.npy", digits.images.astype(np.uint8))
    names = recipe("Images")
    assert 'alt="Centroid' in Path("images.html").read_text("utf-8")
    X, model = digits.data, names["model"]
    for k, row in enumerate(names["typical"]):
        assert ((X - model.cluster_centers_[k]) ** 2).sum(axis=1).argmin() == row
    assert len(set(names["strange"])) == 10


def test_an_index():
    title = "An index of vectors, for this library and for faiss"
    pq.write_table(pa.table({"key": [f"v{i}" for i in range(600)], "vector": list(EMBEDDINGS)}), "vectors.parquet")
    names = recipe(title)
    assert names["found"][:, 0].tolist() == ["v0", "v1", "v2"]
    assert names["index"].recall_ >= 0.95
    assert names["index"].n_samples_fit_ == 600
    copy = faiss.read_index("vectors.faiss")
    cosines, rows = copy.search(7 * EMBEDDINGS[1:2], 1)
    assert rows[0, 0] == 1
    assert cosines[0, 0] == pytest.approx(1)
    np.save("queries.npy", EMBEDDINGS[:4])
    commands(title)
    assert np.load("neighbours.npz")["ids"][:, 0].tolist() == ["v0", "v1", "v2", "v3"]


def test_pandas_in_chunks():
    kinds = rng.integers(5, size=2500)
    values = 10 * rng.standard_normal((5, 3))[kinds] + rng.standard_normal((2500, 3)) / 10
    frame = pd.DataFrame(values, columns=["temperature", "pressure", "humidity"])
    frame.insert(0, "station", [f"s{i}" for i in range(2500)])
    frame.to_csv("measurements.csv", index=False)
    recipe("pandas, chunk by chunk")
    labelled = pd.read_csv("labelled.csv")
    assert labelled["station"].tolist() == frame["station"].tolist()
    assert adjusted_rand_score(kinds, labelled["cluster"]) == 1


def test_another_program():
    names = recipe("Clusters in another program")
    expected = names["model"].predict(names["X"][:5], exact=True)
    np.testing.assert_array_equal(names["labels"], expected)
    np.testing.assert_array_equal(names["kmeans"].predict(names["X"][:5]), expected)


def test_every_recipe_is_tested():
    tested = (Path(__file__)).read_text("utf-8")
    assert all(f'"{title}"' in tested for title in SECTIONS)
