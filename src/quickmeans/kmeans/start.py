"""Where the centroids start."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.blocks import block_rows
from quickmeans.kmeans.calibration import ScreenChooser, leading_directions, sample_index
from quickmeans.kmeans.geometry import Geometry, squared_norms
from quickmeans.kmeans.lloyd import Iterate, lloyd
from quickmeans.kmeans.rows import Context, Index, Points, Start
from quickmeans.kmeans.settings import Settings

_COLUMNS = 16  # distances between starting points are measured in so many leading directions, plus the rest
_ROWS_PER_CENTER = 16  # k-means++ and the first iterations see so many rows per centroid
_SAMPLE_ITERATIONS = 5  # on that sample
_FEW_TRIALS = 3  # draws per centroid where there are more than 512; else as many as scikit-learn makes
_FEW_ROWS = 2048  # with fewer rows, equal ones are merged, so that a weight is the same as repetition

Draw = Callable[[Points, int, np.random.Generator], NDArray[np.float64]]


def random_rows(points: Points, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Different rows of X, drawn by weight and centered."""
    rows, weights = candidates(points, len(points), rng)
    keys = rng.exponential(size=len(rows)) / weights
    chosen = np.argsort(keys, kind="stable")[:n_clusters]
    return _repeated(points.take(rows[chosen]), n_clusters)


