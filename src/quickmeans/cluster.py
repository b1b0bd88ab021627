"""QKMeans: k-means for many clusters in high dimension."""

import warnings
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from quickmeans.checks import check_parameters, check_sample_weight, n_runs
from quickmeans.data.features import check_features, with_columns
from quickmeans.data.open import as_source, is_dask
from quickmeans.data.output import write_labels
from quickmeans.data.stream import SourceStream
from quickmeans.kmeans.distances import distances
from quickmeans.kmeans.lloyd import Clustering
from quickmeans.kmeans.partial import partial_fit
from quickmeans.kmeans.points import NO_DIRECTION, Points, refuse_bad_rows
from quickmeans.kmeans.rows import Stream
from quickmeans.kmeans.run import run_once
from quickmeans.kmeans.screen import Assignment, ProductRows, Screen, fill_norms
from quickmeans.progress import CallbackSupportMixin, Watch, begin_callbacks, with_callbacks
from quickmeans.threads import resolve_threads
from quickmeans.transform.checks import readable


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
    checkpoint : path, optional
        A file that is replaced after every iteration. If it is there, from the same rows and parameters, `fit` goes on
        from it, to the result that it would have come to anyway. Changes of `max_iter` are allowed.
    batch_size : int, optional
        Move the centroids after every so many rows, and not after all (mini-batch k-means); `max_iter` still counts
        passes over all rows. With ``shortlist=0`` means follow the rows, and now and then the product the means.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centroids; in float32 if X is.
    labels_ : array of int32, shape (n_samples,)
        The nearest centroid of every row of X.
    inertia_ : float
        The objective, for `labels_` and `cluster_centers_`.
    objective_history_ : array
        The objective after every assignment and every update of the centroids. With `shortlist=0` it never rises but
        for the hierarchical solver, with a shortlist hardly ever.
    product_ : SparseProduct or None
        V, of centroids about the mean: its rows plus `mean_` are, or are close to, the centroids. None if no product
        would pay: then assignment goes through the dense centroids.
    mean_ : array of shape (n_features,)
        Of X, with its weights; zero if `spherical`.
    reach_ : float
        How far the screen is mistrusted; see :mod:`quickmeans.kmeans.screen`.
    n_candidates_ : float
        The mean number of exact distances per point in the last pass over the data.
    n_iter_ : int
        Iterations over all rows.
    n_features_in_ : int
        Columns of X.
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
        checkpoint: str | PathLike[str] | None = None,
        batch_size: int | None = None,
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
        self.checkpoint = checkpoint
        self.batch_size = batch_size

    # ---- fitting --------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X. If that fails, an earlier fit stays as it was.

        Parameters
        ----------
        X : array, data frame, sparse matrix, Dask array, or what :func:`quickmeans.data.open_rows` takes
            The rows. Those of files and functions are read some at a time, in several passes, and are never all in
            memory.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; not negative.

        Returns
        -------
        QKMeans
            The model itself.
        """
        check_parameters(self)
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
        points = self._points(X, sample_weight)
        if len(points) < self.n_clusters:
            raise ValueError(f"n_samples={len(points)} should be >= n_clusters={self.n_clusters}.")
        if self.compression != "auto" and X.shape[1] / float(self.compression) < 1 + 1 / self.n_clusters:
            warnings.warn(
                f"compression={self.compression:g} would leave less than one number per centroid of "
                f"{X.shape[1]} features; centroids are kept dense.",
                stacklevel=4,
            )
        seeds = check_random_state(self.random_state).randint(2**31, size=n_runs(self))
        root = begin_callbacks(self, len(seeds))
        best, interrupted = self._best_run(points, seeds, root)
        self._keep(points, best)
        if interrupted:
            raise KeyboardInterrupt
        if root is not None:
            root.call_on_fit_task_end(estimator=self)
        return self

    def _points(self, X: Any, sample_weight: Any) -> Points:
        spherical = bool(self.spherical)
        if is_dask(getattr(X, "array", None)):
            from quickmeans.distributed.fit import DaskPoints

            if self.batch_size is not None:
                raise ValueError("batch_size is not for Dask arrays; call partial_fit with one chunk after the other.")
            return DaskPoints(X, sample_weight, 1 if self.n_threads is None else self.n_threads, spherical=spherical)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, X.shape[0])
        return Points(X, weights, resolve_threads(self.n_threads), spherical=spherical)

    def _best_run(self, points: Points, seeds: Any, root: Any) -> tuple[Clustering, bool]:
        """The best of the runs, and whether Ctrl-C ended them; without a run to show for it, that is passed on."""
        best: Clustering | None = None
        interrupted = False
        for seed in seeds:
            try:
                with Watch(self, root) as watch:
                    run = run_once(self, points, int(seed), watch)
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

    def _keep(self, points: Points, run: Clustering) -> None:
        """The fitted attributes."""
        self.mean_ = points.frame.mean
        self.product_ = run.screen.product
        self.reach_ = run.screen.reach
        self.cluster_centers_ = (run.centers + points.frame.mean).astype(points.result_dtype)
        self.labels_ = run.labels
        self.inertia_ = run.objective
        self.objective_history_ = np.array(run.history)
        self.n_candidates_ = run.n_candidates
        self.n_iter_ = run.n_iter
        self._n_features_out = self.n_clusters
        self._frame = points.frame
        self._fitted_shortlist = self.shortlist
        self._counts = run.counts
        self.__dict__.pop("_batch", None)
        self._screen: Screen | ProductRows = run.screen
        n_found = run.n_filled
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

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Let the centroids follow the rows of X (mini-batch k-means), from where they are or, at first, from a start.

        X is one batch, or several of `batch_size` rows each. `labels_`, `inertia_` and `objective_history_` are those
        of X, for the centroids as they were when its rows came by; `n_iter_` counts the calls (after a fit, on from
        its iterations). `y` is ignored, `sample_weight` as in :meth:`fit`.
        """
        check_parameters(self)
        partial_fit(self, X, sample_weight)
        return self

    # ---- use ------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, *, exact: bool = False, output: str | PathLike[str] | None = None) -> Any:
        """The nearest centroid of every row.

        Parameters
        ----------
        X : as for :meth:`fit`
            Its labels are lazy if it is a Dask array.
        exact : bool
            Let all candidates through that a bound which always holds cannot turn away: the answer is the one of plain
            k-means (to rounding), only slower.
        output : path, optional
            A file, .npy or .parquet, that labels go to as they are found.

        Returns
        -------
        labels : array of int32, shape (n_samples,)
            With `output`, only how many there are.
        """
        X = self._rows_to_place(X)
        if is_dask(getattr(X, "array", None)) and output is None:
            from quickmeans.distributed.rows import lazy_labels

            screen = self._screen.certain() if exact else self._screen
            return lazy_labels(X.array, screen, self.n_threads or 1)
        labels = (found.labels for _, found in self._assigned(X, exact=exact, settle_all=False))
        if output is not None:
            return write_labels(output, labels)
        parts = list(labels)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Fit to X with `sample_weight`, and return `labels_`; y is ignored."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_

    def transform(self, X: Any) -> Any:
        """Distances of every row to every centroid; of a Dask array, as one."""
        X = self._rows_to_place(X, finite=True)
        centers = self.cluster_centers_.astype(np.float64) - self.mean_
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if is_dask(getattr(X, "array", None)):
            from quickmeans.distributed.rows import lazy_distances

            return lazy_distances(X.array, centers, self._frame, dtype)
        if not isinstance(X, Stream):
            return distances(X, centers, self._frame, dtype)
        parts = []
        for part, rows in X.blocks():
            refuse_bad_rows(X, part.start, rows)
            parts.append(distances(rows, centers, self._frame, dtype))
        return np.concatenate(parts)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the objective on X, its rows weighted by `sample_weight`; y is ignored."""
        X = self._rows_to_place(X)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, X.shape[0])
        total, first = 0.0, 0
        for rows, found in self._assigned(X, exact=False, settle_all=True):
            fill_norms(rows, self._frame, found)
            squares = found.squared_distances(self._frame).astype(np.float64)
            total += float(squares.sum() if weights is None else squares @ weights[first : first + len(squares)])
            first += len(squares)
        return -total

    def save(self, path: str | PathLike[str], *, labels: bool = False) -> None:
        """Write the fitted model to a file for :func:`quickmeans.load`.

        It appears complete or not at all. Not stored are `n_threads`, `callback`, `checkpoint`, an array or a callable
        as `init`, and a generator as `random_state`.

        Parameters
        ----------
        path : str or path
            Replaced if it is there.
        labels : bool
            Whether to store `labels_` too.
        """
        from quickmeans.files.models import save  # which imports this module

        save(self, path, labels=labels)

    def _rows_to_place(self, X: Any, finite: bool = False) -> Any:
        check_is_fitted(self)
        return self._check_rows(X, reset=False, finite=finite)

    def _assigned(self, X: Any, *, exact: bool, settle_all: bool) -> Iterator[tuple[Any, Assignment]]:
        """The rows of X, all at once or by chunks, and what is found of them."""
        screen = self._screen.certain() if exact else self._screen
        for part, rows in X.blocks() if isinstance(X, Stream) else [(slice(0, X.shape[0]), X)]:
            found = Assignment.empty(rows.shape[0], screen.dtype)
            try:
                screen.assign(rows, found, resolve_threads(self.n_threads), settle_all=settle_all)
            except ValueError:
                if isinstance(X, Stream):
                    refuse_bad_rows(X, part.start, rows)
                raise
            if self._frame.spherical and (found.norms <= 0).any():
                raise ValueError(NO_DIRECTION.format(part.start + int(np.argmax(found.norms <= 0))))
            yield rows, found

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
        if is_dask(X):
            from quickmeans.distributed.rows import as_rows

            rows = as_rows(X)
            check_features(self, rows, reset=reset)
            return rows
        source = as_source(X)
        if source is not None:
            check_features(self, source, reset=reset)
            return SourceStream(source)
        X = with_columns(X)
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=finite or sp.issparse(X)
        )
        if X.dtype.kind not in "fiu" or X.dtype.itemsize > 8:
            X = X.astype(np.float64)
        return X if sp.issparse(X) else readable(X)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in ("_screen", "_batch")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "cluster_centers_"):
            self._make_screen()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
