"""QKMeans: k-means for many clusters in high dimension."""

import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from quickmeans.lloyd.assign import Assignment, ProductRows, Screen, fill_norms
from quickmeans.lloyd.distances import distances
from quickmeans.lloyd.factor import factor_by
from quickmeans.lloyd.init import kmeans_plusplus, random_rows, sample_size
from quickmeans.lloyd.loop import Clustering, lloyd
from quickmeans.lloyd.points import NO_DIRECTION, Points
from quickmeans.lloyd.quick import quick_means
from quickmeans.lloyd.screening import Screener
from quickmeans.progress import CallbackSupportMixin, Watch, begin_callbacks, with_callbacks
from quickmeans.threads import resolve_threads, with_one_blas_thread
from quickmeans.transform.checks import readable

_SAMPLE_ITERATIONS = 5  # on the sample that the start is taken from
_SOLVERS = ("als", "palm4msa", "hierarchical")


class QKMeans(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""K-means whose assignment step goes through a product of small or sparse matrices.

    .. math:: \min \; \sum_i w_i \min_k \|x_i - u_k\|^2

    With a shortlist (the default) centroids are exact means. A product V close to them screens the candidates for
    every point, and their exact distances decide: labels agree with those of plain k-means but for a calibrated few,
    at a fraction of the multiply-adds. With ``shortlist=0`` the centroids are the rows of V themselves, as in the paper
    on QuicK-means: a model of `compression` times fewer numbers, and a somewhat larger objective.

    Parameters
    ----------
    n_clusters : int
        K.
    solver : "als", "palm4msa" or "hierarchical"
        How the factors are learned: sparse alternating least squares, or the two algorithms of the paper.
    compression : float or "auto"
        K D over the number of non-zeros of V. "auto": with a shortlist, whatever makes assignment cheapest; without,
        10. Only for "als".
    n_factors, sparsity_level : int
        Of V, for "palm4msa" and "hierarchical": see :func:`quickmeans.transform.palm4msa`.
    shortlist : int or "auto"
        How many candidates get an exact distance. "auto": as many as a calibrated bound asks for; none if only one
        centroid is left, else mostly two or three. 1: the screen alone decides. 0: the rows of V are the centroids.
    init : "k-means++", "random", array of shape (n_clusters, n_features) or callable
        The starting centroids. A callable is called as ``init(X, n_clusters, random_state)``.
    n_init : int or "auto"
        Runs from different starts, of which the best is kept. "auto": 10 for "random" and callables, else 1.
    max_iter : int
        The most iterations over all rows.
    tol : float
        Stop when centroids move less than this, squared, in units of the mean variance of the features.
    sample_start : bool
        Make the first few iterations on a sample of 16 rows per cluster, if there are more than twice as many. Not
        done if `init` is an array or a callable.
    spherical : bool
        Compare directions (cosine similarity): minimise :math:`\sum_i w_i \|x_i / |x_i| - u_k\|^2` over centroids of
        length one, which is twice the sum of :math:`w_i (1 - \cos)`. Needs a shortlist.
    random_state : int, RandomState or None
        Seeds the start and the samples.
    n_threads : int, optional
        At most so many threads. Results do not depend on it.
    verbose : int
        With 1, say how the fit goes: a bar in a terminal (if rich is there), lines elsewhere.
    callback : callable, optional
        Called as ``callback(iteration, objective)`` after every iteration; a true result stops the run. scikit-learn's
        own callbacks (from its version 1.9 on) are set with ``set_callbacks``.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
    labels_ : array of int32, shape (n_samples,)
    inertia_ : float
        The objective, for `labels_` and `cluster_centers_`.
    objective_history_ : array
        The objective after every assignment and every update of the centroids. With `shortlist=0` it never rises but
        for the hierarchical solver, with a shortlist hardly ever.
    product_ : SparseProduct or None
        V, of centroids about the mean: its rows plus `mean_` are, or are close to, the centroids. None if no product
        would pay: then assignment goes through the dense centroids.
    mean_ : array of shape (n_features,)
    reach_ : float
        How far the screen is mistrusted; see :mod:`quickmeans.lloyd.assign`.
    n_candidates_ : float
        The mean number of exact distances per point in the last pass over the data.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str
        If X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans import QKMeans
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = QKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0, 0], [12, 3]]) == model.labels_[[0, 3]]
    array([ True,  True])
    >>> model.inertia_
    16.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        solver: str = "als",
        compression: float | str = "auto",
        n_factors: int | str = "auto",
        sparsity_level: int = 5,
        shortlist: int | str = "auto",
        init: str | ArrayLike | Callable[..., Any] = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        sample_start: bool = True,
        spherical: bool = False,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Callable[[int, float], object] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.solver = solver
        self.compression = compression
        self.n_factors = n_factors
        self.sparsity_level = sparsity_level
        self.shortlist = shortlist
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.sample_start = sample_start
        self.spherical = spherical
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback

    # ---- fitting --------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X; y is ignored. If that fails, an earlier fit stays as it was."""
        self._check_parameters()
        before = dict(vars(self))
        try:
            return self._fit(X, sample_weight)
        except BaseException:
            if vars(self).get("cluster_centers_") is before.get("cluster_centers_"):
                self._restore_features(before)
            raise

    def _restore_features(self, before: dict[str, Any]) -> None:
        """What X was like in the earlier fit."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if name in before:
                setattr(self, name, before[name])

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> Self:
        X = self._check_rows(X, reset=True)
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
        weights = _check_sample_weight(sample_weight, X.shape[0])
        if self.compression != "auto" and X.shape[1] / float(self.compression) < 1 + 1 / self.n_clusters:
            warnings.warn(
                f"compression={self.compression:g} would leave less than one number per centroid of "
                f"{X.shape[1]} features; centroids are kept dense.",
                stacklevel=4,
            )
        points = Points(X, weights, resolve_threads(self.n_threads), spherical=bool(self.spherical))
        seeds = check_random_state(self.random_state).randint(2**31, size=self._n_runs())
        root = begin_callbacks(self, len(seeds))
        best, interrupted = self._best_run(points, seeds, root)
        self._keep(points, best)
        if interrupted:
            raise KeyboardInterrupt
        if root is not None:
            root.call_on_fit_task_end(estimator=self)
        return self

    def _best_run(self, points: Points, seeds: Any, root: Any) -> tuple[Clustering, bool]:
        """The best of the runs, and whether Ctrl-C ended them; without a run to show for it, that is passed on."""
        best: Clustering | None = None
        interrupted = False
        for seed in seeds:
            try:
                with Watch(self, root) as watch:
                    run = self._run(points, np.random.default_rng(seed), watch)
            except KeyboardInterrupt:
                if best is None:
                    raise
                return best, True
            if best is None or run.objective < (1 - 1e-9) * best.objective:  # rounding does not count
                best = run
            interrupted = run.interrupted
            if interrupted:
                break
        assert best is not None
        return best, interrupted

    @with_one_blas_thread
    def _run(self, points: Points, rng: np.random.Generator, watch: Watch) -> Clustering:
        """One start and the iterations from there."""
        start_rng, screen_rng = rng.spawn(2)
        centers = self._start(points, start_rng, watch)
        tol = self.tol * points.scatter / (points.total * points.X.shape[1])
        screener = self._screener(points, screen_rng)
        if self.shortlist != 0:
            return lloyd(points, centers, screener, max_iter=self.max_iter, tol=tol, observe=watch)
        factor = factor_by(self.solver, self.compression, self.n_factors, self.sparsity_level, points.frame.dtype)
        return quick_means(points, centers, screener, factor, max_iter=self.max_iter, tol=tol, observe=watch)

    def _start(self, points: Points, rng: np.random.Generator, watch: Watch) -> NDArray[np.float64]:
        """Starting centroids about the mean."""
        if not isinstance(self.init, str):
            return self._given_start(points, rng)
        draw = kmeans_plusplus if self.init == "k-means++" else random_rows
        size = sample_size(points, self.n_clusters)
        if not self.sample_start or len(points) <= 2 * size:
            return draw(points, self.n_clusters, rng)
        chosen = np.sort(rng.choice(len(points), size, replace=False))
        rows = points.X[chosen]
        weights = None if points.weights is None else points.weights[chosen]
        if weights is not None and np.count_nonzero(weights) < self.n_clusters:
            return draw(points, self.n_clusters, rng)
        watch.say(f"Start: {_SAMPLE_ITERATIONS} iterations on {size} of {len(points)} rows")
        sample = Points(rows, weights, points.n_threads, spherical=points.frame.spherical)
        centers = draw(sample, self.n_clusters, rng)
        run = lloyd(sample, centers, self._screener(sample, rng), max_iter=_SAMPLE_ITERATIONS, tol=0.0)
        if run.interrupted:
            raise KeyboardInterrupt
        return np.asarray(run.centers + sample.frame.mean - points.frame.mean, np.float64)

    def _given_start(self, points: Points, rng: np.random.Generator) -> NDArray[np.float64]:
        shape = (self.n_clusters, points.X.shape[1])
        init = self.init
        if callable(init):
            init = init(points.X, self.n_clusters, random_state=np.random.RandomState(rng.integers(2**31)))
        centers = check_array(init, dtype=np.float64, ensure_all_finite=True, input_name="init")
        if centers.shape != shape:
            raise ValueError(f"init must have shape {shape}, one row per cluster, got {centers.shape}.")
        if not np.isfinite(np.einsum("kd,kd->", centers, centers)):
            raise ValueError("The squares of the numbers in init overflow float64; scale X and init.")
        if points.frame.spherical and not np.linalg.norm(centers, axis=1).all():
            raise ValueError("init has a zero row, which has no direction.")
        return points.frame.centred(centers)

    def _screener(self, points: Points, rng: np.random.Generator) -> Screener:
        m = self.shortlist if isinstance(self.shortlist, int | np.integer) else 0
        compression = None if self.compression == "auto" or self.shortlist == 0 else float(self.compression)
        return Screener(points, rng, shortlist=min(int(m), self.n_clusters), compression=compression)

    def _keep(self, points: Points, run: Clustering) -> None:
        """The fitted attributes."""
        self.mean_ = points.frame.mean
        self.product_ = run.screen.product
        self.reach_ = run.screen.reach
        self.cluster_centers_ = (run.centers + points.frame.mean).astype(points.result_dtype)
        self.labels_ = run.found.labels
        self.inertia_ = run.objective
        self.objective_history_ = np.array(run.history)
        self.n_candidates_ = run.found.n_settled / len(points)
        self.n_iter_ = run.n_iter
        self._n_features_out = self.n_clusters
        self._frame = points.frame
        self._fitted_shortlist = self.shortlist
        self._screen: Screen | ProductRows = run.screen
        n_found = len(np.unique(run.found.labels))
        if n_found < self.n_clusters:
            reason = (
                "the product is too coarse for more; a lower compression helps"
                if self.shortlist == 0 and points.scatter > 0
                else "X has no more rows that differ, or they have no weight"
            )
            warnings.warn(
                f"Only {n_found} of the {self.n_clusters} clusters have rows: {reason}.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # ---- use ------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, *, exact: bool = False) -> NDArray[np.int32]:
        """The nearest centroid of every row.

        With ``exact=True`` candidates are all those that a bound which always holds lets through, so the answer is
        the one of plain k-means (to rounding), only slower.
        """
        return self._assign(X, exact=exact, settle_all=False)[1].labels

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> NDArray[np.int32]:
        """Fit, and return `labels_`."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_

    def transform(self, X: Any) -> NDArray[Any]:
        """Distances of every row to every centroid."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False, finite=True)
        centers = self.cluster_centers_.astype(np.float64) - self.mean_
        return distances(X, centers, self._frame, np.float32 if X.dtype == np.float32 else np.float64)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the objective on X."""
        X, found = self._assign(X, exact=False, settle_all=True)
        fill_norms(X, self._frame, found)
        weights = _check_sample_weight(sample_weight, len(found.labels))
        distances = found.squared_distances(self._frame).astype(np.float64)
        return -float(distances.sum() if weights is None else distances @ weights)

    def save(self, path: str | PathLike[str], *, labels: bool = False) -> None:
        """Write the fitted model to a file for :func:`quickmeans.load`; see :func:`quickmeans.persistence.save`."""
        from quickmeans.persistence import save  # which imports this module

        save(self, path, labels=labels)

    def _assign(self, X: Any, *, exact: bool, settle_all: bool) -> tuple[Any, Assignment]:
        check_is_fitted(self)
        screen = self._screen.certain() if exact else self._screen
        X = self._check_rows(X, reset=False)
        found = Assignment.empty(X.shape[0], screen.dtype)
        screen.assign(X, found, resolve_threads(self.n_threads), settle_all=settle_all)
        if self._frame.spherical and (found.norms <= 0).any():
            raise ValueError(NO_DIRECTION.format(int(np.argmax(found.norms <= 0))))
        return X, found

    def _make_screen(self) -> None:
        """What `predict` computes with; it follows from the fitted attributes."""
        centers = self.cluster_centers_.astype(np.float64) - self.mean_
        shortlist = 0 if self._fitted_shortlist == "auto" else min(int(self._fitted_shortlist), len(centers))
        if self.product_ is not None and self._fitted_shortlist == 0:
            self._screen = ProductRows(self.product_, self._frame)
            return
        self._screen = Screen(centers, self._frame, self.product_, reach=self.reach_, shortlist=shortlist)

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool, finite: bool = False) -> Any:
        """X as it is if it can be: the kernel reads every numeric type, and finds NaN and infinity itself."""
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=finite or sp.issparse(X)
        )
        if X.dtype.kind not in "fiu" or X.dtype.itemsize > 8:
            X = X.astype(np.float64)
        return X if sp.issparse(X) else readable(X)

    def _check_parameters(self) -> None:
        _check_whole("n_clusters", self.n_clusters, 1)
        _check_whole("max_iter", self.max_iter, 1)
        if self.n_init != "auto":
            _check_whole("n_init", self.n_init, 1)
        if self.shortlist != "auto":
            _check_whole("shortlist", self.shortlist, 0, " or 'auto'")
        if self.spherical and self.shortlist == 0:
            raise ValueError("spherical k-means needs a shortlist: rows of a product do not have length one.")
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(map(repr, _SOLVERS))}, got {self.solver!r}.")
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(f"init must be 'k-means++', 'random', an array or a callable, got {self.init!r}.")
        if self.compression != "auto" and not (_is_number(self.compression) and float(self.compression) >= 1):
            raise ValueError(f"compression must be a number not below 1, or 'auto', got {self.compression!r}.")
        _check_whole("sparsity_level", self.sparsity_level, 1)
        if self.n_factors != "auto":
            _check_whole("n_factors", self.n_factors, 1, " or 'auto'")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable as callback(iteration, objective), got {self.callback!r}.")
        if not _is_number(self.tol) or not 0 <= self.tol < np.inf:
            raise ValueError(f"tol must be a finite number not below 0, got {self.tol!r}.")

    def _n_runs(self) -> int:
        if self.n_init != "auto":
            return int(self.n_init)
        return 10 if callable(self.init) or (isinstance(self.init, str) and self.init == "random") else 1

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_screen"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "cluster_centers_"):
            self._make_screen()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_whole(name: str, value: Any, least: int, more: str = "") -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number not below {least}{more}, got {value!r}.")


def _check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """One weight per row, or None for equal ones."""
    if sample_weight is None:
        return None
    if _is_number(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    weights = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_all_finite=True, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one weight per row, got {weights.shape}.")
    if (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must not be negative, and not all zero.")
    return np.ascontiguousarray(weights, np.float64)