def kmeans_plusplus(points: Points, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows of X, each the best of a few drawn by weight times squared distance from those before it.

    Distances are those in the leading directions of a sample, plus what the two rows have outside of them.
    """
    rows, weights = candidates(points, sample_size(len(points), n_clusters), rng)
    projected, rest = _projected(points, rows, rng)
    chosen = kernels.seed(
        projected,
        rest,
        weights,
        min(int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())), len(rows) - 1),
        rng.random((n_clusters, _FEW_TRIALS if n_clusters > 512 else 2 + int(np.log(n_clusters)))),
    )
    return _repeated(points.take(rows[chosen]), n_clusters)


DRAWS: dict[str, Draw] = {"k-means++": kmeans_plusplus, "random": random_rows}


def _projected(
    points: Points, rows: Index, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The rows in some leading directions, one direction after the other, and their squared distances from these."""
    step = block_rows(points.n_columns)
    sample = points.take(rows[np.linspace(0, len(rows) - 1, min(len(rows), step)).astype(np.int64)])
    unit = (points.scatter / points.total) ** 0.5 or 1.0  # so that squares neither overflow nor vanish
    start = rng.standard_normal((sample.shape[1], _COLUMNS + 8))[:, : min(sample.shape)]
    basis = leading_directions(sample / unit, leading_directions(sample / unit, start))[:, :_COLUMNS]
    projected, rest = np.empty((basis.shape[1], len(rows)), np.float32), np.empty(len(rows), np.float32)
    for begin in range(0, len(rows), step):
        Y = points.take(rows[begin : begin + step]) / unit
        Z = Y @ basis
        projected[:, begin : begin + step] = Z.T
        rest[begin : begin + step] = np.maximum(squared_norms(Y) - squared_norms(Z), 0)
    return projected, rest


def _repeated(centers: NDArray[np.float64], n_clusters: int) -> NDArray[np.float64]:
    """The centroids, some of them twice if there are too few: empty clusters are refilled later."""
    return np.resize(centers, (n_clusters, centers.shape[1])) if len(centers) < n_clusters else centers


def candidates(points: Points, count: int, rng: np.random.Generator) -> tuple[Index, NDArray[np.float64]]:
    """Rows with weight that may become centroids, and their weights.

    Few rows are all candidates: equal ones become one with the sum of their weights, in an order that does not depend
    on theirs. Of more rows, `count` are drawn.
    """
    weights = np.ones(len(points)) if points.weights is None else points.weights
    rows = np.flatnonzero(weights > 0)
    if len(rows) <= _FEW_ROWS:
        values = points.rows.take(rows).astype(np.float64)
        _, first, inverse = np.unique(values, axis=0, return_index=True, return_inverse=True)
        return rows[first], np.bincount(inverse.ravel(), weights[rows]).astype(np.float64)
    if count < len(rows):
        rows = np.sort(rng.choice(rows, count, replace=False))
    return rows, np.asarray(weights[rows], np.float64)


def sample_size(n_rows: int, n_clusters: int) -> int:
    """How many rows stand for all of them at the start."""
    return min(n_rows, max(_ROWS_PER_CENTER * n_clusters, _FEW_ROWS))


# ---- the start of a run ----------------------------------------------------------------------------------------------


def start_in_memory(points: Points, context: Context) -> Start:
    """From all rows, or from a sample if `sample_start` is set and there are more than twice as many."""
    size, settings = sample_size(len(points), context.settings.n_clusters), context.settings
    if not settings.sample_start or len(points) <= 2 * size:
        return _start_from(points, points, context)
    index = np.sort(context.rng.choice(len(points), size, replace=False))
    if points.weights is not None and np.count_nonzero(points.weights[index]) < settings.n_clusters:
        return _start_from(points, points, context)
    return _start_from(points, points.rows.subset(index).points(settings, ()), context)


def start_from_stream(points: Points, context: Context) -> Start:
    """From rows with weight that are brought into memory: all if there are few, else a sample."""
    index = stream_sample(len(points), points.weights, context.settings.n_clusters, context.rng)
    return _start_from(points, points.rows.subset(index).points(context.settings, ()), context)


def stream_sample(n_rows: int, weights: NDArray[np.float64] | None, n_clusters: int, rng: np.random.Generator) -> Index:
    """The rows of a stream that a start is taken from."""
    index = np.arange(n_rows) if weights is None else np.flatnonzero(weights > 0)
    size = sample_size(n_rows, n_clusters)
    return np.sort(rng.choice(index, size, replace=False)) if len(index) > 2 * size else index


def sampled_rows(shape: tuple[int, int], weights: NDArray[np.float64] | None, settings: Settings, seed: int) -> Index:
    """The numbers, in ascending order, of the rows of a stream that a run with this seed takes for its samples."""
    start_rng, screen_rng = run_generators(seed)
    calibration = sample_index(*shape, screen_rng)
    if not isinstance(settings.init, str):
        return np.unique(calibration)
    return np.union1d(calibration, stream_sample(shape[0], weights, settings.n_clusters, start_rng))


def run_generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """The random numbers of a run: for its start, and for the choice of screens."""
    start_rng, screen_rng = np.random.default_rng(seed).spawn(2)
    return start_rng, screen_rng


def _start_from(points: Points, sample: Points, context: Context) -> Start:
    """Draw centroids from a sample and, if it is not all rows, improve them by a few iterations on it."""
    settings, rng = context.settings, context.rng
    assert isinstance(settings.init, str)
    centers, counts = DRAWS[settings.init](sample, settings.n_clusters, rng), None
    n_iter = _SAMPLE_ITERATIONS if settings.sample_start and len(sample) < len(points) else 0
    if settings.batch_size is not None:  # in all no more rows than one pass has
        n_iter = min(n_iter, len(points) // len(sample))
    if n_iter:
        context.say(f"Start: {n_iter} iterations on {len(sample)} of {len(points)} rows")
        choose = chooser(settings, sample, rng)
        iterate = Iterate(centers, choose(centers))
        passes = sample.rows.passes(sample, settings.n_clusters, stateless=False)
        lloyd(passes, iterate, choose, max_iter=n_iter)
        centers, counts = iterate.centers, passes.sums.weights.copy()
    if sample is not points:
        centers = np.asarray(centers + sample.geometry.mean - points.geometry.mean, np.float64)
    return Start(centers, counts)


def chooser(settings: Settings, points: Points, rng: np.random.Generator) -> ScreenChooser:
    """What chooses the screens of a run over these points."""
    compression = None if settings.learns_product else settings.compression
    project = settings.batch_size is None and not settings.stateless
    shortlist = min(settings.shortlist or 0, settings.n_clusters)
    return ScreenChooser(points, rng, shortlist=shortlist, compression=compression, project=project)


def given_start(points: Points, context: Context) -> Start:
    """Centroids that the user gives, or that a function of theirs makes."""
    init = context.settings.init
    if callable(init):
        state = np.random.RandomState(context.rng.integers(2**31))
        init = init(points.rows.whole(), context.settings.n_clusters, random_state=state)
    shape = (context.settings.n_clusters, points.n_columns)
    return Start(points.geometry.centered(check_centers(init, shape, points.geometry)))


def check_centers(init: Any, shape: tuple[int, int], geometry: Geometry) -> NDArray[np.float64]:
    """The given centroids in float64 and C order."""
    try:
        centers = np.array(init, np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"init must be an array of numbers of shape {shape}, got {type(init).__name__}.") from None
    if not np.isfinite(centers).all():
        raise ValueError("Input init contains NaN or infinity; every entry must be finite.")
    if centers.shape != shape:
        raise ValueError(f"init must have shape {shape}, one row per cluster, got {centers.shape}.")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.einsum("kd,kd->", centers, centers)):
            raise ValueError("The squares of the numbers in init overflow float64; scale X and init.")
    if geometry.spherical and not np.linalg.norm(centers, axis=1).all():
        raise ValueError("init has a zero row, which has no direction.")
    return centers
