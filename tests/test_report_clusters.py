"""What the report says of clusters: a table with typical rows, names, a speed that can be trusted; in notebooks too."""

import io
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from commands import done, refused, run
from PIL import Image
from sklearn.datasets import make_blobs

import quickmeans.data
from quickmeans import QKMeans, progress
from quickmeans.cli.terminal import sparkline
from quickmeans.report import Report, cost, make_report, write_report
from quickmeans.report.cost import Cost, speed_range
from quickmeans.report.curves import objective_curve
from quickmeans.report.page import _speed_verdict
from quickmeans.report.survey import survey_rows

X, KIND = make_blobs(600, 16, centers=6, random_state=0)
X = X.astype(np.float32)
TEXT = np.array([f"<kind {kind}> number {i}" for i, kind in enumerate(KIND)], object)


@pytest.fixture(scope="module")
def model():
    return QKMeans(6, random_state=0).fit(X)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(cost, "_ROUND", 1e-3)


def png(value):
    file = io.BytesIO()
    Image.fromarray(np.full((3, 4), value, np.uint8)).save(file, "png")
    return file.getvalue()


def rows_of_table(html):
    """The cells of the table of clusters, without tags."""
    table = re.search(r'<table class="clusters">.*?</table>', html, re.S)[0]
    lines = re.findall(r"<tr>(.*?)</tr>", table)
    return [
        [re.sub(r"<[^>]*>", " ", cell).split() for cell in re.findall(r"<t[hd].*?</t[hd]>", line)] for line in lines
    ]


# ---- the survey -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_parts", [1, 5, 600])
def test_examples_are_the_nearest_rows(model, n_parts):
    survey = survey_rows(model, lambda: iter(np.array_split(X, n_parts)))
    distances = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
    for k in range(6):
        members = np.flatnonzero(model.labels_ == k)
        assert survey.examples[k].tolist() == members[np.argsort(distances[members])][:4].tolist()
        assert survey.spread[k] == pytest.approx(np.sqrt((distances[members] ** 2).mean()), rel=1e-5)
    assert survey.objective == pytest.approx(model.inertia_, rel=1e-5)


def test_a_cluster_with_few_rows_has_few_examples():
    survey = survey_rows(QKMeans(2, random_state=0).fit([[0.0], [1], [9]]), np.array([[0.0], [1], [9]]))
    assert sorted(survey.examples.tolist()) in ([[0, 1, -1, -1], [2, -1, -1, -1]], [[1, 0, -1, -1], [2, -1, -1, -1]])


# ---- the table ------------------------------------------------------------------------------------------------------


def test_the_table(model):
    lines = rows_of_table(make_report(model, X).html)
    assert lines[0] == [["cluster"], ["rows"], ["share"], ["spread"], ["nearest", "rows"]]
    survey = survey_rows(model, X)
    for line in lines[1:]:
        k = int(line[0][0])
        assert int(line[1][0]) == survey.sizes[k]
        assert float(line[3][0]) == pytest.approx(survey.spread[k], rel=1e-3)
        assert line[4] == [word for row in survey.examples[k] for word in ("row", str(row))]
    assert [int(line[1][0]) for line in lines[1:]] == sorted(survey.sizes, reverse=True)
    assert len(rows_of_table(make_report(model).html)[0]) == 3  # without rows: sizes of the fit


def check_texts(html, model):
    for line in rows_of_table(html)[1:]:
        kind = np.bincount(KIND[model.labels_ == int(line[0][0])]).argmax()
        assert " ".join(line[4]).count(f"&lt;kind {kind}&gt;") == 4
    names = re.findall(r"<li><span>(.*?)</span><b>(\d+)</b></li>", html)  # of the heat map
    assert len(names) == 6
    for name, k in names:
        assert name.startswith(f"&lt;kind {np.bincount(KIND[model.labels_ == int(k)]).argmax()}&gt;")


