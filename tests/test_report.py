"""The report page: its statements are true, and a browser shows it."""

import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs

import quickmeans
from quickmeans import QKMeans
from quickmeans.cli.demo import Measured, verdict
from quickmeans.cli.main import program
from quickmeans.report import write_report
from quickmeans.report.centroids import check_image_shape
from quickmeans.report.cost import measure
from quickmeans.report.factors import density
from quickmeans.report.page import is_report
from quickmeans.report.patches import patches
from quickmeans.report.png import encode, shrunk, tinted
from quickmeans.report.survey import survey_rows
from quickmeans.report.svg import number, short, ticks

VOID = {"meta", "link", "img", "br", "circle", "line", "rect", "polyline", "path", "image"}
FIGURES = ["centroids", "clusters", "map", "time", "sizes", "objective", "result", "factors", "parameters"]


@pytest.fixture(scope="module")
def digits():
    return load_digits().data.astype(np.float32)


@pytest.fixture(scope="module")
def exact(digits):
    return QKMeans(40, compression=8, max_iter=10, random_state=0).fit(digits)


@pytest.fixture(scope="module")
def small(digits):
    return QKMeans(40, shortlist=0, compression=8, max_iter=5, random_state=0).fit(digits)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("quickmeans.report.cost._ROUND", 1e-3)  # seconds of a round: these tests need no right times


# ---- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [(), (3,), (4,)])
def test_a_picture_is_what_was_drawn(depth, rng):
    pixels = rng.integers(256, size=(5, 7, *depth), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encode(pixels)))), pixels)


def test_tints_suit_any_background():
    pixels = tinted(np.array([[0.0, 1, -1, -7]]))
    assert pixels[0, :, 3].tolist() == [0, 255, 255, 255]
    assert (pixels[0, 1, :3] != pixels[0, 2, :3]).any()
    assert (pixels[0, 2] == pixels[0, 3]).all()


def test_shrinking_takes_means():
    np.testing.assert_allclose(shrunk(np.array([[1.0, 3, 5, 7, 10]]), 2, 1), [[2, 22 / 3]])
    np.testing.assert_allclose(shrunk(np.eye(3), 3, 0), np.eye(3))


def test_density_of_a_matrix(rng):
    S = sp.csr_array(np.array([[1.0, 0], [0, 2]]))
    np.testing.assert_array_equal(density(S), np.eye(2))
    large = rng.random((450, 1000)) < 0.01
    large[:, :100] = True
    shares = density(sp.csr_array(large))
    np.testing.assert_array_equal(density(large), shares)
    assert shares.shape == (200, 200)
    assert (shares[:, :20] == 1).all()
    assert shares[:, 20:].mean() == pytest.approx(0.01, rel=0.2)


def test_ticks_are_round_and_inside():
    assert ticks(0, 10, 5) == [0, 2, 4, 6, 8, 10]
    assert ticks(3, 3, 5) == [3]
    np.testing.assert_allclose(ticks(-0.013, 0.31, 4), [0, 0.1, 0.2, 0.3])
    for low, high in ((0.0, 842.0), (1e9, 1.0001e9), (-5.0, 5e-3)):
        values = ticks(low, high, 5)
        assert 2 <= len(values) <= 6
        assert low - 1e-6 * abs(low) <= values[0] < values[-1] <= high * (1 + 1e-6)


def test_numbers_for_people():
    assert [short(v) for v in (0, 0.5, 999, 1500, 2e6, 3e12)] == ["0", "0.5", "999", "1.5k", "2M", "3e+12"]
    assert [number(v) for v in (0, 16.5, 52577.2)] == ["0", "16.5", "52,577"]
    assert re.fullmatch(r"1\.20\W+10<sup>11</sup>", number(1.199e11))


def test_image_shapes():
    assert check_image_shape(None, 64) is check_image_shape(None, 256) is None  # embeddings are no images
    assert check_image_shape([4, 5, 3], 60) == (4, 5, 3)
    for wrong in ((8, 9), (64,), (4, 4, 4), (-8, -8)):
        with pytest.raises(ValueError, match="product of 64, the number of features"):
            check_image_shape(wrong, 64)


# ---- what is measured -----------------------------------------------------------------------------------------------


