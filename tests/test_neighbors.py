"""Nearest-neighbour search: against brute force, as scikit-learn has it, and on bad input."""

import os
import pickle
import sys

import faiss
import numpy as np
import pandas as pd
import pytest
from layouts import BITS, WHOLE, layouts, sparse_layouts, unusable
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.manifold import TSNE, Isomap
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import quickmeans
from quickmeans import InvalidModelError, QKMeans, QKNeighbors, QKNeighborsTransformer
from quickmeans.search.lists import list_sizes


def rows(n=2000, D=16, seed=1):
    rng = np.random.default_rng(seed)
    centers = 4 * np.random.default_rng(0).standard_normal((30, D))
    return (centers[rng.integers(30, size=n)] + rng.standard_normal((n, D))).astype(np.float32)


X, Q = rows(), rows(100, seed=2)


def index(**options):
    return QKNeighbors(**{"n_neighbors": 5, "n_lists": 40, "random_state": 0} | options)


def true_neighbors(X, Q, k, metric="euclidean"):
    """Distances (or products) and ids by the definition, in float64."""
    X, Q = X.astype(np.float64), Q.astype(np.float64)
    if metric == "euclidean":
        values = np.linalg.norm(Q[:, None] - X, axis=2)
    else:
        values = Q @ X.T
        if metric == "cosine":
            values = 1 - values / np.linalg.norm(Q, axis=1)[:, None] / np.linalg.norm(X, axis=1)
    order = np.argsort(-values if metric == "inner_product" else values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, order, 1), order


def recall(ids, true):
    return np.mean([len(np.intersect1d(a, b)) for a, b in zip(ids, true, strict=True)]) / true.shape[1]


@parametrize_with_checks([QKNeighbors(), QKNeighborsTransformer(), QKNeighborsTransformer(mode="connectivity")])
def test_estimator_checks(estimator, check):
    check(estimator)


# ---- answers -------------------------------------------------------------------------------------------------------


