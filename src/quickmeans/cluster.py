"""QKMeans: k-means for many clusters in high dimension."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from quickmeans.checks import check_flag
from quickmeans.data.output import write_labels
from quickmeans.export.exports import Exports
from quickmeans.files import container
from quickmeans.files.checkpoints import Checkpoint
from quickmeans.inspection import InspectionMixin
from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.kmeans.growth import Drift, resized
from quickmeans.kmeans.lloyd import Clustering
from quickmeans.kmeans.partial import first_batch, follow_rows
from quickmeans.kmeans.rows import Rows, each_block
from quickmeans.kmeans.run import best_of, run_once
from quickmeans.kmeans.settings import Settings
from quickmeans.progress import CallbackSupportMixin, RunObserver, begin_callbacks, with_callbacks
from quickmeans.rollback import unchanged_on_error
from quickmeans.scaling import add_scale, in_scale, original_centers, scale_in, scaled_centers, standardized
from quickmeans.state import State, storable_parameters
from quickmeans.threads import resolve_threads
from quickmeans.validation import centers_of_model, check_rows, check_sample_weight, parameters_of, random_seeds
from quickmeans.warned import warn_of_empty_clusters, warn_of_parameters

_NOT_STORED = {"n_threads", "callback", "checkpoint"}


class QKMeans(
    InspectionMixin,
    Exports,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    r"""K-means whose assignment step goes through a product of small or sparse matrices.

    .. math:: \min \; \sum_i w_i \min_k \|x_i - u_k\|^2

    With a shortlist (the default) centroids are exact means. A product V close to them lists the candidates for every
    row, and their exact distances decide: labels agree with those of plain k-means but for a calibrated few, at a
    fraction of the multiply-adds. With ``shortlist=0`` the centroids are the rows of V themselves, as in the paper on
    QuicK-means: a model of `compression` times fewer numbers, and a somewhat larger objective.

    Parameters
    ----------
    n_clusters : int, default=8
        The number K of clusters.
    solver : {"als", "palm4msa", "hierarchical"} or callable, default="als"
        How the factors of V are learned: sparse alternating least squares, or the two algorithms of the paper, or a
        callable as described in :mod:`quickmeans.transform.solvers`.
    compression : float or "auto", default="auto"
        K D over the number of non-zeros of V. "auto": with a shortlist, whatever makes assignment cheapest; without,
        10. Only for "als".
    n_factors : int, "auto", "paper" or "journal", default="auto"
        The number of factors of V, for "palm4msa" and "hierarchical". "paper" and "journal" are the constraint sets of
        the paper's experiments and of its journal version; see :func:`quickmeans.transform.palm4msa`.
    sparsity_level : int, default=5
        The number of non-zeros per row and column of a factor, for "palm4msa" and "hierarchical".
    shortlist : int or "auto", default="auto"
        How many candidates get an exact distance. "auto": as many as a calibrated margin lets through; none if only one
        centroid is left, else mostly two or three. 1: the product alone decides. 0: the rows of V are the centroids.
    init : {"k-means++", "random"}, array of shape (n_clusters, n_features), model or callable, default="k-means++"
        The starting centroids. A callable is called as ``init(X, n_clusters, random_state=random_state)``. The clusters
        of a fitted model keep their numbers; if it has fewer than `n_clusters`, those are split where the error is, and
        if it has more, the least useful go.
    n_init : int or "auto", default="auto"
        The number of runs from different starts, of which the best is kept. "auto": 10 for callables, else 1.
    max_iter : int, default=300
        The largest number of iterations over all rows.
    tol : float, default=1e-4
        A run stops when the squared shifts of the centroids add up to less than this, in units of the mean variance of
        the features.
    search : {"auto", "none", "thorough"}, default="auto"
        How long to look for better centroids than those that iterations from `init` lead to, by moves that are kept
        only if the objective falls. "auto": for as much work as 16 passes, or two for each of fewer than 8 iterations,
        if `init` is a name. "none": not at all. "thorough": ten times as long, also from an array or a callable.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" compares directions: minimise :math:`\sum_i w_i \|x_i / |x_i| - u_k\|^2` over centroids of length one
        (spherical k-means), which is twice the sum of :math:`w_i (1 - \cos)`. Needs a shortlist.
    random_state : int, RandomState or None, default=None
        Seeds the start and the samples.
    n_threads : int, default=None
        The largest number of threads; results do not depend on it. See :func:`quickmeans.threads.resolve_threads`.
    verbose : int, default=0
        1 shows how the fit goes: a bar in a terminal, or in a notebook that has ipywidgets; lines elsewhere.
    callback : callable, default=None
        Called as ``callback(iteration, objective)`` after every iteration; a true result stops the run. scikit-learn's
        own callbacks (from its version 1.9 on) are set with ``set_callbacks``.
    checkpoint : path, default=None
        A file that is replaced after every iteration. If it is there and belongs to the same rows and parameters, `fit`
        goes on from it, to the same result as without the interruption. `max_iter` may differ.
    batch_size : int, default=None
        If given, the centroids move after every so many rows, and not after all (mini-batch k-means); `max_iter` still
        counts passes over all rows. With ``shortlist=0`` the means follow the rows, and from time to time the product
        follows the means.
    min_cluster_size, max_cluster_size : int or float, default=None
        Bounds on the sizes of clusters, which `labels_` always keep; None: no bound. A whole number counts rows, or
        their weight; a float is a factor of the mean size, such as 1.2. `predict` is not bounded.
    warm_start : bool, default=False
        Whether `fit` begins with the centroids of the last fit, as with that model as `init`.
    standardize : bool, default=False
        Whether columns are divided by their standard deviations, so that all count the same; not for Dask arrays.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        Has no effect; it is here for code that was written for scikit-learn's ``KMeans``.
    copy_x : bool, default=True
        Has no effect, for the same reason: X is never changed.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centroids; float32 if X is, else float64.
    labels_ : array of int32, shape (n_samples,)
        The nearest centroid of every row of X; a lazy Dask array if X is one.
    inertia_ : float
        The objective for `labels_` and `cluster_centers_`.
    objective_history_ : array
        The objective after every assignment and every update of the centroids. With ``shortlist=0`` it never rises but
        for the hierarchical solver, with a shortlist hardly ever.
    product_ : SparseProduct or None
        V, centered: its rows plus `mean_` are, or are close to, the centroids. None if no product would pay: then
        assignment goes through the dense centroids.
    mean_ : array of shape (n_features,)
        The weighted mean of X; zero if the metric is "cosine".
    margin_ : float
        How wrong the scores of the product may be; see :mod:`quickmeans.kmeans.screen`.
    assigner_ : Assigner
        What assigns rows to the centroids; see :mod:`quickmeans.kmeans.assignment`.
    weight_in_clusters_ : array of shape (n_clusters,)
        The weight of the rows of each cluster; after `partial_fit`, of all rows so far.
    n_candidates_ : float
        The mean number of exact distances per row in the last pass.
    n_iter_ : int
        The number of iterations over all rows.
    drift_ : Drift
        After a fit that began with a model: ``origin``, the number that each cluster had there (-1: none),
        ``distance``, how far its centroid has moved, and ``removed``. See :class:`quickmeans.kmeans.growth.Drift`.
    scale_ : array of shape (n_features,)
        With `standardize`, the standard deviations; `cluster_centers_` and distances are in these units.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of str
        The names of the columns, if X has names.

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
        solver: str | Callable[..., Any] = "als",
        compression: float | str = "auto",
        n_factors: int | str = "auto",
        sparsity_level: int = 5,
        shortlist: int | str = "auto",
        init: str | ArrayLike | Callable[..., Any] = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        search: str = "auto",
        metric: str = "euclidean",
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
        callback: Callable[[int, float], object] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        batch_size: int | None = None,
        min_cluster_size: float | None = None,
        max_cluster_size: float | None = None,
        warm_start: bool = False,
        standardize: bool = False,
        algorithm: str = "lloyd",
        copy_x: bool = True,
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
        self.search = search
        self.metric = metric
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.batch_size = batch_size
        self.min_cluster_size = min_cluster_size
        self.max_cluster_size = max_cluster_size
        self.warm_start = warm_start
        self.standardize = standardize
        self.algorithm = algorithm
        self.copy_x = copy_x

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X. If that fails, an earlier fit stays as it was.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask array, or anything :func:`quickmeans.open_rows` takes
            The rows. Those of files and functions are read in chunks, in several passes, and are never all in memory.
        y : ignored
        sample_weight : array of shape (n_samples,), default=None
            The weight of each row; not negative.
        """
        settings = self._settings()
        with unchanged_on_error(self):
            interrupted = self._fit(settings, X, sample_weight)
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _settings(self) -> Settings:
        parameters, known = parameters_of(self), self._known_centers()
        return Settings.of(parameters if known is None else parameters | {"init": known})

    def _known_centers(self) -> NDArray[Any] | None:
        """The centroids of the model that a fit begins with, if there is one."""
        if check_flag("warm_start", self.warm_start) and hasattr(self, "cluster_centers_"):
            return original_centers(self)
        return None if isinstance(self.init, str) else centers_of_model(self.init)

    def _fit(self, settings: Settings, X: Any, sample_weight: ArrayLike | None) -> bool:
        """Fit, and tell whether Ctrl-C ended the last run."""
        known = self._known_centers()
        rows = standardized(self, check_rows(self, X, sample_weight, reset=True), reset=True)
        settings, seeds = in_scale(settings, self), random_seeds(self.random_state, settings.n_init)
        known = scaled_centers(known, self)
        points = rows.points(settings, seeds)
        if len(points) < settings.n_clusters:
            raise ValueError(f"n_samples={len(points)} should be >= n_clusters={settings.n_clusters}.")
        if settings.size_bounds is not None:  # before any work
            settings.size_bounds.of_rows(points.total, settings.n_clusters, points.weights)
        if known is not None:
            start, origin = resized(points, settings, known, seeds[0])
            settings = replace(settings, init=start)
        warn_of_parameters(self, points.n_columns)
        root = begin_callbacks(self, len(seeds))

        def run(seed: int) -> Clustering:
            checkpoint = None
            if self.checkpoint is not None:
                parameters = self.get_params(deep=False) | ({} if known is None else {"init": settings.init})
                checkpoint = Checkpoint(self.checkpoint, points, parameters, seed)
            with RunObserver(self, root) as observer:
                return run_once(settings, points, seed, observer, checkpoint)

        best, interrupted = best_of(run, seeds)
        self._keep(best.fitted(points))
        self.weight_in_clusters_ = best.counts
        self.__dict__.pop("drift_", None)
        if known is not None:
            self.drift_ = Drift.between(known, origin, self.cluster_centers_)
        if best.n_filled < settings.n_clusters and not interrupted:
            coarse = settings.learns_product and points.scatter > 0
            warn_of_empty_clusters(best.n_filled, settings.n_clusters, coarse=coarse)
        if root is not None and not interrupted:
            root.call_on_fit_task_end(estimator=self)
        return interrupted

    def _keep(self, fitted: FittedClusters) -> None:
        """Set the fitted attributes."""
        self.assigner_, geometry = fitted.assigner, fitted.assigner.geometry
        self.mean_, self.product_, self.margin_ = geometry.mean, fitted.assigner.product, fitted.assigner.margin
        self.cluster_centers_ = fitted.cluster_centers
        if fitted.labels is not None:
            self.labels_ = fitted.labels
        self.inertia_ = fitted.inertia
        self.objective_history_ = fitted.history
        self.n_candidates_ = fitted.n_candidates
        self.n_iter_ = fitted.n_iter
        self._n_features_out = len(fitted.cluster_centers)
        self.__dict__.pop("_batch", None)

    @property
    def _fitted(self) -> FittedClusters:
        """The fitted attributes as one object."""
        results = self.objective_history_, self.inertia_, self.n_candidates_, self.n_iter_
        return FittedClusters(self.assigner_, self.cluster_centers_, getattr(self, "labels_", None), *results)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Move the centroids by the rows of X (mini-batch k-means), from where they are or, at first, from a start.

        X is one batch, or several of `batch_size` rows each. `labels_`, `inertia_` and `objective_history_` are those
        of X, for the centroids at the time of each batch; `n_iter_` counts the calls (after a fit, on from its
        iterations). `y` is ignored, `sample_weight` as in :meth:`fit`. If the call fails, the model stays as it was.
        """
        settings = self._settings()
        with unchanged_on_error(self):
            self._partial_fit(settings, X, sample_weight)
        return self

    def _partial_fit(self, settings: Settings, X: Any, sample_weight: ArrayLike | None) -> None:
        begun = hasattr(self, "cluster_centers_")
        if begun and not hasattr(self, "weight_in_clusters_"):
            raise ValueError("A loaded model does not know how many rows its centroids stand for; fit it first.")
        rows = standardized(self, check_rows(self, X, sample_weight, reset=not begun), reset=not begun)
        points, settings = rows.points(settings, ()), in_scale(settings, self)
        batch = getattr(self, "_batch", None)
        if batch is None:
            seeds = 0 if begun else self._seed(), self._seed()
            fitted, counts = (self._fitted, self.weight_in_clusters_) if begun else (None, None)
            batch = first_batch(settings, points, fitted, counts, seeds)
        n_calls = self.n_iter_ if begun else 0
        result = follow_rows(batch, points, settings, n_calls)
        dtype = self.cluster_centers_.dtype if begun else points.result_dtype
        self._keep(result.fitted(dtype, n_calls + 1))
        self._batch, self.weight_in_clusters_ = result.batch, result.batch.counts

    def _seed(self) -> int:
        return random_seeds(self.random_state, 1)[0]

    # ---- use ------------------------------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        *,
        exact: bool = False,
        return_distance: bool = False,
        output: str | PathLike[str] | None = None,
    ) -> Any:
        """The nearest centroid of every row.

        Parameters
        ----------
        X : as for :meth:`fit`
            If it is a Dask array, the labels are one too, computed when they are asked for.
        exact : bool, default=False
            Whether all candidates are compared that a bound which always holds lets through: the labels are those of
            plain k-means (to rounding), but take longer.
        return_distance : bool, default=False
            Whether to return the distance of every row from its centroid too; not with `output`.
        output : path, default=None
            A file, .npy, .parquet or .csv, that the labels are written to, chunk by chunk.

        Returns
        -------
        labels : array of int32, shape (n_samples,)
            With `output`, only how many there are.
        distances : array of shape (n_samples,)
            Only with `return_distance`; float32 if X is, else float64.
        """
        if output is not None:
            if return_distance:
                raise ValueError("return_distance=True needs results in memory; with output only labels are written.")
            return write_labels(output, self.iter_labels(X, exact=exact))
        rows = self._check_new_rows(X)
        if return_distance:
            n_threads, dtype = rows.threads(self.n_threads), np.float32 if rows.dtype == np.float32 else np.float64
            both = rows.map(self._fitted.labels_and_distances_function(n_threads, exact=exact), np.float64, 2)
            return both[:, 0].astype(np.int32), both[:, 1].astype(dtype)
        return rows.map(self._fitted.labels_function(rows.threads(self.n_threads), exact=exact), np.int32)

    def iter_labels(self, X: Any, *, exact: bool = False) -> Iterator[NDArray[np.int32]]:
        """The labels of X block by block, so that X may be larger than memory; `exact` as in :meth:`predict`."""
        rows = self._check_new_rows(X)
        return rows.each(self._fitted.labels_function(resolve_threads(self.n_threads), exact=exact))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Fit to X with `sample_weight`, and return `labels_`; y is ignored."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def assign(self, X: Any, *, exact: bool = False, second: bool = False) -> Iterator[tuple[NDArray[Any], ...]]:
        """Blocks of rows of X, with their labels and squared distances from their centroids.

        `X` and `exact` are as in :meth:`predict`. With `second` the nearest other centroids and the squared distances
        from them follow. Nothing is kept, so X may be larger than memory.
        """
        rows, n_threads = self._check_new_rows(X), resolve_threads(self.n_threads)
        yield from each_block(rows, self._fitted.assign_function(n_threads, exact=exact, second=second))

    def transform(self, X: Any) -> Any:
        """Distances of every row to every centroid; of a Dask array, as one."""
        rows = self._check_new_rows(X)
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        distances = self._fitted.distances_function(dtype, rows.threads(self.n_threads))
        return rows.map(distances, dtype, len(self.cluster_centers_))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the objective on X, its rows weighted by `sample_weight`; y is ignored."""
        total, first, rows = 0.0, 0, self._check_new_rows(X)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, rows.shape[0])
        for squares in rows.each(self._fitted.squares_function(resolve_threads(self.n_threads))):
            total += float(squares.sum() if weights is None else squares @ weights[first : first + len(squares)])
            first += len(squares)
        return -total

    def save(self, path: str | PathLike[str], *, labels: bool = False) -> None:
        """Write the fitted model to a file for :func:`quickmeans.load`.

        The file is complete or absent, whatever happens; a file of that name stays until then. Not stored are
        `n_threads`, `callback`, `checkpoint`, an array or a callable as `init` or `solver`, and a generator as
        `random_state`: a loaded model has their defaults.

        Parameters
        ----------
        path : str or path
            Replaced if it is there.
        labels : bool, default=False
            Whether to store `labels_` too.
        """
        container.write(path, self.to_state(labels=labels))

    def to_state(self, *, labels: bool = False) -> State:
        """What a file holds of the fitted model; `labels` as in :meth:`save`."""
        check_is_fitted(self)
        self._settings()
        if labels and not hasattr(self, "labels_"):
            raise ValueError("The model was loaded without labels_, so there are none to store; use labels=False.")
        state = add_scale(self._fitted.to_state(labels=labels), self)
        state.facts["parameters"] = storable_parameters(self.get_params(deep=False), _NOT_STORED)
        state.facts["feature_names_in"] = [str(name) for name in getattr(self, "feature_names_in_", ())]
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The model that :meth:`to_state` made the state of; a ValueError says what is wrong with it."""
        state.expect("QKMeans")
        model = cls(**state.parameters(cls().get_params().keys() - _NOT_STORED, strings=("init", "solver")))
        model._settings()
        model.__dict__.update(scale_in(state))
        fitted = FittedClusters.from_state(state)
        model.n_features_in_ = len(fitted.assigner.geometry.mean)
        model.__dict__.update(state.feature_names(model.n_features_in_))
        model._keep(fitted)
        return model

    def _check_new_rows(self, X: Any) -> Rows:
        if not hasattr(self, "assigner_"):
            check_is_fitted(self)
        return standardized(self, check_rows(self, X, reset=False), reset=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_batch"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
