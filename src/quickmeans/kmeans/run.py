"""One run of a fit: a start, and the iterations from there."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from quickmeans.files.checkpoints import Checkpoint
from quickmeans.files.identity import identity_of_data
from quickmeans.kmeans.algorithm1 import Factor, quick_means
from quickmeans.kmeans.calibration import Screener
from quickmeans.kmeans.follower import ProductFollower
from quickmeans.kmeans.learn import factor_by
from quickmeans.kmeans.lloyd import Clustering, iterate, lloyd
from quickmeans.kmeans.minibatch import mini_batch_means
from quickmeans.kmeans.passes import ChunkPass, Pass, passes_over
from quickmeans.kmeans.points import Elsewhere, Frame, Points
from quickmeans.kmeans.rows import Stream
from quickmeans.kmeans.screen import ProductRows
from quickmeans.kmeans.start import kmeans_plusplus, random_rows, sample_size
from quickmeans.threads import with_one_blas_thread

_SAMPLE_ITERATIONS = 5  # on the sample that the start is taken from


@with_one_blas_thread
def run_once(model: Any, points: Points, seed: int, watch: Any) -> Clustering:
    """The clustering of the points that follows from the parameters of the model and a seed."""
    checkpoint = None if model.checkpoint is None else _checkpoint(model, points, seed)
    seed = seed if checkpoint is None else checkpoint.seed
    start_rng, screen_rng = np.random.default_rng(seed).spawn(2)
    screener = screener_of(model, points, screen_rng)
    run = None if checkpoint is None else checkpoint.resume(screener)
    if run is None:
        if isinstance(points, Elsewhere) and isinstance(model.init, str) and model.init == "k-means++":
            centers, counts = points.start(model.n_clusters, seed, screener), None
        else:
            centers, counts = starting_centers(model, points, start_rng, watch.say)
        run = Clustering(centers, screener(centers), counts=None if model.batch_size is None else counts)
        if run.counts is not None:
            screener.keep()
    tol = model.tol * points.scatter / (points.total * points.X.shape[1])
    observe = watch if checkpoint is None else checkpoint.before(watch, run, screener)
    passes = _passes(model, points)
    how = {"max_iter": model.max_iter, "tol": tol, "observe": observe}
    if model.batch_size is not None:
        follower = screener if model.shortlist != 0 else follower_of(model, points.frame, run.current)
        return mini_batch_means(passes, run, follower, min(int(model.batch_size), len(points)), seed, **how)
    if model.shortlist != 0:
        return lloyd(passes, run, screener, **how)
    return quick_means(passes, run, _factor_of(model, points.frame), **how)


def _checkpoint(model: Any, points: Points, seed: int) -> Checkpoint:
    shape, frame = (len(points), points.X.shape[1]), points.frame
    data = identity_of_data(shape, points.X.dtype, points.total, frame.mean, points.variances)
    return Checkpoint(model.checkpoint, data=data, parameters=model.get_params(deep=False), frame=frame, seed=seed)


def _factor_of(model: Any, frame: Frame) -> Factor:
    return factor_by(model.solver, model.compression, model.n_factors, model.sparsity_level, frame.dtype)


def follower_of(model: Any, frame: Frame, last: ProductRows | None) -> ProductFollower:
    """What makes the product follow in mini-batches, from the last one if there is one."""
    return ProductFollower(_factor_of(model, frame), frame, last)


def _passes(model: Any, points: Points) -> Pass:
    """With a checkpoint, passes that remember nothing from one to the next: what is not kept cannot be missed."""
    if isinstance(points, Elsewhere):
        passes: Pass = points.passes(model.n_clusters)
        return passes
    if model.checkpoint is not None:
        return ChunkPass(points, model.n_clusters, with_bounds=False)
    return passes_over(points, model.n_clusters)


def starting_centers(
    model: Any, points: Points, rng: np.random.Generator, say: Callable[[str], None]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Starting centroids about the mean; and, if they are means of the rows of a sample, how much weight these have."""
    if not isinstance(model.init, str):
        return _given_start(model, points, rng), None
    draw = kmeans_plusplus if model.init == "k-means++" else random_rows
    size = sample_size(points, model.n_clusters)
    some = points
    if isinstance(points.X, Stream):
        some = _gathered(points, size, rng)
    elif model.sample_start and len(points) > 2 * size:
        some = _sample(points, np.sort(rng.choice(len(points), size, replace=False)), model.n_clusters)
    iterations = _SAMPLE_ITERATIONS if model.sample_start and len(some) < len(points) else 0
    if model.batch_size is not None:  # in all no more rows than one pass has
        iterations = min(iterations, len(points) // len(some))
    centers, counts = draw(some, model.n_clusters, rng), None
    if iterations:
        say(f"Start: {iterations} iterations on {len(some)} of {len(points)} rows")
        screener = screener_of(model, some, rng)
        run, passes = Clustering(centers, screener(centers)), passes_over(some, model.n_clusters)
        iterate(passes, run, screener, iterations)
        centers, counts = run.centers, passes.sums.weights.copy()
    if some is not points:
        centers = np.asarray(centers + some.frame.mean - points.frame.mean, np.float64)
    return centers, counts


def _sample(points: Points, index: NDArray[np.int64], n_clusters: int) -> Points:
    """Some of the points; all of them if too few of these have weight."""
    weights = None if points.weights is None else points.weights[index]
    if weights is not None and np.count_nonzero(weights) < n_clusters:
        return points
    rows = points.X.take(index) if isinstance(points.X, Stream) else points.X[index]
    return Points(rows, weights, points.n_threads, spherical=points.frame.spherical)


def _gathered(points: Points, size: int, rng: np.random.Generator) -> Points:
    """Points of a stream that have weight, in memory: all if there are few, else a sample."""
    index = np.arange(len(points)) if points.weights is None else np.flatnonzero(points.weights > 0)
    if len(index) > 2 * size:
        index = np.sort(rng.choice(index, size, replace=False))
    return _sample(points, index, 0)


def _given_start(model: Any, points: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    shape = (model.n_clusters, points.X.shape[1])
    init = model.init
    if callable(init):
        if isinstance(points.X, Stream):
            raise TypeError("A callable as init needs rows in memory; for rows that are not, give an array.")
        init = init(points.X, model.n_clusters, random_state=np.random.RandomState(rng.integers(2**31)))
    centers = check_array(init, dtype=np.float64, ensure_all_finite=True, input_name="init")
    if centers.shape != shape:
        raise ValueError(f"init must have shape {shape}, one row per cluster, got {centers.shape}.")
    if not np.isfinite(np.einsum("kd,kd->", centers, centers)):
        raise ValueError("The squares of the numbers in init overflow float64; scale X and init.")
    if points.frame.spherical and not np.linalg.norm(centers, axis=1).all():
        raise ValueError("init has a zero row, which has no direction.")
    return points.frame.centred(centers)


def screener_of(model: Any, points: Points, rng: np.random.Generator) -> Screener:
    """What finds a screen for centroids of these points."""
    m = model.shortlist if isinstance(model.shortlist, int | np.integer) else 0
    compression = None if model.compression == "auto" or model.shortlist == 0 else float(model.compression)
    projects = model.batch_size is None and model.checkpoint is None
    return Screener(points, rng, shortlist=min(int(m), model.n_clusters), compression=compression, projects=projects)
