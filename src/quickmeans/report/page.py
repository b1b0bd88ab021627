"""The HTML page on a fitted model: one file that needs no network and no scripts."""

import os
import platform
from dataclasses import dataclass
from datetime import date
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from quickmeans.atomic import write_bytes
from quickmeans.cluster import QKMeans
from quickmeans.report.centroids import Shape, check_image_shape, gallery, heat_map
from quickmeans.report.clusters import MOST_CLUSTERS, cluster_names, cluster_table
from quickmeans.report.cost import Cost, measure
from quickmeans.report.curves import objective_curve, size_curve
from quickmeans.report.examples import Examples, check_values, find_examples
from quickmeans.report.factors import factor_patterns
from quickmeans.report.map import cluster_map
from quickmeans.report.survey import Survey, survey_rows
from quickmeans.report.svg import number

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="quickmeans {version}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1><p>{subtitle}</p></header>
<dl class="facts">{facts}</dl>
<main>
{sections}
</main>
<footer>{footer}</footer>
</body>
</html>
"""


@dataclass(frozen=True)
class Report:
    """An HTML page on a fitted model. A notebook shows it when it is the value of a cell.

    Parameters
    ----------
    html : str
        The page, which needs no network.
    """

    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to the file `path`, which is replaced, or left as it was if an error occurs."""
        write_bytes(path, self.html.encode())

    def _repr_html_(self) -> str:
        """A frame with the page, whose style is its own and not that of the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="report" loading="lazy" '
            'style="width:100%;height:80vh;min-height:480px;border:0"></iframe>'
        )


def make_report(
    model: QKMeans,
    rows: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    text: Any = None,
    images: Any = None,
    title: str | None = None,
) -> Report:
    """Make an HTML page on a fitted model.

    It shows the centroids, the clusters with their sizes, spreads and typical rows, the factors, the objective, and
    time and size compared with dense centroids.

    Parameters
    ----------
    model : QKMeans
        A fitted or loaded model.
    rows : array, path or any other input of ``fit``, default=None
        The rows that are counted, timed and drawn; they are read once, block by block. Without rows, times are measured
        on random rows around the centroids, and the sizes of the clusters are those of `labels_`, if the model has it.
    image_shape : (height, width) or (height, width, 3), default=None
        The shape of the images that the rows are. None: they are no images.
    text : str or array of shape (n_rows,), default=None
        A column of the table that `rows` is the path of, or one text per row, shown as examples.
    images : str or sequence of length n_rows, default=None
        A column, or one image per row: the bytes of a PNG, JPEG, GIF or WebP file, or pixels in uint8.
    title : str, default=None
        The title of the page. None: the number of clusters.

    Returns
    -------
    Report
        The page.
    """
    if not isinstance(model, QKMeans):
        raise TypeError(f"model must be a QKMeans, got {type(model).__name__}.")
    check_is_fitted(model)
    shape = check_image_shape(image_shape, model.n_features_in_)
    for name, given in (("text", text), ("images", images)):
        if given is not None and rows is None:
            raise ValueError(f"{name} has a value for each row, so rows must be given too.")
        check_values(rows, given, name)
    title = title or f"QuicK-means: {len(model.cluster_centers_):,} clusters"
    survey = survey_rows(model, rows)
    return Report(render(model, survey, _examples(rows, survey, text, images, shape), shape, title))


def write_report(model: QKMeans, path: str | os.PathLike[str], rows: Any = None, **options: Any) -> None:
    """Write an HTML page on a fitted model to a file.

    Parameters
    ----------
    model, rows, **options
        As for :func:`make_report`.
    path : str or path
        The HTML file. It is replaced, or left as it was if an error occurs.
    """
    make_report(model, rows, **options).save(path)


def _examples(rows: Any, survey: Survey, text: Any, images: Any, shape: Shape | None) -> Examples:
    """Return the nearest rows of the clusters that the page shows."""
    if survey.examples is None or survey.n_rows is None:
        return Examples({}, {})
    shown = survey.examples[survey.largest(len(survey.examples), MOST_CLUSTERS)]
    return find_examples(rows, np.unique(shown[shown >= 0]), survey.n_rows, text, images, shape)


def is_report(path: Path) -> bool:
    """Return whether the file is a page written by `write_report`."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return b'<meta name="generator" content="quickmeans' in file.read(1000)