def test_by_hand():
    found = QKNeighbors(n_neighbors=2, n_lists=2, nprobe=2, random_state=0).fit([[0.0, 0], [0, 3], [9, 9], [9, 5]])
    distances, ids = found.kneighbors([[0, 1], [9, 8]])
    assert ids.tolist() == [[0, 1], [2, 3]]
    assert distances.tolist() == [[1, 2], [1, 3]]
    distances, ids = found.radius_neighbors([[0, 1], [4, 4]], radius=2.0, sort_results=True)
    assert [d.tolist() for d in distances] == [[1, 2], []]
    assert [i.tolist() for i in ids] == [[0, 1], []]


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine"])
@pytest.mark.parametrize("n_queries", [1, 7, 100])
def test_all_lists_give_all_neighbours(metric, n_queries):
    distances, true = true_neighbors(X, Q[:n_queries], 5, metric)
    model = index(metric=metric).fit(X)
    got, ids = model.kneighbors(Q[:n_queries], nprobe=40)
    np.testing.assert_allclose(got, distances, rtol=1e-5, atol=1e-6)
    assert recall(ids, true) == 1
    assert model.kneighbors(Q[:n_queries], nprobe=40, return_distance=False).tolist() == ids.tolist()
    assert (got.dtype, ids.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine"])
@pytest.mark.parametrize("nprobe", [1, 6])
def test_a_query_gets_the_same_bits_whatever_comes_with_it(metric, nprobe):
    model = index(metric=metric).fit(X)
    whole = model.kneighbors(Q, 7, nprobe=nprobe)
    for part in (slice(0, 1), slice(3, 5), slice(10, 40)):
        for expected, got in zip(whole, model.kneighbors(Q[part], 7, nprobe=nprobe), strict=True):
            np.testing.assert_array_equal(got, expected[part])


def test_a_row_is_its_own_neighbour_at_distance_zero():
    far = X + 1000  # where the products of large numbers would lose the digits
    distances, ids = index(nprobe=1).fit(far).kneighbors(far, 1)
    assert ids[:, 0].tolist() == list(range(len(X)))
    assert not distances.any()


def test_rows_much_closer_together_than_lists_are_wide():
    rng = np.random.default_rng(0)
    groups = np.repeat(rng.standard_normal((20, 16)), 200, axis=0)
    close = (groups + 1e-4 * rng.standard_normal(groups.shape)).astype(np.float32)
    model = QKNeighbors(5, n_lists=8, nprobe=2, random_state=0).fit(close)
    plain = model.as_faiss_ivf()
    distances, ids = model.kneighbors(close)
    assert (ids[:, 0] == np.arange(4000)).mean() > 0.99
    assert recall(ids, plain.search(close, 5)[1]) > 0.99
    assert np.abs(distances**2 - plain.search(close, 5)[0]).max() < 1e-9


def test_another_metric_in_a_second_fit():
    model = index().fit(X).set_params(metric="cosine").fit(X)
    assert model.kneighbors(Q)[1].tolist() == index(metric="cosine").fit(X).kneighbors(Q)[1].tolist()


def test_cosines_do_not_depend_on_lengths():
    model = index(metric="cosine").fit(X)
    expected = model.kneighbors(Q)[0]
    np.testing.assert_allclose(model.kneighbors(Q * np.float32(1e-22))[0], expected, atol=1e-6)


@pytest.mark.parametrize("payload", ["sq8", "pq4x4"])
def test_codes_of_rows_far_from_zero(payload):
    model = index(payload=payload).fit(X + 300)
    plain = model.as_faiss_ivf()
    plain.nprobe = 40
    expected = plain.search(X[:100] + 300, 5)[0]
    np.testing.assert_allclose(model.kneighbors(X[:100] + 300, nprobe=40)[0] ** 2, expected, rtol=1e-2, atol=0.05)


def test_probing_one_list_is_the_search_of_the_paper():
    model = index(nprobe=1, n_neighbors=1).fit(X)
    labels, own = model.quantizer_.predict(Q), model.quantizer_.predict(X)
    for i, (query, label) in enumerate(zip(Q, labels, strict=True)):
        members = np.flatnonzero(own == label)
        nearest = members[np.argmin(((X[members] - query) ** 2).sum(axis=1))]
        assert model.kneighbors(Q[i : i + 1], return_distance=False)[0, 0] == nearest


@pytest.mark.parametrize("target", [0.5, 0.9, 0.99])
def test_recall_is_what_was_asked_for(target):
    many, queries = rows(8000, 24), rows(400, 24, seed=3)
    model = QKNeighbors(10, recall=target, n_lists=200, random_state=0).fit(many)
    found = recall(model.kneighbors(queries, return_distance=False), true_neighbors(many, queries, 10)[1])
    assert target - 0.06 < found
    fewer = model.kneighbors(queries, return_distance=False, nprobe=max(1, model.nprobe_ // 3))
    assert recall(fewer, true_neighbors(many, queries, 10)[1]) <= found


@pytest.mark.parametrize(("payload", "least"), [("sq8", 0.9), ("pq8", 0.4), ("pq16x4", 0.4)])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine"])
def test_payloads(payload, least, metric):
    model = index(metric=metric, payload=payload).fit(X)
    distances, true = true_neighbors(X, Q, 5, metric)
    got, ids = model.kneighbors(Q, nprobe=40)
    assert recall(ids, true) > least
    assert np.median(np.abs(got - distances)) < 0.3 * np.abs(distances).mean()
    plain = model.as_faiss_ivf()
    faiss.extract_index_ivf(plain).nprobe = 40
    assert recall(ids, plain.search(Q, 5)[1]) > 0.99


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_the_exported_cosine_index_normalises_queries_and_rows(scale, tmp_path):
    model = index(metric="cosine").fit(X)
    plain = model.as_faiss_ivf()
    lists = faiss.extract_index_ivf(plain)
    assert lists.nprobe == model.nprobe_
    lists.nprobe = 40
    scores, ids = plain.search(Q * np.float32(scale), 5)
    distances, true = true_neighbors(X, Q, 5, "cosine")
    np.testing.assert_allclose(1 - scores, distances, atol=1e-6)
    assert recall(ids, true) == 1
    plain.add(Q[:1] * np.float32(scale))
    faiss.write_index(plain, str(tmp_path / "index"))
    again = faiss.read_index(str(tmp_path / "index"))
    assert again.search(Q[:1], 1)[0][0, 0] == pytest.approx(1, abs=1e-6)
    assert model.n_samples_fit_ == 2000


def test_radius_neighbours_are_those_within():
    model = index().fit(X)
    exact = NearestNeighbors(radius=4.0).fit(X).radius_neighbors(Q, sort_results=True)
    distances, ids = model.radius_neighbors(Q, 4.0, sort_results=True, nprobe=40)
    for i in range(len(Q)):
        assert set(ids[i]) == set(exact[1][i])
        np.testing.assert_allclose(distances[i], exact[0][i], rtol=1e-5)
        assert set(model.radius_neighbors(Q, 4.0, return_distance=False)[i]) <= set(exact[1][i])


def test_quantizers():
    fitted = QKMeans(30, random_state=0).fit(X)
    model = index(quantizer=fitted, n_lists="auto").fit(X)
    before = model.kneighbors(Q)[1].tolist()
    fitted.set_params(n_clusters=50).fit(X)
    assert model.kneighbors(Q)[1].tolist() == before
    paper = index(quantizer=QKMeans(30, shortlist=0, compression=4, random_state=0), n_lists="auto").fit(X)
    assert paper.quantizer_.n_clusters == 30
    assert recall(paper.kneighbors(Q, return_distance=False), true_neighbors(X, Q, 5)[1]) > 0.85


def test_same_result_for_any_number_of_threads():
    results = [index(n_threads=n).fit(X).kneighbors(Q) for n in (1, 2, 5)]
    for distances, ids in results[1:]:
        assert ids.tolist() == results[0][1].tolist()
        assert distances.tobytes() == results[0][0].tobytes()


# ---- rows come and go ----------------------------------------------------------------------------------------------


def test_add_and_remove():
    model = index().fit(X[:1500])
    assert model.add(X[1500:]).tolist() == list(range(1500, 2000))
    model.remove(np.arange(0, 2000, 2))
    assert model.n_samples_fit_ == 1000
    distances, true = true_neighbors(X[1::2], Q, 5)
    got, ids = model.kneighbors(Q, nprobe=40)
    np.testing.assert_allclose(got, distances, rtol=1e-5)
    assert ids.tolist() == (2 * true + 1).tolist()
    assert recall(model.kneighbors(Q, return_distance=False), 2 * true + 1) > 0.8


def test_unknown_ids_are_refused_and_nothing_is_lost():
    model = index().fit(X)
    model.remove(7)
    for ids, name in (
        ([5, 2000], "2000"),
        (np.array([2**63 + 5], np.uint64), str(2**63 + 5)),
        ([5, -1], "-1"),
        ([5, 7], "7"),
    ):
        with pytest.raises(ValueError, match=f"no row with id {name}"):
            model.remove(ids)
        assert model.n_samples_fit_ == 1999
    with pytest.raises(TypeError, match="whole numbers"):
        model.remove([1.5])
    model.remove([])
    assert model.kneighbors(X[5:6], 1)[1].tolist() == [[5]]


def test_no_row_and_one_row(tmp_path):
    model = QKNeighbors(1).fit(X[:1])
    assert model.kneighbors(Q)[1].tolist() == [[0]] * len(Q)
    model.remove([0])
    with pytest.raises(ValueError, match="n_neighbors must not exceed the rows of the index, 0, got 1"):
        model.kneighbors(Q)
    assert [len(ids) for ids in model.radius_neighbors(Q, 100.0, return_distance=False)] == [0] * len(Q)
    model.save(tmp_path / "index")
    again = quickmeans.load(tmp_path / "index")
    assert again.add(X[:3]).tolist() == [1, 2, 3]
    assert again.kneighbors(X[:3], 1)[1].tolist() == [[1], [2], [3]]


def test_enough_neighbours_from_short_lists():
    model = index(n_lists=500, nprobe=1).fit(X)
    ids = model.kneighbors(Q, 300, return_distance=False)
    assert (ids >= 0).all()
    assert all(len(set(row)) == 300 for row in ids)
    assert sorted(model.kneighbors(Q[:1], 2000, return_distance=False)[0]) == list(range(2000))


def test_duplicates():
    same = np.repeat(rows(20), 50, axis=0)
    model = index().fit(same)
    assert (list_sizes(model._index.lists) == 0).any()
    distances, ids = model.kneighbors(same[::50], 50)
    assert not distances.any()
    assert np.sort(ids, axis=1).tolist() == np.arange(1000).reshape(20, 50).tolist()


# ---- as scikit-learn has it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_the_graph_is_scikit_learns(mode):
    exact = KNeighborsTransformer(mode=mode, n_neighbors=4).fit(X).transform(Q)
    graph = QKNeighborsTransformer(mode=mode, n_neighbors=4, n_lists=40, nprobe=40).fit(X).transform(Q)
    assert graph.shape == exact.shape
    np.testing.assert_allclose(graph.toarray(), exact.toarray(), rtol=1e-5)


def test_in_front_of_other_estimators():
    digits, labels = load_digits(return_X_y=True)
    digits = digits[:600]
    graph = QKNeighborsTransformer(n_neighbors=10, random_state=0)
    classifier = make_pipeline(graph, KNeighborsClassifier(5, metric="precomputed")).fit(digits, labels[:600])
    assert classifier.score(digits, labels[:600]) > 0.97
    assert make_pipeline(graph, DBSCAN(eps=25, metric="precomputed")).fit_predict(digits).max() >= 5
    tsne = TSNE(metric="precomputed", init="random", perplexity=3, max_iter=250)
    assert make_pipeline(graph, tsne).fit_transform(digits).shape == (600, 2)
    many = QKNeighborsTransformer(n_neighbors=200, random_state=0)
    assert make_pipeline(many, Isomap(metric="precomputed", n_neighbors=200)).fit_transform(digits).shape == (600, 2)


def test_names_of_features():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(16)])
    model = index().fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.kneighbors(frame[frame.columns[::-1]])
    assert model.kneighbors(frame[:3], 1)[1].tolist() == [[0], [1], [2]]


LAYOUTS = [(rows, name, variant) for rows in (WHOLE, BITS) for name, variant in layouts(rows)]


@pytest.mark.parametrize(("rows", "name", "variant"), LAYOUTS, ids=[name for _, name, _ in LAYOUTS])
def test_layouts_and_types(rows, name, variant):
    """Whole numbers are exact in float32: every method gives the same bits, however its rows come."""
    model = QKNeighbors(3, n_lists=5, nprobe=2, random_state=0).fit(rows)
    other = QKNeighbors(3, n_lists=5, nprobe=2, random_state=0).fit(variant)
    for X in (variant, rows) if not hasattr(other, "feature_names_in_") else (variant,):
        for expected, got in zip(model.kneighbors(rows), other.kneighbors(X), strict=True):
            assert got.tobytes() == expected.tobytes()
        for expected, got in zip(model.radius_neighbors(rows, 5.0), other.radius_neighbors(X, 5.0), strict=True):
            assert [a.tolist() for a in got] == [a.tolist() for a in expected]
        assert (other.kneighbors_graph(X) != model.kneighbors_graph(rows)).nnz == 0
    assert other.add(variant).tolist() == list(range(len(rows), 2 * len(rows)))
    graph = QKNeighborsTransformer(n_neighbors=2, n_lists=5, random_state=0)
    assert (graph.fit_transform(variant) != graph.fit_transform(rows)).nnz == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [(bad, "dense data is required") for _, bad in sparse_layouts(WHOLE)]
    + [(bad, message) for _, bad, message in unusable(WHOLE)],
)
def test_what_is_no_dense_matrix_of_numbers(bad, message):
    model = index(n_lists=5).fit(WHOLE)
    for use in (index(n_lists=5).fit, model.kneighbors, model.radius_neighbors, model.kneighbors_graph, model.add):
        with pytest.raises((TypeError, ValueError), match=message):
            use(bad)
    assert model.n_samples_fit_ == len(WHOLE)


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", ">i2", "u4", "i8", ">i8", "u8"])
def test_ids_of_any_whole_type(dtype):
    model = index(n_lists=5).fit(WHOLE)
    model.remove(np.arange(9, dtype=dtype)[::-2])
    assert model.n_samples_fit_ == len(WHOLE) - 5