def test_texts(model, tmp_path):
    for text in (TEXT, list(TEXT), pd.Series(TEXT, index=np.arange(600)[::-1])):
        check_texts(make_report(model, X, text=text).html, model)
    table = pa.table({"title": TEXT.tolist(), "e": list(X), "image": [png(k) for k in KIND]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    source = quickmeans.data.open_rows(tmp_path / "rows.parquet", columns=["e"])
    write_report(model, tmp_path / "page.html", source, text="title", images="image")
    html = (tmp_path / "page.html").read_text("utf-8")
    check_texts(html, model)
    assert html.count('<img src="data:image/png;base64,') == 24
    long = make_report(model, X, text=["word " * 200] * 600).html
    assert "word word…" in long.replace(" …", "…")


def test_images(model):
    encoded = [png(kind) for kind in KIND]
    pixels = [np.full((3, 4, 3), kind, np.uint8) for kind in KIND]
    for images in (encoded, pixels, [{"bytes": data, "path": None} for data in encoded]):
        html = make_report(model, X, images=images).html
        assert html.count('<img src="data:image/png;base64,') == 24
    drawn = make_report(model, X, image_shape=(4, 4)).html
    assert drawn.count('<img src="data:image/png;base64,') == 24
    for images, message in (
        ([b"GIF9"] * 600, "is not a PNG"),
        ([b"\x89PNG" + b"0" * 400_000] * 600, "has 400004 bytes"),
        ([None] * 600, "must be the bytes of a file"),
        ([np.zeros((3, 4))] * 600, "pixels in uint8"),
    ):
        with pytest.raises(ValueError, match=message):
            make_report(model, X, images=images)


def test_columns_that_there_are_not(model, here):
    pyarrow.parquet.write_table(pa.table({"title": TEXT.tolist(), "e": list(X)}), "rows.parquet")
    model.save("model")
    command = ("report", "model", "rows.parquet", "--columns", "e", "-o", "page.html")
    refused(run(*command, "--text", "tilte"), "no column 'tilte'; did you mean 'title'?")
    refused(run(*command, "--images", "photographs"), "no column 'photographs'; it has 'title', 'e'.")
    done(*command, "--text", "title")
    np.save("rows.npy", X)
    refused(run("report", "model", "rows.npy", "-o", "a.html", "--text", "title"), "rows.npy is not a table")
    with pytest.raises(ValueError, match="text must have one value for each of the 600 rows, got 599"):
        make_report(model, X, text=TEXT[1:])
    with pytest.raises(ValueError, match="names a column of a file, but rows is not one"):
        make_report(model, X, text="title")
    with pytest.raises(ValueError, match="rows must be given too"):
        make_report(model, text=TEXT)


def test_embeddings_are_not_drawn_as_pictures(model):
    html = make_report(model, X).html  # 16 features: a square
    assert "Heat map" in html
    assert "Centroid 0" not in html


# ---- speed ----------------------------------------------------------------------------------------------------------


def test_the_range_of_a_speed():
    ours, dense = [9.0, 1, 1, 1, 1, 1, 1], [1.0, 2, 3, 4, 5, 6, 50]
    assert speed_range(ours, dense) == (3, 4.5, 6)  # without the first call and one outlier on either side
    assert speed_range([1.0], [2.0]) == (2, 2, 2)


def claimed(speed):
    return _speed_verdict(Cost((1, 1), (1, 1), (1, 1), speed, 1, 1, None))


def test_the_map_of_directions_has_rows_on_their_clusters():
    """Rows are drawn as they are compared: divided by their lengths."""
    rng = np.random.default_rng(0)
    rows = (np.eye(6)[KIND] + 0.05 * rng.standard_normal((600, 6))) * rng.uniform(3, 9, (600, 1))
    html = make_report(QKMeans(6, metric="cosine", random_state=0).fit(rows), rows).html
    circles = np.array(re.findall(r'class="cluster" cx="([\d.]+)" cy="([\d.]+)"', html), float)
    dots = np.array(re.findall(r"M([\d.]+) ([\d.]+)h0", html), float)
    assert len(circles) == 6
    gaps = np.linalg.norm(dots[:, None] - circles, axis=2).min(axis=1)
    assert np.median(gaps) < 0.05 * np.ptp(circles[:, 0])


def test_standardized_rows_get_the_labels_of_the_model():
    units = X * np.r_[1e4, np.ones(15, np.float32)].astype(np.float32)
    model = QKMeans(6, standardize=True, random_state=0).fit(units)
    assert cost.measure(model, survey_rows(model, units).sample).agreement == 1


def test_a_flat_objective_has_no_empty_axis():
    picture, note = objective_curve(np.array([5.0, 5.0]), 1)
    assert "-0" not in "".join(re.findall(r">([^<]*%)<", picture))
    assert "lower" not in note
    assert "50 % lower than at first" in objective_curve(np.array([10.0, 5.0]), 1)[1]


def test_nothing_is_claimed_within_noise():
    assert claimed((0.93, 1.2, 1.4)) == "<span>no clear difference: 0.93 to 1.40&times;</span>"
    assert claimed((2.0, 2.5, 3.1)) == "<b>2.5&times; faster (2 to 3.1)</b>"
    assert claimed((0.5, 0.8, 0.9)) == "<span>1.25&times; slower (1.11 to 2.00)</span>"


def test_the_headline_is_what_was_measured(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((2000, 64)).astype(np.float32)
    model = QKMeans(50, shortlist=0, compression=8, max_iter=2, random_state=0).fit(rows)
    for times, shown in (((1.0, 2.0), True), ((1.0, 1.0), False)):
        monkeypatch.setattr(
            cost, "by_turns", lambda calls, *_, t=times: dict(zip(calls, ([s] * 9 for s in t), strict=True))
        )
        html = make_report(model, rows).html
        assert ("the speed of dense centroids" in html) is shown


def test_bars_begin_at_zero():
    nearly = sparkline([100, 99, 98, 97])
    assert len(set(nearly)) == 1  # no cliff
    assert sparkline([8, 4, 0])[-1] in "▁_"
    assert sparkline([]) == ""
    assert set(sparkline([0, 0])) <= set("▁_")


# ---- notebooks ------------------------------------------------------------------------------------------------------


def test_a_notebook_shows_the_page(model, tmp_path):
    report = make_report(model, X, title='A "title" & more')
    assert isinstance(report, Report)
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("<") == 2  # the page is one attribute
    assert '"title"' not in shown
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == report.html


def test_the_bar_of_scikit_learn(capsys):
    """Its callbacks draw bars in terminals and notebooks."""
    callback = pytest.importorskip("sklearn.callback")
    QKMeans(6, random_state=0, max_iter=3).set_callbacks(callback.ProgressBar()).fit(X)
    assert "QKMeans" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("jupyter", "widgets", "bar"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_progress_in_a_notebook(monkeypatch, capsys, jupyter, widgets, bar):
    """A bar where it can be drawn, else lines."""
    started = []

    class Bar:
        def __init__(self, *_, **__): ...
        def start(self):
            started.append(self)

        def add_task(self, *_, **__): ...
        def update(self, *_, **__): ...
        def print(self, *_): ...
        def stop(self): ...

    monkeypatch.setattr(progress, "Progress", Bar)
    monkeypatch.setattr(progress, "is_notebook", lambda: jupyter)
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if widgets else None)
    QKMeans(6, random_state=0, verbose=1, max_iter=3).fit(X)
    assert bool(started) is bar
    assert ("Iteration 1: objective" in capsys.readouterr().out) is not bar
