"""The centroids: as images, or as a heat map."""

import math
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from quickmeans.cluster import QKMeans
from quickmeans.report.png import data_uri, shrunk, tinted
from quickmeans.report.survey import Survey

Shape = tuple[int, ...]
_MOST_IMAGES, _MOST_PIXELS = 96, 64
_MOST_LINES, _MOST_COLUMNS, _MOST_NAMES = 64, 512, 24
_STRONGEST = 2.5  # deviations that get the full colour


def check_image_shape(shape: Any, n_features: int) -> Shape | None:
    """Height and width, perhaps and three colours, of images; None if rows are none, as far as can be told."""
    if shape is None:
        side = round(n_features**0.5)
        return (side, side) if side >= 4 and side**2 == n_features else None
    shape = tuple(shape)
    fits = len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)
    if not fits or min(shape) < 1 or math.prod(shape) != n_features:
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, 3) with a product of {n_features}, the number of "
            f"features, got {shape}."
        )
    return tuple(map(int, shape))


def pictures(centers: NDArray[Any], shape: Shape) -> list[str]:
    """Addresses of images of centroids, all on the same scale."""
    images = centers.reshape(-1, *shape).astype(np.float64)
    low, high = float(images.min(initial=np.inf)), float(images.max(initial=-np.inf))
    for axis in (1, 2):
        images = shrunk(images, _MOST_PIXELS, axis)
    grey = np.rint(255 * (images - low) / ((high - low) or 1)).astype(np.uint8)
    return [data_uri(image) for image in grey]


def gallery(model: QKMeans, found: Survey, shape: Shape) -> tuple[str, str]:
    """Images of the largest clusters, and a word on them."""
    K = len(model.cluster_centers_)
    shown = found.largest(K, _MOST_IMAGES)
    images = []
    for k, address in zip(shown, pictures(model.cluster_centers_[shown], shape), strict=True):
        size = "" if found.sizes is None else f"{found.sizes[k]:,}"
        rows = f", {size} rows" if size else ""
        images.append(
            f'<li><img class="pixels" src="{address}" alt="Centroid {k}{rows}" title="Cluster {k}{rows}" '
            f'width="{shape[1]}" height="{shape[0]}"><small aria-hidden="true">{size}</small></li>'
        )
    which = found.which(len(shown), K).capitalize()
    below = ", the largest first, with their numbers of rows" if found.sizes is not None else ""
    return f'<ul class="gallery">{"".join(images)}</ul>', f"{which} clusters{below}. All images have the same scale."


def heat_map(model: QKMeans, found: Survey) -> tuple[str, str]:
    """Centroids as lines, features as columns, and a word on them."""
    centers = model.cluster_centers_.astype(np.float64)
    K, D = centers.shape
    spread = centers.std(axis=0)
    shown = found.largest(K, _MOST_LINES)
    values = ((centers - centers.mean(axis=0)) / np.where(spread > 0, spread, 1))[shown]
    if len(values) > 2:
        values = values[leaves_list(linkage(values, "average", optimal_ordering=True))]  # like beside like
    pixels = tinted(shrunk(values, _MOST_COLUMNS, 1) / _STRONGEST)
    which = found.which(len(shown), K)
    alt = f"Heat map: {which} centroids as lines, {D:,} features as columns"
    names = [escape(str(name)) for name in getattr(model, "feature_names_in_", ())] if D <= _MOST_NAMES else []
    labels = "".join(f"<span>{name}</span>" for name in names) or f"<i>feature 0</i><i>feature {D - 1}</i>"
    picture = (
        f'<div class="heat"><img class="pixels" src="{data_uri(pixels)}" alt="{alt}">'
        f'<div class="{"names" if names else "ends"}">{labels}</div></div>'
    )
    return picture, (
        f"One line per centroid ({which}, like beside like), one column per feature: "
        '<b class="above">above</b> or <b class="below">below</b> the mean of centroids, in units of their deviation.'
    )
