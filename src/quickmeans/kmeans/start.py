"""Where the centroids start."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.calibration import ScreenChooser, sample_index
from quickmeans.kmeans.context import Context, Start, start_generator
from quickmeans.kmeans.dense import DenseRows, DenseSearch
from quickmeans.kmeans.geometry import Geometry
from quickmeans.kmeans.grouped_screens import GroupedScreens, look_through_groups
from quickmeans.kmeans.levels import by_levels
from quickmeans.kmeans.neighbor_screen import NeighborScreens
from quickmeans.kmeans.rows import Index, Points
from quickmeans.kmeans.settings import Effort, Settings
from quickmeans.kmeans.swaps import improve, improve_locally

_SEED_ROWS = 8  # k-means++ sees so many rows per centroid,
_LEAST_SEED_ROWS = 512  # or so many if that is more
_MOST_DRAWS = 8  # per centroid: as many as scikit-learn makes for up to a thousand, and one vector holds
_SEARCH_ROWS = 64  # the search begins with so many rows per centroid,
_LEAST_ROWS = 2048  # or so many if that is more,
_ENOUGH_ROWS = 256  # (of so many per centroid, breaths among the others have nothing more to learn)
_WHOLE_ENTRIES = 1 << 24  # and ends with all rows if a copy of them in memory takes at most 64 MB;
_SAMPLE_ENTRIES = 1 << 22  # else it has as many rows as 16 MB hold,
_MOST_ENTRIES = 1 << 26  # or, if these are fewer than 64 per centroid, up to 256 MB of rows
_STREAM_ROWS = 16  # with many clusters and rows that are not in memory so many per centroid,
_STREAM_ENTRIES = 1 << 28  # in up to 1 GB, or two per centroid
_FLAT_WORK = 1 << 33  # multiply-adds of a pass over the first rows, 0.2 seconds on two cores: beyond, start by levels
_TINY_ENTRIES = 1 << 12  # numbers in X: a search takes less time than to begin a fit,
_TINY_ROWS = 512  # of at most so many rows,
_TINY_DRAWS = 4  # so there are some, at most so many, until plain iterations from another draw end as the best search
_AGREE = 1e-6  # to this share
_AGREE_ITERATIONS = 20  # at most, of these iterations
_FIRST_ITERATIONS = 3  # before the first swaps
_SAMPLE_ITERATIONS = 10  # at most, after a search on a sample
_UNSEEN = 8  # one row in so many of a sample is not searched: it tells whether other rows gain by the search,
_LOSS = 1e-4  # or lose by it more than this share of their objective
_ALL = 0.999  # rows with at least this share of the weight are all rows, up to rounding
# In the groups of a start by levels. Eight draws and a search in every group took six times as long; after four rounds
# of swaps the objective was 0.2 % lower for it (word vectors, K = 16384).
_LEVEL_DRAWS, _LEVEL_ITERATIONS = 2, 2

Draw = Callable[[DenseRows, int, np.random.Generator], NDArray[np.float64]]


def random_rows(rows: DenseRows, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Different rows, drawn by weight."""
    keys = rng.exponential(size=len(rows)) / rows.weights
    chosen = np.argsort(keys, kind="stable")[:n_clusters]
    return _repeated(rows.rows[chosen], n_clusters)


