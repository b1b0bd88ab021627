"""The HTML page on a fitted model: one file that needs no network and no scripts."""

import os
import platform
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
from quickmeans.report.cost import Cost, measure
from quickmeans.report.curves import objective_curve, size_curve
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


def write_report(
    model: QKMeans,
    path: str | os.PathLike[str],
    rows: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    title: str | None = None,
) -> None:
    """Write an HTML page on a fitted model.

    It shows the centroids, the clusters, the factors, the objective, and time and size compared with dense centroids.

    Parameters
    ----------
    model : QKMeans
        A fitted or loaded model.
    path : str or path
        The HTML file. It is replaced, or left as it was if an error occurs.
    rows : array, path or any other input of ``fit``, default=None
        The rows that are counted, timed and drawn; they are read once, block by block. Without rows, times are measured
        on random rows around the centroids, and the sizes of the clusters are those of `labels_`, if the model has it.
    image_shape : (height, width) or (height, width, 3), default=None
        The shape of the images that the rows are. None: square if the number of features is a square, else no images.
    title : str, default=None
        The title of the page. None: the number of clusters.
    """
    if not isinstance(model, QKMeans):
        raise TypeError(f"model must be a QKMeans, got {type(model).__name__}.")
    check_is_fitted(model)
    shape = check_image_shape(image_shape, model.n_features_in_)
    title = title or f"QuicK-means: {len(model.cluster_centers_):,} clusters"
    write_bytes(path, render(model, rows, shape, title).encode())


def is_report(path: Path) -> bool:
    """Return whether the file is a page written by `write_report`."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return b'<meta name="generator" content="quickmeans' in file.read(1000)


def render(model: QKMeans, rows: Any, shape: Shape | None, title: str) -> str:
    """Return the page."""
    survey = survey_rows(model, rows)
    cost = measure(model, survey.sample)
    return _PAGE.format(
        version=version("quickmeans"),
        title=escape(title),
        style=files("quickmeans.report").joinpath("style.css").read_text("utf-8"),
        subtitle=_subtitle(model),
        facts="".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(model, survey, cost)),
        sections="\n".join(_sections(model, survey, cost, shape)),
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
    if model.product_ is not None:
        ours, dense = cost.microseconds
        facts.append(("the speed of dense centroids", f"{dense / ours:.1f}&times;"))
    pairs = (("fewer multiply-adds", cost.macs), ("smaller", cost.n_bytes))
    return facts + [(name, f"{dense / ours:.1f}&times;") for name, (ours, dense) in pairs if dense > 1.05 * ours]


def _sections(model: QKMeans, survey: Survey, cost: Cost, shape: Shape | None) -> list[str]:
    centroids = gallery(model, survey, shape) if shape is not None else heat_map(model, survey)
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
    sections.append(_section("Result", _table(_result(model)), wide=len(sections) % 2 == 1))
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
        ("Microseconds per row", cost.microseconds, "faster", "slower"),
        ("Multiply-adds per row", cost.macs, "fewer", "more"),
        ("Bytes of the model", cost.n_bytes, "smaller", "larger"),
    )
    parts = []
    for name, (ours, dense), better, worse in groups:
        if dense > ours:
            verdict = f"<b>{dense / ours:.1f}&times; {better}</b>"
        else:
            verdict = f"<span>{ours / dense:.2f}&times; {worse}</span>" if ours > dense else "<span>the same</span>"
        lines = [_bar("this model", ours, max(ours, dense), "ours"), _bar("dense", dense, max(ours, dense), "")]
        parts.append(f"<div><h3>{name} {verdict}</h3>{''.join(lines)}</div>")
    return f'<div class="bars">{"".join(parts)}</div>'


def _bar(name: str, value: float, largest: float, kind: str) -> str:
    words = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    bar = f'<i class="{kind}" style="width:{100 * value / largest:.1f}%"></i>'
    return f"<p><span>{name}</span>{bar}<span>{words}</span></p>"


def _how_measured(cost: Cost) -> str:
    threads = "1 thread" if cost.n_threads == 1 else f"{cost.n_threads} threads"
    source = "random rows around the centroids" if cost.agreement is None else "of the rows"
    same = "" if cost.agreement is None else f" Both give {100 * cost.agreement:.4g} % of these rows the same label."
    return (
        f"Measured when this page was written, on {cost.n_rows:,} {source} with {threads}, best of several runs: "
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