def test_a_survey_reads_all_rows_once(exact, digits):
    reads = []

    def chunks():
        reads.append(1)
        yield from np.array_split(digits, 7)

    source = quickmeans.data.open_rows(chunks)
    reads.clear()
    survey = survey_rows(exact, source)
    assert len(reads) == 1
    np.testing.assert_array_equal(survey.sizes, np.bincount(exact.predict(digits), minlength=40))
    assert survey.objective == pytest.approx(-exact.score(digits), rel=1e-5)
    assert survey.largest(40, 3).tolist() == np.argsort(-survey.sizes, kind="stable")[:3].tolist()


def test_a_sample_is_of_different_rows(exact, digits, monkeypatch):
    monkeypatch.setattr("quickmeans.report.survey._MOST_ROWS", 500)
    numbered = digits.copy()
    numbered[:, 0] = np.arange(len(digits))
    survey = survey_rows(exact, lambda: iter(np.array_split(numbered, 5)))
    chosen = survey.sample[:, 0].astype(int)
    assert len(set(chosen)) == len(chosen) == 500
    np.testing.assert_array_equal(survey.sample, numbered[chosen])
    np.testing.assert_array_equal(survey.labels, exact.predict(numbered)[chosen])
    assert 0.4 < np.median(chosen) / len(digits) < 0.6


def test_costs(exact, small, digits):
    for model in (exact, small):
        cost = measure(model, digits)
        assert cost.macs[0] == pytest.approx(model.product_.macs + model.n_candidates_ * 64)
        assert cost.macs[1] == 40 * 64
        assert cost.n_bytes[1] == 40 * 64 * 4
        assert min(cost.microseconds) > 0
        assert 0.97 < cost.agreement <= 1
        assert cost.n_rows == len(digits)
    assert measure(small, None).n_bytes[0] < measure(exact, None).n_bytes[1] < measure(exact, None).n_bytes[0]
    assert measure(small, None).agreement is None


def test_agreement_is_with_the_nearest_centroid():
    X = make_blobs(500, 5, centers=9, random_state=0)[0] + 100
    model = QKMeans(9, random_state=0).fit(X)
    assert measure(model, X).agreement == 1
    model.predict = lambda rows: np.zeros(len(rows), int)
    assert measure(model, X).agreement < 0.5


# ---- the page -------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Elements of a page, which must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def every(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def page_of(model, path, *args, **options):
    write_report(model, path / "page.html", *args, **options)
    assert is_report(path / "page.html")
    text = (path / "page.html").read_text("utf-8")
    page = Page(text)
    assert "://" not in text
    assert not page.every("script")
    assert all(image["alt"] for image in page.every("img"))
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in page.every("svg"))
    return page


def ids(page):
    return [section["id"] for section in page.every("section")]


def test_a_page_with_rows(exact, digits, tmp_path):
    page = page_of(exact, tmp_path, digits, image_shape=(8, 8), title="<b>Digits & more")
    assert ids(page) == FIGURES
    assert page.words.count("<b>Digits & more") == 2
    assert sum(image["alt"].startswith("Centroid") for image in page.every("img")) == 40
    assert f"{len(digits):,}" in page.words
    sizes = np.bincount(exact.predict(digits), minlength=40)
    shown = [image["alt"] for image in page.every("img")][:40]
    order = np.argsort(-sizes, kind="stable")
    assert shown == [f"Centroid {k}, {sizes[k]:,} rows" for k in order]


def test_a_page_from_files(small, digits, tmp_path):
    np.save(tmp_path / "rows.npy", digits)
    small.save(tmp_path / "model.safetensors")
    loaded = quickmeans.load(tmp_path / "model.safetensors")
    page = page_of(loaded, tmp_path, tmp_path / "rows.npy")
    assert ids(page) == FIGURES
    bare = page_of(loaded, tmp_path)
    assert ids(bare) == [name for name in FIGURES if name not in ("clusters", "sizes")]
    assert any("not known" in words for words in bare.words)


def test_a_page_of_features_with_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = make_blobs(300, 3, centers=6, random_state=0)[0]
    frame = pandas.DataFrame(X, columns=["height", "a<b", "weight"])
    page = page_of(QKMeans(6, random_state=0).fit(frame), tmp_path, frame)
    assert {"height", "a<b", "weight"} <= set(page.words)
    assert "factors" not in ids(page)