def kmeans_plusplus(rows: DenseRows, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows, each the best of a few drawn by weight times squared distance from those before it.

    Few rows per centroid are enough: what the draws miss, swaps mend. Many centroids are found by levels.
    """
    if not is_flat(rows.n_columns, n_clusters):
        if len(rows) <= n_clusters:
            return _repeated(rows.rows, n_clusters)
        return by_levels(rows, n_clusters, rng, _group_centers)
    return _flat_draw(rows, n_clusters, rng)


def _flat_draw(
    rows: DenseRows, n_clusters: int, rng: np.random.Generator, most_draws: int = _MOST_DRAWS
) -> NDArray[np.float64]:
    """The same, not by levels."""
    few = rows.sample(max(_SEED_ROWS * n_clusters, _LEAST_SEED_ROWS), rng)
    total = np.cumsum(few.weights)
    first = min(int(np.searchsorted(total, rng.random() * total[-1])), len(few) - 1)
    uniforms = rng.random((n_clusters, min(2 + int(np.log(n_clusters)), most_draws)))
    chosen = kernels.seed(few.rows, few.weights, first, uniforms, few.n_threads)
    return _repeated(few.rows[chosen], n_clusters)


def _group_centers(rows: DenseRows, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Centroids of one group of a start by levels; swaps among all groups follow."""
    search = rows.search(_flat_draw(rows, n_clusters, rng, _LEVEL_DRAWS), kernels.Search)
    search.iterate(_LEVEL_ITERATIONS)
    return search.means()


DRAWS: dict[str, Draw] = {"k-means++": kmeans_plusplus, "random": random_rows}


def _repeated(centers: NDArray[Any], n_clusters: int) -> NDArray[np.float64]:
    """The centroids, some of them twice if there are too few: empty clusters are refilled later."""
    centers = centers.astype(np.float64)
    return centers if len(centers) == n_clusters else np.resize(centers, (n_clusters, centers.shape[1]))


def sample_size(n_rows: int, n_columns: int, n_clusters: int) -> int:
    """How many rows stand for all of them at the start."""
    per_center = min(_SEARCH_ROWS * n_clusters, _MOST_ENTRIES // n_columns)
    return min(n_rows, max(_SAMPLE_ENTRIES // n_columns, per_center, n_clusters))


def stream_sample_size(n_rows: int, n_columns: int, n_clusters: int) -> int:
    """The same for rows that are not in memory: with many clusters no swaps among all rows follow."""
    size = sample_size(n_rows, n_columns, n_clusters)
    if is_flat(n_columns, n_clusters):
        return size
    many = max(min(_STREAM_ROWS * n_clusters, _STREAM_ENTRIES // n_columns), 2 * n_clusters)
    return min(n_rows, max(size, many))


def iterates_natively(points: Points, settings: Settings) -> bool:
    """Whether iterations take a copy of all rows: there is memory for it, and no screen would be much faster."""
    plain = settings.iterates_plainly and is_flat(points.n_columns, settings.n_clusters)
    return plain and points.rows.in_memory and len(points) * points.n_columns <= _WHOLE_ENTRIES


def stays_among_neighbors(points: Points, settings: Settings) -> bool:
    """Whether there are so many clusters that rows are compared with the centroids near their own only."""
    many = not is_flat(points.n_columns, settings.n_clusters)
    return settings.iterates_plainly and many and points.rows.fits_in_memory()


def is_flat(n_columns: int, n_clusters: int) -> bool:
    """Whether every row of a search can be compared with every centroid."""
    return _SEARCH_ROWS * n_clusters**2 * n_columns <= _FLAT_WORK


# ---- the start of a run ----------------------------------------------------------------------------------------------


def start_in_memory(points: Points, context: Context) -> Start:
    """From all rows, or from a sample if there are more than the search looks at."""
    rows, whole = searched_rows(points, context)
    return _drawn_start(points, rows, context, whole=whole)


def start_from_sample(points: Points, sample: Points, context: Context) -> Start:
    """From a sample of the rows that was brought into memory."""
    return _drawn_start(points, sample.dense(), context, whole=False)


def start_from_stream(points: Points, context: Context) -> Start:
    """From rows with weight that are brought into memory: all if there are few, else a sample."""
    rows = _stream_points(points, context).dense()  # the rows that this copies are needed no more
    return _drawn_start(points, rows, context, whole=False)


def _stream_points(points: Points, context: Context) -> Points:
    """The rows of a stream that a start is taken from, in memory."""
    index = stream_sample(points.rows.shape, points.weights, context.settings.n_clusters, context.rng)
    return points.rows.subset(index).points(context.settings, ())


def stream_sample(
    shape: tuple[int, int], weights: NDArray[np.float64] | None, n_clusters: int, rng: np.random.Generator
) -> Index:
    """The rows of a stream that a start is taken from."""
    index = _sample(shape[0], weights, stream_sample_size(*shape, n_clusters), rng)
    return np.arange(shape[0]) if index is None else index


def _sample(n_rows: int, weights: NDArray[np.float64] | None, size: int, rng: np.random.Generator) -> Index | None:
    """So many rows with weight in ascending order, or None for all."""
    if size >= n_rows:
        return None
    index = np.arange(n_rows) if weights is None else np.flatnonzero(weights > 0)
    return np.sort(rng.choice(index, size, replace=False)) if len(index) > size else index


def sampled_rows(shape: tuple[int, int], weights: NDArray[np.float64] | None, settings: Settings, seed: int) -> Index:
    """The numbers, in ascending order, of the rows of a stream that a run with this seed takes for its samples."""
    calibration = sample_index(*shape, np.random.default_rng(screen_seed(seed)))
    if not isinstance(settings.init, str):
        return np.unique(calibration)
    return np.union1d(calibration, stream_sample(shape, weights, settings.n_clusters, start_generator(seed)))


def screen_seed(seed: int) -> tuple[int, int]:
    """The seed of a run for the choice of screens."""
    return seed, 1


# ---- the search ------------------------------------------------------------------------------------------------------


def searched_rows(points: Points, context: Context) -> tuple[DenseRows, bool]:
    """The rows that a search looks at, and whether these are all of those that iterations look at."""
    if iterates_natively(points, context.settings):
        return points.dense(), True
    if not points.rows.in_memory:
        return _stream_points(points, context).dense(), False
    size = sample_size(*points.rows.shape, context.settings.n_clusters)
    if stays_among_neighbors(points, context.settings):
        size = min(size, _SEED_ROWS * context.settings.n_clusters)  # swaps among all rows follow
    return points.dense(_sample(len(points), points.weights, size, context.rng)), False


def _drawn_start(points: Points, rows: DenseRows, context: Context, *, whole: bool) -> Start:
    """Draw centroids from some rows and move them while that pays; for very few rows, keep the best of several."""
    settings = context.settings
    tiny = rows.rows.size <= _TINY_ENTRIES and len(rows) <= _TINY_ROWS and settings.n_clusters > 1
    if not (tiny and settings.effort.passes):
        return _searched(points, rows, _drawn(points, rows, context), context, whole=whole)
    context = context.unobserved()
    best = _searched(points, rows, _drawn(points, rows, context), context, whole=whole)
    try:
        for _ in range(_TINY_DRAWS - 1):
            centers = _drawn(points, rows, context)
            if best.ended or _iterations_end_at(best.objective, points, rows, centers, settings):
                break
            start = _searched(points, rows, centers, context, whole=whole)
            if start.ended:
                return best._replace(ended=True, interrupted=start.interrupted)
            if start.objective < best.objective:
                best = start
    except KeyboardInterrupt:
        return best._replace(ended=True, interrupted=True)
    return best


def _drawn(points: Points, rows: DenseRows, context: Context) -> NDArray[np.float64]:
    """Centered centroids drawn from the rows."""
    assert isinstance(context.settings.init, str)
    drawn = DRAWS[context.settings.init](rows, context.settings.n_clusters, context.rng)
    return np.asarray(rows.unit * drawn + (rows.origin - points.geometry.mean), np.float64)


def _iterations_end_at(
    objective: float, points: Points, rows: DenseRows, centers: NDArray[np.float64], settings: Settings
) -> bool:
    """Whether some iterations from these centered centroids, without a search, end with this objective.

    Most draws do where clusters are easy to find: then there is nothing better.
    """
    search = DenseSearch.of(rows, centers, points.geometry, kernels.Search)
    search.native.iterate(_AGREE_ITERATIONS, points.tolerance(settings.tol) / search.square_unit)
    return abs(search.objective_unit * search.native.objective - objective) <= _AGREE * objective


def _searched(points: Points, rows: DenseRows, centers: NDArray[np.float64], context: Context, *, whole: bool) -> Start:
    """Move centered centroids while that pays: among a few of the rows, then among all of them."""
    K = context.settings.n_clusters
    if not context.settings.effort.passes or K == 1 or stays_among_neighbors(points, context.settings):
        return Start(centers)
    if not is_flat(rows.n_columns, K):
        return _search_among_neighbors(points, rows, centers, context)
    few, effort = rows.sample(max(_SEARCH_ROWS * K, _LEAST_ROWS), context.rng), context.settings.effort
    if few is not rows:
        start = _search_sample(points, few, centers, context, effort)
        if start.interrupted:
            return start
        in_vain, centers = start.centers is centers, start.centers
        if len(few) >= _ENOUGH_ROWS * K and not in_vain:
            effort = effort._replace(patience=0.0)
    search = _search_all if whole else _search_sample
    return search(points, rows, centers, context, effort)


def _search_all(
    points: Points, rows: DenseRows, centers: NDArray[np.float64], context: Context, effort: Effort
) -> Start:
    """Move centered centroids among all rows while that pays."""
    search, history, interrupted = DenseSearch.of(rows, centers, points.geometry, kernels.Search), [], False
    native, tol = search.native, points.tolerance(context.settings.tol) / search.square_unit

    def observe(move: str, objective: float) -> bool:
        history.append(search.objective_unit * objective)
        return context.observe(move, history[-1])

    native.keep()
    try:
        native.iterate(_FIRST_ITERATIONS, tol)
        ended = improve(native, effort, tol, observe)
    except KeyboardInterrupt:
        native.go_back()
        ended = interrupted = True
    objective = np.inf if interrupted else search.objective_unit * native.objective
    return Start(search.centers(), None, search, objective, history, ended, interrupted)


def _search_sample(
    points: Points, rows: DenseRows, centers: NDArray[np.float64], context: Context, effort: Effort
) -> Start:
    """The same among rows that stand for more; in vain if rows that the search has not seen lose by it.

    Of few rows with many features, the means of a part are near that part for no other reason than that they are its
    means. Centroids that are rows themselves are the better start then.
    """
    sampled = _is_sample(points, rows)
    unseen = np.arange(len(rows)) % _UNSEEN == 0
    seen = rows.take(np.flatnonzero(~unseen)) if sampled else rows
    search = DenseSearch.of(seen, centers, points.geometry, kernels.Search)
    native, tol, moves = search.native, points.tolerance(context.settings.tol) / search.square_unit, list[str]()
    native.keep()
    try:
        native.iterate(_FIRST_ITERATIONS, tol)
        others = rows.take(np.flatnonzero(unseen))
        before = _objective(others, native.means()) if sampled else 0.0

        def observe(move: str, _: float) -> bool:
            moves.append(move)
            return sampled and _objective(others, native.means()) > (1 + _LOSS) * before

        if improve(native, effort, tol, observe):
            context.say(f"Search among {len(rows)} of {len(points)} rows: in vain, they are too few")
            return Start(centers)
        native.iterate(_SAMPLE_ITERATIONS, tol)
        context.say(f"Search among {len(rows)} of {len(points)} rows: {', '.join(moves) or 'nothing to move'}")
    except KeyboardInterrupt:
        native.go_back()
        return Start(search.centers(), search.cluster_weights() if sampled else None, None, np.inf, [], True, True)
    counts = search.cluster_weights() if sampled else None
    return Start(search.centers(), counts, objective=search.objective_unit * native.objective)


def _is_sample(points: Points, rows: DenseRows) -> bool:
    """Whether these rows stand for more than themselves."""
    return rows.weight_unit * float(rows.weights.sum()) < _ALL * points.total


def _objective(rows: DenseRows, centers: NDArray[np.float64]) -> float:
    """The sum of the squared distances of these rows from their nearest of these centroids."""
    search = rows.search(centers, kernels.Search)
    search.iterate(1)
    return search.assigned


def _search_among_neighbors(points: Points, rows: DenseRows, centers: NDArray[np.float64], context: Context) -> Start:
    """The same for many clusters, among rows of a sample."""
    search, interrupted = DenseSearch.of(rows, centers, points.geometry, kernels.LocalSearch), False
    try:
        improve_locally(search.native, context.settings, lambda move, objective: False)
    except KeyboardInterrupt:
        interrupted = True
    counts = search.cluster_weights() if _is_sample(points, rows) else None
    return Start(search.centers(), counts, ended=interrupted, interrupted=interrupted)


# ---- what the user gives ---------------------------------------------------------------------------------------------


def chooser(settings: Settings, points: Points, seed: int | Sequence[int]) -> ScreenChooser:
    """What chooses the screens of a run over these points."""
    compression = None if settings.learns_product else settings.compression
    project = settings.batch_size is None and not settings.stateless
    shortlist = min(settings.shortlist or 0, settings.n_clusters)
    kind = _kind_of_chooser(settings, points)
    return kind(points, seed, shortlist=shortlist, compression=compression, project=project)


def _kind_of_chooser(settings: Settings, points: Points) -> type[ScreenChooser]:
    if not look_through_groups(points, settings):
        return ScreenChooser
    whole_passes = settings.batch_size is None and not settings.stateless
    near = whole_passes and points.rows.keeps_labels and points.geometry.dtype == np.float32
    return NeighborScreens if near else GroupedScreens


def starting_centers(points: Points, context: Context) -> Start:
    """Centered starting centroids: by name, given, or from a function."""
    if isinstance(context.settings.init, str):
        return points.rows.start(points, context)
    return _given_start(points, context)


def _given_start(points: Points, context: Context) -> Start:
    """Centroids that the user gives, or that a function of theirs makes; moved only if a search was asked for."""
    init = context.settings.init
    if callable(init):
        state = np.random.RandomState(context.rng.integers(2**31))
        init = init(points.rows.whole(), context.settings.n_clusters, random_state=state)
    shape = (context.settings.n_clusters, points.n_columns)
    centers = points.geometry.centered(check_centers(init, shape, points.geometry))
    if not context.settings.effort.passes:
        return Start(centers)
    rows, whole = searched_rows(points, context)
    return _searched(points, rows, centers, context, whole=whole)


def check_centers(init: Any, shape: tuple[int, int], geometry: Geometry) -> NDArray[np.float64]:
    """The given centroids in float64 and C order."""
    try:
        centers = np.array(init, np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"init must be an array of numbers of shape {shape}, got {type(init).__name__}.") from None
    if not np.isfinite(centers).all():
        raise ValueError("Input init contains NaN or infinity; every entry must be finite.")
    if centers.shape != shape:
        axis, what = (0, "clusters") if centers.shape[:1] != shape[:1] else (1, "features of the data")
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of {what} {shape[axis]}."
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(np.einsum("kd,kd->", centers, centers)):
            raise ValueError("The squares of the numbers in init overflow float64; scale X and init.")
    if geometry.spherical and not np.linalg.norm(centers, axis=1).all():
        raise ValueError("init has a zero row, which has no direction.")
    return centers
