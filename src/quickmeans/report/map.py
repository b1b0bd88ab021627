"""A map of the clusters in the plane of the two principal components of the centroids."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from quickmeans.cluster import QKMeans
from quickmeans.report.centroids import Shape, pictures
from quickmeans.report.survey import Survey
from quickmeans.report.svg import WIDTH, drawing, text

_TALLEST, _FLATTEST, _BORDER = 330, 160, 26  # height of the map, and space around it
_MOST_CIRCLES, _MOST_DOTS, _MOST_IMAGES = 1500, 700, 36
_INK, _LARGEST = 0.16, 24.0  # share of the area that circles take, and the largest radius
_IMAGE = 24.0  # side of an image


def cluster_map(model: QKMeans, survey: Survey, shape: Shape | None) -> tuple[str, str]:
    """Return circles whose areas are proportional to the sizes, a sample of rows, some images, and a caption."""
    centers = model.cluster_centers_.astype(np.float64)
    K = len(centers)
    middle = centers.mean(axis=0)
    plane, shares = _plane(centers - middle)
    at = (centers - middle) @ plane
    rows = (
        np.empty((0, 2)) if survey.sample is None else (_compared(model, survey.sample[:_MOST_DOTS]) - middle) @ plane
    )
    shown = survey.largest(K, _MOST_CIRCLES)
    to_picture, height = _scaling(np.concatenate([at[shown], _typical(rows)]))
    at, rows = to_picture(at), to_picture(rows)
    marks = [f'<path class="cloud" d="{"".join(f"M{x:.1f} {y:.1f}h0" for x, y in _inside(rows, height))}"/>']
    marks += _circles(at, shown, survey.sizes, WIDTH * height)
    if shape is not None:
        marks += _thumbnails(centers, at, shown, shape)
    marks.append(text(WIDTH / 2, height - 5, f"first component, {100 * shares[0]:.0f} % of the variance"))
    marks.append(text(9, height / 2, f"second, {100 * shares[1]:.0f} %", turned=True))
    dots = f" The dots are {len(rows):,} rows." if len(rows) else ""
    areas = (
        "The area of a circle is proportional to the number of rows in the cluster."
        if survey.sizes is not None
        else "Their numbers of rows are not known: give the rows, or save the model with <code>labels=True</code>."
    )
    images = " Images show the largest clusters that do not overlap." if shape is not None else ""
    which = survey.which(len(shown), K).capitalize()
    axes = "the first two principal components of the centroids"
    picture = drawing(marks, f"Map of {len(shown):,} clusters in the plane of {axes}", height)
    return picture, f"{which} clusters in the plane of {axes}. {areas}{images}{dots}"


def _compared(model: QKMeans, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows as the model compares them with centroids: divided by their lengths, if only directions count."""
    if not model.assigner_.geometry.spherical:
        return rows
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _plane(offsets: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[float]]:
    """Return two orthonormal columns (zero beyond the rank) and their shares of the variance."""
    n = min(2, *offsets.shape)
    _, lengths, directions = randomized_svd(offsets, n, random_state=0)
    plane, total = np.zeros((offsets.shape[1], 2)), float((offsets**2).sum()) or 1.0
    plane[:, :n] = directions.T
    return plane, [*(float(s**2) / total for s in lengths), 0.0][:2]


def _typical(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the corners of a box around most of the rows."""
    return np.percentile(rows, [1, 99], axis=0) if len(rows) else rows


def _scaling(points: NDArray[np.float64]) -> tuple[Any, float]:
    """Return the map from the plane to the picture, with the same scale on both axes, and the height of the picture."""
    low, high = points.min(axis=0), points.max(axis=0)
    space, extent = np.array([WIDTH, _TALLEST]) - 2 * _BORDER, high - low
    scale = min((r / e for r, e in zip(space, extent, strict=True) if e > 0), default=1.0)
    height = max(_FLATTEST, round(extent[1] * scale + 2 * _BORDER))
    return lambda rows: np.array([WIDTH, height]) / 2 + (rows - (low + high) / 2) * scale * [1, -1], height


def _inside(rows: NDArray[np.float64], height: float) -> NDArray[np.float64]:
    return rows[((rows > [14, 2]) & (rows < [WIDTH - 2, height - 18])).all(axis=1)]


def _circles(
    at: NDArray[np.float64], shown: NDArray[np.int64], sizes: NDArray[np.int64] | None, area: float
) -> list[str]:
    weights = np.ones(len(at)) if sizes is None else sizes.astype(np.float64)
    radii = np.sqrt(weights / (weights.sum() or 1) * _INK * area / np.pi)
    radii *= min(1.0, _LARGEST / (radii.max() or 1))
    marks = []
    for k in shown:
        rows = "" if sizes is None else f": {sizes[k]:,} rows"
        marks.append(
            f'<circle class="cluster" cx="{at[k, 0]:.1f}" cy="{at[k, 1]:.1f}" r="{max(0.6, radii[k]):.1f}">'
            f"<title>Cluster {k}{rows}</title></circle>"
        )
    return marks


def _thumbnails(
    centers: NDArray[np.float64], at: NDArray[np.float64], shown: NDArray[np.int64], shape: Shape
) -> list[str]:
    """Return images of the largest clusters that do not overlap."""
    chosen: list[int] = []
    for k in shown:
        if len(chosen) < _MOST_IMAGES and (np.abs(at[chosen] - at[k]).max(axis=1, initial=0) > _IMAGE + 2).all():
            chosen.append(int(k))
    marks = []
    for (x, y), address in zip(at[chosen] - _IMAGE / 2, pictures(centers[chosen], shape), strict=True):
        box = f'x="{x:.1f}" y="{y:.1f}" width="{_IMAGE:g}" height="{_IMAGE:g}"'
        marks.append(f'<image class="pixels" href="{address}" {box}/><rect class="edge" {box}/>')
    return marks