@pytest.mark.parametrize(
    ("K", "shape"), [(1, (20, 3)), (2, (20, 1)), (3, (3, 2)), (100, (400, 16))], ids=["K=1", "D=1", "K=N", "many"]
)
def test_pages_of_odd_shapes(K, shape, rng, tmp_path):
    X = rng.standard_normal(shape)
    model = QKMeans(K, random_state=0).fit(X)
    page_of(model, tmp_path)
    page_of(model, tmp_path, X)


def test_pages_of_sparse_rows_spherical_models_and_other_solvers(digits, tmp_path):
    X = sp.csr_array(digits)
    page_of(QKMeans(10, max_iter=3, random_state=0).fit(X), tmp_path, X)
    page_of(QKMeans(10, metric="cosine", max_iter=3, random_state=0).fit(digits), tmp_path, digits)
    init = digits[:10]
    palm = QKMeans(10, solver="palm4msa", shortlist=0, max_iter=2, init=init, random_state=0).fit(digits)
    assert "array of shape (10, 64)" in page_of(palm, tmp_path, digits).words
    assert "map" in ids(page_of(QKMeans(10, random_state=0).partial_fit(digits), tmp_path))


def test_a_page_of_a_model_of_a_dask_array(digits, tmp_path):
    rows = pytest.importorskip("dask.array").from_array(digits, chunks=(500, -1))
    assert "sizes" in ids(page_of(QKMeans(10, max_iter=2, random_state=0).fit(rows), tmp_path))


@pytest.mark.filterwarnings("ignore:Only 1 of the 2")
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_a_page_of_rows_that_are_all_alike(tmp_path):
    X = np.ones((10, 4))
    page_of(QKMeans(2, random_state=0).fit(X), tmp_path, X)


def test_what_cannot_be_shown(exact, digits, tmp_path):
    with pytest.raises(TypeError, match="model must be a QKMeans, got KMeans"):
        write_report(KMeans(), tmp_path / "page.html")
    with pytest.raises(ValueError, match="63 features"):
        write_report(exact, tmp_path / "page.html", digits[:, :63])
    with pytest.raises(ValueError, match="NaN"):
        write_report(exact, tmp_path / "page.html", np.full_like(digits, np.nan))
    assert list(tmp_path.iterdir()) == []


# ---- the commands ---------------------------------------------------------------------------------------------------


def run(*args):
    return CliRunner().invoke(program, [str(arg) for arg in args])


def test_the_command(small, digits, tmp_path):
    model, rows, page = (tmp_path / name for name in ("model.safetensors", "rows.npy", "page.html"))
    small.save(model)
    np.save(rows, digits)
    result = run("report", model, rows, "-o", page, "--image-shape", "4x16", "--title", "Mine")
    assert result.exit_code == 0, result.output
    assert str(page) in result.stdout
    text = page.read_text("utf-8")
    assert 'width="16" height="4"' in text
    assert "<h1>Mine</h1>" in text
    again = run("report", model, "-o", page)
    assert again.exit_code == 1
    assert "--force" in again.stderr
    assert page.read_text("utf-8") == text
    assert run("report", model, "-o", page, "--force").exit_code == 0
    np.savez(tmp_path / "rows.npz", other=np.ones((3, 2)), digits=digits)
    assert run("report", model, tmp_path / "rows.npz", "--key", "digits", "-o", page, "--force").exit_code == 0
    assert f"<dd>{len(digits):,}</dd>" in page.read_text("utf-8")
    assert "name one" in run("report", model, tmp_path / "rows.npz", "-o", page, "--force").stderr
    assert "28x28" in run("report", model, "-o", page, "--force", "--image-shape", "64").stderr
    assert "product of 64" in run("report", model, "-o", page, "--force", "--image-shape", "9x9").stderr


def test_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("quickmeans.cli.demo.patches", lambda *args, **options: patches(*args, **options)[:600])
    monkeypatch.setattr("quickmeans.cli.demo.SIDE", 5)
    monkeypatch.setattr("quickmeans.cli.demo.N_CLUSTERS", 20)
    page = tmp_path / "quickmeans-demo.html"
    for _ in range(2):  # an earlier page is replaced
        result = run("demo")
        assert result.exit_code == 0, result.output
        assert str(page) in result.stdout
        for name in ("scikit-learn", "QKMeans", "shortlist=0", "The default call of QKMeans is"):
            assert name in result.stdout
    assert ids(Page(page.read_text("utf-8"))) == FIGURES
    page.write_text("mine")
    refused = run("demo")
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert page.read_text() == "mine"