def render(model: QKMeans, survey: Survey, examples: Examples, shape: Shape | None, title: str) -> str:
    """Return the page."""
    cost = measure(model, survey.sample)
    return _PAGE.format(
        version=version("quickmeans"),
        title=escape(title),
        style=files("quickmeans.report").joinpath("style.css").read_text("utf-8"),
        subtitle=_subtitle(model),
        facts="".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(model, survey, cost)),
        sections="\n".join(_sections(model, survey, examples, cost, shape)),
        footer=f"Written by quickmeans {version('quickmeans')} on {date.today().isoformat()}, "
        f"with NumPy {np.__version__} on {escape(platform.system())} {escape(platform.machine())}.",
    )


def _subtitle(model: QKMeans) -> str:
    if model.product_ is None:
        return "The centroids are dense, because no product of sparse matrices would make assignment cheaper."
    if model.assigner_.centers_are_means:
        return "The centroids are exact means; a product of small or sparse matrices selects candidates for each row."
    return "The centroids are the rows of a product of sparse matrices."


def _facts(model: QKMeans, survey: Survey, cost: Cost) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    K, D = model.cluster_centers_.shape
    facts = [("clusters", f"{K:,}"), ("features", f"{D:,}")]
    if survey.n_rows is not None:
        facts.append(("rows", f"{survey.n_rows:,}"))
    objective = model.inertia_ if survey.objective is None else survey.objective
    facts += [("objective", number(objective)), ("iterations", f"{model.n_iter_:,}")]
    if model.product_ is not None and cost.is_certain:
        facts.append(("the speed of dense centroids", f"{cost.speed[1]:.2g}&times;"))
    pairs = (("fewer multiply-adds", cost.macs), ("smaller", cost.n_bytes))
    return facts + [(name, f"{dense / ours:.1f}&times;") for name, (ours, dense) in pairs if dense > 1.05 * ours]


def _sections(model: QKMeans, survey: Survey, examples: Examples, cost: Cost, shape: Shape | None) -> list[str]:
    if shape is not None:
        centroids = gallery(model, survey, shape)
    else:
        centroids = heat_map(model, survey, cluster_names(survey, examples))
    history = getattr(model, "objective_history_", np.empty(0))
    sections = [
        _section("Centroids", *centroids, wide=True),
        _section("Map of the clusters", *cluster_map(model, survey, shape)),
        _section("Time and size compared with dense centroids", _bars(cost), _how_measured(cost)),
    ]
    if survey.sizes is not None:
        sections.append(_section("Sizes of the clusters", *size_curve(survey.sizes)))
    if len(history):
        sections.append(_section("Objective during the fit", *objective_curve(history, model.n_iter_)))
    if survey.sizes is not None:
        sections.insert(1, _section("Clusters", *cluster_table(model, survey, examples), wide=True))
    sections.append(
        _section(
            "Result", _table(_result(model)), wide=sum('class="wide"' not in section for section in sections) % 2 == 0
        )
    )
    if model.product_ is not None:
        sections.append(_section("Factors", *factor_patterns(model.product_), wide=True))
    return [*sections, _section("Parameters", _table(_parameters(model)), wide=True)]


def _section(heading: str, body: str, note: str = "", *, wide: bool = False) -> str:
    name = heading.split()[0].lower()
    caption = f"<figcaption>{note}</figcaption>" if note else ""
    kind = ' class="wide"' if wide else ""
    return f'<section id="{name}"{kind}><h2>{heading}</h2><figure>{body}{caption}</figure></section>'


