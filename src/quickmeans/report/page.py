"""One HTML file that shows a fitted model: it needs no network and no program but a browser."""

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
from quickmeans.report.survey import Survey, survey
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
    """Write a page on a fitted model: centroids, clusters, factors, objective, time and size against dense centroids.

    Parameters
    ----------
    model : QKMeans
        Fitted or loaded.
    path : str or path
        The HTML file, which appears complete or not at all.
    rows : array, path or whatever ``fit`` takes, optional
        Rows to count, time and draw; they are read once, some at a time. Without them, times are measured on rows made
        up about the centroids, and clusters have the sizes of `labels_`, if the model has kept these.
    image_shape : (height, width) or (height, width, 3), optional
        How a row is an image. By default a square one if the number of features is a square.
    title : str, optional
    """
    if not isinstance(model, QKMeans):
        raise TypeError(f"A report is of a QKMeans, got {type(model).__name__}.")
    check_is_fitted(model)
    shape = check_image_shape(image_shape, model.n_features_in_)
    write_bytes(
        path, render(model, rows, shape, title or f"QuicK-means: {len(model.cluster_centers_):,} clusters").encode()
    )


def is_report(path: Path) -> bool:
    """Whether there is a page that write_report has made."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return b'<meta name="generator" content="quickmeans' in file.read(1000)


def render(model: QKMeans, rows: Any, shape: Shape | None, title: str) -> str:
    """The page as a text."""
    found = survey(model, rows)
    cost = measure(model, found.sample)
    return _PAGE.format(
        version=version("quickmeans"),
        title=escape(title),
        style=files("quickmeans.report").joinpath("style.css").read_text("utf-8"),
        subtitle=_subtitle(model),
        facts="".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _facts(model, found, cost)),
        sections="\n".join(_sections(model, found, cost, shape)),
        footer=f"Written by quickmeans {version('quickmeans')} on {date.today().isoformat()}, "
        f"with NumPy {np.__version__} on {escape(platform.system())} {escape(platform.machine())}.",
    )


def _subtitle(model: QKMeans) -> str:
    if model.product_ is None:
        return "Dense centroids: no product of sparse matrices would have made assignment cheaper."
    if model._fitted_shortlist == 0:
        return "The centroids are the rows of a product of sparse matrices."
    return (
        "Exact means as centroids; a product of small or sparse matrices chooses the few that a row is compared with."
    )


def _facts(model: QKMeans, found: Survey, cost: Cost) -> list[tuple[str, str]]:
    """The numbers at the top."""
    K, D = model.cluster_centers_.shape
    facts = [("clusters", f"{K:,}"), ("features", f"{D:,}")]
    if found.n_rows is not None:
        facts.append(("rows", f"{found.n_rows:,}"))
    objective = model.inertia_ if found.objective is None else found.objective
    facts += [("objective", number(objective)), ("iterations", f"{model.n_iter_:,}")]
    if model.product_ is not None:
        ours, dense = cost.microseconds
        facts.append(("as fast as dense centroids", f"{dense / ours:.1f}&times;"))
    pairs = (("fewer multiply-adds", cost.macs), ("smaller", cost.n_bytes))
    return facts + [(name, f"{dense / ours:.1f}&times;") for name, (ours, dense) in pairs if dense > 1.05 * ours]


def _sections(model: QKMeans, found: Survey, cost: Cost, shape: Shape | None) -> list[str]:
    centroids = gallery(model, found, shape) if shape is not None else heat_map(model, found)
    history = getattr(model, "objective_history_", np.empty(0))
    sections = [
        _section("Centroids", *centroids, wide=True),
        _section("Map of the clusters", *cluster_map(model, found, shape)),
        _section("Time and size against dense centroids", _bars(cost), _how_measured(cost)),
    ]
    if found.sizes is not None:
        sections.append(_section("Sizes of the clusters", *size_curve(found.sizes)))
    if len(history):
        sections.append(_section("Objective during the fit", *objective_curve(history, model.n_iter_)))
    sections.append(
        _section("Result", _table(_result(model)), wide=len(sections) % 2 == 1)
    )  # half a line if one is free
    if model.product_ is not None:
        sections.append(_section("Factors", *factor_patterns(model.product_), wide=True))
    return [*sections, _section("Parameters", _table(_parameters(model)), wide=True)]


def _section(heading: str, body: str, note: str = "", *, wide: bool = False) -> str:
    name = heading.split()[0].lower()
    caption = f"<figcaption>{note}</figcaption>" if note else ""
    kind = ' class="wide"' if wide else ""
    return f'<section id="{name}"{kind}><h2>{heading}</h2><figure>{body}{caption}</figure></section>'


# ---- against dense --------------------------------------------------------------------------------------------------


def _bars(cost: Cost) -> str:
    """Pairs of bars, each pair on its own scale."""
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
    source = "rows made up about the centroids" if cost.agreement is None else "of the rows"
    same = "" if cost.agreement is None else f" Both give the same label to {100 * cost.agreement:.4g} % of them."
    return (
        f"Measured when this page was written: <code>predict</code> on {cost.n_rows:,} {source}, {threads}, best of "
        f"several runs, against a matrix product by BLAS and arg-min with the same centroids.{same}"
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
    """What the fit has come to."""
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
    if model._fitted_shortlist != 0:
        lines |= {
            "exact distances per row": f"{model.n_candidates_:.2f}",
            "reach of the screen": f"{model.margin_:.3g}",
        }
    return lines