def test_the_verdict_of_the_demo_tells_both_time_and_objective():
    peer, own = Measured(6.0, 1.0, 100.0, 1), Measured(2.0, 1.0, 98.5, 1)
    assert "is 3.0 times as fast as that of scikit-learn, and its objective 1.5 % lower (better)" in verdict(peer, own)
    assert "is slower (3.0 times the time) than that of scikit-learn, and its objective 1.5 % higher" in verdict(
        own, peer
    )


# ---- in a browser ---------------------------------------------------------------------------------------------------

LOOK = """<!doctype html><body>
<iframe src="{page}" style="width:{width}px;height:900px;border:0"></iframe><pre></pre>
<script>
onload = () => {{
  const page = document.querySelector("iframe").contentDocument;
  const sections = [...page.querySelectorAll("section")].map(s => [s.id, s.getBoundingClientRect().height]);
  const broken = [...page.images].filter(i => !i.complete || !i.naturalWidth).length;
  const empty = [...page.querySelectorAll("svg")].filter(s => s.getBBox().width < 100).length;
  const style = page.defaultView.getComputedStyle(page.body);
  document.querySelector("pre").textContent = JSON.stringify({{
    sections, broken, empty, needed: page.documentElement.scrollWidth, given: page.documentElement.clientWidth,
    images: page.images.length, paper: style.backgroundColor, ink: style.color,
  }});
}};
</script>"""


class Chromium:
    """A headless browser."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, path, *options):
        command = [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
        command += [f"--user-data-dir={self.folder / 'profile'}", "--enable-logging=stderr", *options, f"file://{path}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    def look(self, page, width, *options):
        """Return what the browser shows at this width."""
        frame = page.with_name("frame.html")
        frame.write_text(LOOK.format(page=page.name, width=width))
        shown = self.run(frame, "--dump-dom", *options).stdout
        return json.loads(re.search(r"<pre>(.*)</pre>", shown).group(1))

    def complaints(self, page):
        """Return the messages of the console."""
        return re.findall(r"CONSOLE.*", self.run(page, "--dump-dom").stderr)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    return Chromium(program, tmp_path_factory.mktemp("chromium"))


@pytest.fixture(scope="module")
def pages(exact, digits, tmp_path_factory):
    """One with images and rows, one with a heat map and without."""
    folder = tmp_path_factory.mktemp("pages")
    write_report(exact, folder / "images.html", digits, image_shape=(8, 8))
    X = np.random.default_rng(0).standard_normal((3000, 30)) @ np.random.default_rng(1).standard_normal((30, 500))
    write_report(QKMeans(150, shortlist=0, max_iter=3, random_state=0).fit(X), folder / "heat.html")
    return folder


@pytest.mark.parametrize("name", ["images", "heat"])
@pytest.mark.parametrize("width", [375, 1200])
def test_the_page_fits_the_window(chromium, pages, name, width):
    seen = chromium.look(pages / f"{name}.html", width)
    assert seen["given"] >= width - 20
    assert seen["needed"] <= seen["given"]
    assert [section for section, _ in seen["sections"]] == FIGURES
    assert min(height for _, height in seen["sections"]) > 60
    assert seen["broken"] == seen["empty"] == 0
    assert seen["images"] >= 4 if name == "heat" else 40


def test_the_browser_shows_no_messages(chromium, pages):
    text = (pages / "images.html").read_text("utf-8")
    bad = pages / "bad.html"
    bad.write_text(text.replace("<main>", '<main><img src="http://127.0.0.1:9/x.png">'), "utf-8")
    assert chromium.complaints(bad)  # the test would see a message
    assert chromium.complaints(pages / "images.html") == []
    assert chromium.complaints(pages / "heat.html") == []


def test_light_and_dark(chromium, pages):
    def brightness(colour):
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    light = chromium.look(pages / "images.html", 1200, "--blink-settings=preferredColorScheme=1")
    dark = chromium.look(pages / "images.html", 1200, "--blink-settings=preferredColorScheme=0")
    assert brightness(light["paper"]) - brightness(light["ink"]) > 400
    assert brightness(dark["ink"]) - brightness(dark["paper"]) > 400