# ---- compared with dense centroids -----------------------------------------------------------------------------------


def _bars(cost: Cost) -> str:
    """Return pairs of bars, each pair with its own scale."""
    groups = (
        ("Microseconds per row", cost.microseconds, _speed_verdict(cost)),
        ("Multiply-adds per row", cost.macs, _verdict(*cost.macs, "fewer", "more")),
        ("Bytes of the model", cost.n_bytes, _verdict(*cost.n_bytes, "smaller", "larger")),
    )
    parts = []
    for name, (ours, dense), verdict in groups:
        lines = [_bar("this model", ours, max(ours, dense), "ours"), _bar("dense", dense, max(ours, dense), "")]
        parts.append(f"<div><h3>{name} {verdict}</h3>{''.join(lines)}</div>")
    return f'<div class="bars">{"".join(parts)}</div>'


def _verdict(ours: float, dense: float, better: str, worse: str) -> str:
    if dense > ours:
        return f"<b>{dense / ours:.1f}&times; {better}</b>"
    return f"<span>{ours / dense:.2f}&times; {worse}</span>" if ours > dense else "<span>the same</span>"


def _speed_verdict(cost: Cost) -> str:
    """Return the ratio of the times with its spread; nothing is claimed if the spread has 1 in it."""
    low, middle, high = cost.speed
    if not cost.is_certain:
        return f"<span>no clear difference: {low:.2f} to {high:.2f}&times;</span>"
    if low > 1:
        return f"<b>{middle:.2g}&times; faster ({low:.2g} to {high:.2g})</b>"
    return f"<span>{1 / middle:.2f}&times; slower ({1 / high:.2f} to {1 / low:.2f})</span>"


def _bar(name: str, value: float, largest: float, kind: str) -> str:
    words = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    bar = f'<i class="{kind}" style="width:{100 * value / largest:.1f}%"></i>'
    return f"<p><span>{name}</span>{bar}<span>{words}</span></p>"


def _how_measured(cost: Cost) -> str:
    threads = "1 thread" if cost.n_threads == 1 else f"{cost.n_threads} threads"
    source = "random rows around the centroids" if cost.agreement is None else "of the rows"
    same = "" if cost.agreement is None else f" Both give {100 * cost.agreement:.4g} % of these rows the same label."
    return (
        f"Measured when this page was written, on {cost.n_rows:,} {source} with {threads}, the best of several rounds: "
        f"<code>predict</code> of this model, and a matrix product by BLAS with arg-min for the same centroids.{same}"
    )


# ---- tables ---------------------------------------------------------------------------------------------------------


def _table(lines: dict[str, str]) -> str:
    cells = (f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in lines.items())
    return f'<dl class="table">{"".join(cells)}</dl>'


def _parameters(model: QKMeans) -> dict[str, str]:
    return {name: _shown(value) for name, value in model.get_params(deep=False).items()}


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        return str(value)
    if hasattr(value, "shape"):
        return f"array of shape {tuple(value.shape)}"
    return getattr(value, "__name__", None) or (str(value) if isinstance(value, os.PathLike) else type(value).__name__)


def _result(model: QKMeans) -> dict[str, str]:
    """Return the facts about the fit."""
    product = model.product_
    lines = {
        "objective of the fit": f"{model.inertia_:,.8g}",
        "iterations": f"{model.n_iter_:,}",
        "centroids": f"{' by '.join(f'{n:,}' for n in model.cluster_centers_.shape)}, {model.cluster_centers_.dtype}",
    }
    if product is None:
        return lines | {"product": "none"}
    lines |= {
        "factors": f"{len(product.factors)}",
        "non-zeros of the factors": f"{product.nnz:,}",
        "compression": f"{product.shape[0] * product.shape[1] / max(1, product.nnz):.1f}",
    }
    if model.assigner_.centers_are_means:
        lines |= {"exact distances per row": f"{model.n_candidates_:.2f}", "margin": f"{model.margin_:.3g}"}
    return lines
