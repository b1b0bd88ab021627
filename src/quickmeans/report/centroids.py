"""The centroids as images or as a heat map."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from quickmeans.cluster import QKMeans
from quickmeans.report.png import data_uri, shrunk, tinted
from quickmeans.report.survey import Survey

Shape = tuple[int, ...]
_MOST_IMAGES, _MOST_PIXELS = 96, 64  # images of the gallery, pixels of a side
_MOST_LINES, _MOST_COLUMNS, _MOST_NAMES = 40, 512, 24  # of the heat map
_FULL_COLOUR = 2.5  # standard deviations from the mean


def check_image_shape(shape: Any, n_features: int) -> Shape | None:
    """Return (height, width) or (height, width, 3); None if rows are no images."""
    if shape is None:
        return None
    shape = tuple(shape)
    fits = len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)
    if not fits or min(shape) < 1 or math.prod(shape) != n_features:
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, 3) with a product of {n_features}, the number of "
            f"features, got {shape}."
        )
    return tuple(map(int, shape))


def pictures(centers: NDArray[Any], shape: Shape) -> list[str]:
    """Return data URIs of centroids as images, all with the same grey scale."""
    images = centers.reshape(-1, *shape).astype(np.float64)
    low, high = float(images.min(initial=np.inf)), float(images.max(initial=-np.inf))
    for axis in (1, 2):
        images = shrunk(images, _MOST_PIXELS, axis)
    grey = np.rint(255 * (images - low) / ((high - low) or 1)).astype(np.uint8)
    return [data_uri(image) for image in grey]


def gallery(model: QKMeans, survey: Survey, shape: Shape) -> tuple[str, str]:
    """Return images of the largest clusters, and a caption."""
    K = len(model.cluster_centers_)
    shown = survey.largest(K, _MOST_IMAGES)
    images = []
    for k, address in zip(shown, pictures(model.cluster_centers_[shown], shape), strict=True):
        size = "" if survey.sizes is None else f"{survey.sizes[k]:,}"
        rows = f", {size} rows" if size else ""
        images.append(
            f'<li><img class="pixels" src="{address}" alt="Centroid {k}{rows}" title="Cluster {k}{rows}" '
            f'width="{shape[1]}" height="{shape[0]}"><small aria-hidden="true">{size}</small></li>'
        )
    which = survey.which(len(shown), K).capitalize()
    order = ", the largest first, with their numbers of rows" if survey.sizes is not None else ""
    return f'<ul class="gallery">{"".join(images)}</ul>', f"{which} clusters{order}. All images have the same scale."


def heat_map(model: QKMeans, survey: Survey, names: Mapping[int, str]) -> tuple[str, str]:
    """Return centroids as lines with features as columns, and a caption.

    Beside the number of a cluster stands its name, if it has one.
    """
    centers = model.cluster_centers_.astype(np.float64)
    K, D = centers.shape
    spread = centers.std(axis=0)
    shown = survey.largest(K, _MOST_LINES)
    values = ((centers - centers.mean(axis=0)) / np.where(spread > 0, spread, 1))[shown]
    if len(values) > 2:
        order = leaves_list(linkage(values, "average", optimal_ordering=True))  # similar lines side by side
        values, shown = values[order], shown[order]
    pixels = tinted(shrunk(values, _MOST_COLUMNS, 1) / _FULL_COLOUR)
    which = survey.which(len(shown), K)
    alt = f"Heat map: {which} centroids as lines, {D:,} features as columns"
    features = [escape(str(name)) for name in getattr(model, "feature_names_in_", ())] if D <= _MOST_NAMES else []
    below = "".join(f"<span>{name}</span>" for name in features) or f"<i>feature 0</i><i>feature {D - 1}</i>"
    lines = "".join(f"<li><span>{escape(names.get(k, ''))}</span><b>{k}</b></li>" for k in shown.tolist())
    picture = (
        f'<div class="heat"><ol>{lines}</ol><img class="pixels" src="{data_uri(pixels)}" alt="{alt}">'
        f'<div class="{"names" if features else "ends"}">{below}</div></div>'
    )
    return picture, (
        f"One line per centroid with the number of its cluster ({which}, similar ones side by side), one column per "
        'feature: <b class="above">above</b> or <b class="below">below</b> the mean of the centroids. Full colour: '
        f"{_FULL_COLOUR} standard deviations."
    )