def test_pickle():
    model = index().fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert again.kneighbors(Q)[1].tolist() == model.kneighbors(Q)[1].tolist()


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", ["flat", "sq8", "pq8"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_save_and_load(payload, metric, tmp_path):
    model = index(payload=payload, metric=metric).fit(X)
    model.remove([3, 4])
    model.save(tmp_path / "index")
    again = quickmeans.load(tmp_path / "index")
    assert again.get_params() | {"quantizer": None} == model.get_params() | {"quantizer": None}
    for expected, got in zip(model.kneighbors(Q), again.kneighbors(Q), strict=True):
        assert got.tobytes() == expected.tobytes()
    assert again.add(X[3:4]).tolist() == [2000]
    assert again.kneighbors(X[3:4], 1, return_distance=False).tolist() == [[2000]]
    with pytest.raises(ValueError, match="no row with id 3"):
        again.remove([3])


def test_a_transformer_is_loaded_as_one(tmp_path):
    QKNeighborsTransformer(n_neighbors=3).fit(X).save(tmp_path / "index")
    assert quickmeans.load(tmp_path / "index").transform(Q).shape == (100, 2000)


def test_saving_over_an_index(tmp_path, monkeypatch):
    model = index().fit(X)
    model.save(tmp_path / "index")
    before = sorted(os.listdir(tmp_path))
    model.save(tmp_path / "index")
    assert sorted(os.listdir(tmp_path)) == before
    other = index(n_lists=10).fit(X[:500])
    with monkeypatch.context() as patch:
        patch.setattr("quickmeans.files.container.write", lambda *_: (_ for _ in ()).throw(OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            other.save(tmp_path / "index")
    assert sorted(os.listdir(tmp_path)) == before
    assert quickmeans.load(tmp_path / "index").n_samples_fit_ == 2000
    other.save(tmp_path / "index")
    assert len(os.listdir(tmp_path)) == 2
    assert quickmeans.load(tmp_path / "index").n_samples_fit_ == 500


def test_saving_over_a_copy_leaves_the_original(tmp_path):
    model = index().fit(X)
    model.save(tmp_path / "a")
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
    assert quickmeans.load(tmp_path / "b").n_samples_fit_ == 2000
    model.add(X[:5])
    model.save(tmp_path / "b")
    assert quickmeans.load(tmp_path / "a").n_samples_fit_ == 2000
    assert quickmeans.load(tmp_path / "b").n_samples_fit_ == 2005


def test_pairs_of_files_that_do_not_belong_together(tmp_path):
    index().fit(X).save(tmp_path / "a")
    index().fit(X[:500]).save(tmp_path / "b")
    lists_a, lists_b = sorted(path for path in tmp_path.iterdir() if path.suffix == ".lists")
    contents = lists_a.read_bytes()
    for bad in (lists_b.read_bytes(), contents[:-1], contents[:100], b"", contents[:-1] + b"x"):
        lists_a.write_bytes(bad)
        with pytest.raises(InvalidModelError, match="are damaged, or those of another index"):
            quickmeans.load(tmp_path / "a")
    lists_a.unlink()
    with pytest.raises(FileNotFoundError, match="keep the two files together"):
        quickmeans.load(tmp_path / "a")
    head = (tmp_path / "b").read_bytes()
    for bad in (head[:-1], head[:50], head.replace(b"euclidean", b"euclidian")):
        (tmp_path / "b").write_bytes(bad)
        with pytest.raises(InvalidModelError):
            quickmeans.load(tmp_path / "b")


def test_a_renamed_pair_is_found(tmp_path):
    index().fit(X).save(tmp_path / "a")
    for path in list(tmp_path.iterdir()):
        path.rename(tmp_path / path.name.replace("a", "b", 1))
    assert quickmeans.load(tmp_path / "b").n_samples_fit_ == 2000


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number not below 1"),
        ({"metric": "manhattan"}, "metric must be one of 'euclidean', 'inner_product', 'cosine'"),
        ({"n_lists": 3000}, "n_lists=3000 must not be larger than the number of rows, 2000"),
        ({"n_lists": 0}, "n_lists must be a whole number not below 1 or 'auto'"),
        ({"nprobe": 41}, "nprobe must be between 1 and the number of lists, 40, got 41"),
        ({"nprobe": "all"}, "nprobe must be a whole number"),
        ({"recall": 0}, "recall must be above 0 and not above 1"),
        ({"radius": None}, "radius must be a number"),
        ({"payload": "zip"}, "payload must be 'flat', 'sq8', or 'pq'"),
        ({"payload": "pq5"}, "must cut 16 features into equal parts"),
        ({"payload": "pq4x20"}, "of 1 to 12 bits"),
        ({"payload": "pq4x12"}, "needs at least as many rows"),
        ({"quantizer": QKMeans(5), "n_lists": 6}, "must be the quantizer's n_clusters, 5"),
        ({"quantizer": QKMeans(40), "metric": "cosine"}, "must have metric='cosine'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        index(**options).fit(X)


def test_a_quantizer_fitted_to_other_features():
    quantizer = QKMeans(40).fit(rows(100, 8))  # not a parameter of the test: pytest would keep it to the very end
    with pytest.raises(ValueError, match="fitted to 8 features, X has 16"):
        index(quantizer=quantizer).fit(X)


def test_a_quantizer_of_another_kind():
    with pytest.raises(TypeError, match="quantizer must be a QKMeans"):
        index(quantizer=NearestNeighbors()).fit(X)


def test_bad_queries():
    model = index().fit(X)
    with pytest.raises(ValueError, match="expecting 16 features"):
        model.kneighbors(Q[:, :8])
    with pytest.raises(ValueError, match=r"must not exceed the rows of the index, 2000, got 2001"):
        model.kneighbors(Q, 2001)
    with pytest.raises(ValueError, match="nprobe must be between 1 and the number of lists, 40, got 50"):
        model.kneighbors(Q, nprobe=50)
    with pytest.raises(ValueError, match="radius must not be negative"):
        model.radius_neighbors(Q, -1)
    with pytest.raises(ValueError, match="mode must be 'connectivity' or 'distance'"):
        model.kneighbors_graph(Q, mode="weights")
    for bad in (np.nan, np.inf, 1e30, 1.5e19):
        spoiled = Q.copy()
        spoiled[60, 3] = bad
        for use in (model.kneighbors, model.add, model.radius_neighbors):
            with pytest.raises(ValueError, match="in row 60"):
                use(spoiled)
    assert model.n_samples_fit_ == 2000
    with pytest.raises(NotFittedError):
        index().kneighbors(Q)


def test_zero_rows():
    zeros = X.copy()
    zeros[5] = 0
    with pytest.raises(ValueError, match="Row 5 of X is zero, and has no cosine"):
        index(metric="cosine").fit(zeros)
    model = index(metric="inner_product").fit(zeros)
    assert model.kneighbors(np.zeros((1, 16), np.float32))[0].tolist() == [[0.0] * 5]
    assert 5 in model.kneighbors(-X[:1], 2000, return_distance=False)
    with pytest.raises(ValueError, match="Inner products are no distances"):
        QKNeighborsTransformer(metric="inner_product").fit(X)


def test_without_faiss(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'quickmeans\[search\]'"):
        index().fit(X)


def test_a_failed_fit_leaves_the_earlier_one():
    model = index().fit(X)
    with pytest.raises(ValueError, match="in row 0"):
        model.fit(np.full((50, 8), np.nan))
    assert model.kneighbors(Q, 1)[1].shape == (100, 1)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_centroids_are_fitted_to_a_sample(metric):
    model = index(metric=metric, n_train=500, recall=0.9, nprobe="auto").fit(X)
    assert model.n_train_ == 500
    assert model.recall_ >= 0.9
    assert model.n_samples_fit_ == 2000
    expected = true_neighbors(X, Q, 5, metric)[1]
    assert recall(model.kneighbors(Q, 5, return_distance=False, nprobe=40), expected) == 1
    assert index(n_train=10**6, nprobe=3).fit(X).n_train_ == 2000
    with pytest.raises(ValueError, match="n_train=39 must not be below the number of lists, 40"):
        index(n_train=39).fit(X)
