"""QKNystroem: kernel features from landmarks that are rows of a product of sparse matrices."""

import warnings
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from quickmeans.checks import check_whole, is_number
from quickmeans.cluster import QKMeans
from quickmeans.data.features import check_features, with_columns
from quickmeans.data.open import as_source
from quickmeans.files import container
from quickmeans.kmeans.rows import joined
from quickmeans.nystroem.choice import (
    CHOICES,
    NEED_MEMORY,
    Chosen,
    Problem,
    compressed_centers,
    given_points,
    must_be_landmarks,
    product_rows,
    rounded,
)
from quickmeans.nystroem.features import features, kernel_values, relative_error, root_inverse
from quickmeans.nystroem.gamma import check_gamma, mean_and_spread, resolve_gamma
from quickmeans.nystroem.input import Input, MemoryInput, SourceInput
from quickmeans.nystroem.kernels import NAMES, Landmarks, check_kernel, make_kernel
from quickmeans.nystroem.storage import stored_arrays
from quickmeans.rollback import unchanged_on_error
from quickmeans.state import State, storable_parameters
from quickmeans.threads import resolve_threads

_NOT_STORED = {"n_threads"}
_ITERATIONS = 20  # of k-means, as in the paper
# Rows of these types are used as they are, in native byte order; rows of other types are converted to float64.
_TYPES = [np.float64, np.float32, np.dtype(np.float32).newbyteorder()]
_MOST_ROWS = 5000  # on which the error is computed: their kernel matrix has 25 million entries, some seconds of work


class QKNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Features whose inner products approximate a kernel, by the Nyström method with fast landmarks.

    .. math:: K \approx \tilde K = C W^+ C', \qquad C_{ik} = k(x_i, u_k), \quad W_{kl} = k(u_k, u_l)

    A drop-in for :class:`sklearn.kernel_approximation.Nystroem` and kernels of the form
    :math:`k(x, y) = f(x) f(y)\, g(\langle x, y\rangle)`. The landmarks :math:`u_k` are the mean plus the rows of a
    product of sparse matrices, so that a row of C costs as many multiply-adds as the factors have non-zeros, and not
    K D. The features are the rows of :math:`C W^{-1/2}`, computed by blocks of rows.

    Parameters
    ----------
    kernel : {"rbf", "polynomial", "poly", "sigmoid", "linear", "cosine"} or tuple (f, g) of callables, default="rbf"
        Of a pair, f gets an array of rows and returns a number for each, or is None for ones; g gets an array of inner
        products, which it may overwrite, and returns one of the same shape.
    gamma : float, "scale", "mean-distance" or None, default=None
        Of "rbf", :math:`\exp(-\gamma \|x - y\|^2)`, "polynomial", :math:`(\gamma \langle x, y\rangle + c_0)^d`, and
        "sigmoid", :math:`\tanh(\gamma \langle x, y\rangle + c_0)`. None is one over the number of features, "scale" is
        that over the variance of the entries of X, "mean-distance" is one over the mean of :math:`\|x - y\|^2` over
        all pairs of rows.
    degree : float, default=3
        The degree d of "polynomial"; at least 1.
    coef0 : float, default=1.0
        :math:`c_0` of "polynomial" and "sigmoid".
    n_components : int, default=100
        The number K of landmarks and features; at most the number of rows.
    landmarks : str, array-like of shape (K, n_features) or QKMeans, default="qkmeans"
        "qkmeans": k-means centroids, compressed, and refined on the error of the Gaussian kernel. "kmeans": the
        centroids themselves. "uniform": rows of X. "leverage": rows drawn by their ridge leverage scores. "hadamard",
        "haar": rows of X with the signs, or on the supports, of rows of the transform; "kmeans-hadamard": such
        landmarks learned by k-means. An array: these points. A QKMeans: its centroids, compressed unless they are rows
        of a product already; it is cloned and fitted first if it is not fitted. With an array or a QKMeans
        `n_components` is ignored.
    compression : float or "auto", default="auto"
        K D over the multiply-adds of the product, for compressed centroids. "auto" is the highest of 2.5, 5, 10, 20 and
        40 at which the error on held-out rows exceeds that of the centroids themselves by at most 2.5 %, or 1 if there
        is none; then the landmarks are the centroids. `compression_` says what it is.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of landmarks and samples.
    n_threads : int, default=None
        The most threads to use; None stands for all processors, see :func:`quickmeans.threads.resolve_threads`.
        Results do not depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (K, n_features)
        The landmarks.
    component_indices_ : ndarray of shape (K,) or None
        The rows of X that are the landmarks; None if landmarks are not rows of X.
    normalization_ : ndarray of shape (K, K)
        :math:`W^{-1/2}`, with the eigenvalues of W clipped from below.
    product_ : SparseProduct
        Its rows plus `mean_` are the landmarks.
    compression_ : float
        K D over the multiply-adds of `product_`; 1 for dense landmarks.
    mean_ : ndarray of shape (n_features,)
        The mean of X, or zero for dense landmarks and kernels other than "rbf".
    kernel_ : str or pair of callables
        The kernel of the fitted model.
    gamma_ : float
        `gamma` as a number.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : array of str
        The names of the columns; only if X has names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from quickmeans import QKNystroem
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(QKNystroem(gamma="scale", n_components=150, random_state=0), LinearSVC())
    >>> model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.93
    True
    """

    def __init__(
        self,
        kernel: str | tuple[Callable[..., Any] | None, Callable[..., Any]] = "rbf",
        *,
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        n_components: int = 100,
        landmarks: str | ArrayLike | QKMeans = "qkmeans",
        compression: float | str = "auto",
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.landmarks = landmarks
        self.compression = compression
        self.random_state = random_state
        self.n_threads = n_threads

    # ---- fitting --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks for the rows of X. If that fails, an earlier fit stays as it was.

        Parameters
        ----------
        X : array, sparse matrix, or anything :func:`quickmeans.open_rows` takes
            The rows. Those of files and functions are read block by block; only ``landmarks="leverage"`` reads all of
            them into memory.
        y : ignored
        """
        self._check_parameters()
        with unchanged_on_error(self):
            given = self._check_rows(X, reset=True)
            if isinstance(self.landmarks, str) and self.landmarks in NEED_MEMORY:
                given = given.whole()
            n_threads = resolve_threads(self.n_threads)
            mean, spread = mean_and_spread(given.rows, n_threads)
            self.gamma_ = resolve_gamma(self.gamma, mean, spread)
            self.kernel_, self._powers = self.kernel, (self.degree, self.coef0)
            landmarks, self.component_indices_ = self._chosen(given, mean)
            self._set_landmarks(landmarks)
            dtype = landmarks.product.dtype
            W = self._values.values(landmarks.rows(), n_threads)
            self.normalization_ = root_inverse(W, dtype).astype(dtype)
        return self

    def _set_landmarks(self, landmarks: Landmarks) -> None:
        kernel, (degree, coef0) = self.kernel_, self._powers
        self.product_, self.mean_ = landmarks.product, landmarks.mean
        self.components_ = landmarks.rows().astype(landmarks.product.dtype)
        self.compression_ = self.components_.size / max(self.product_.macs, 1)
        self._values = make_kernel(kernel, self.gamma_, degree, coef0, landmarks)
        self._n_features_out = len(self.components_)

    def _chosen(self, given: Input, mean: NDArray[np.float64]) -> Chosen:
        """The landmarks, and which rows they are if they are rows."""
        (n_rows, n_columns), dtype = given.rows.shape, given.dtype
        center = rounded(mean, dtype)
        problem = Problem(
            rows=given.rows,
            X=given.given,
            mean=center,
            origin=center if self.kernel == "rbf" else np.zeros_like(center),
            dtype=dtype,
            n_landmarks=min(int(self.n_components), n_rows),
            kernel=partial(make_kernel, self.kernel, self.gamma_, self.degree, self.coef0),
            compression=self.compression,
            cluster=partial(self._cluster, given),
            rng=check_random_state(self.random_state),
            n_threads=resolve_threads(self.n_threads),
        )
        if isinstance(self.landmarks, QKMeans):
            model = self._fitted(self.landmarks, given)
            if model.product_ is not None and not model.assigner_.centers_are_means:
                return product_rows(model.product_, model.mean_, dtype), None
            return compressed_centers(problem, model), None
        if not isinstance(self.landmarks, str):
            return problem.dense(given_points(self.landmarks, n_columns, dtype)), None
        if self.n_components > n_rows:
            message = f"n_components={self.n_components} is more than the {n_rows} rows of X"
            warnings.warn(f"{message}; there will be {n_rows} components.", stacklevel=3)
        return CHOICES[self.landmarks](problem)

    def _cluster(self, given: Input, n_clusters: int, seed: int) -> QKMeans:
        model = QKMeans(n_clusters, max_iter=_ITERATIONS, random_state=seed, n_threads=self.n_threads)
        return self._fitted(model, given)

    def _fitted(self, model: QKMeans, given: Input) -> QKMeans:
        """The model, or its clone fitted to the rows."""
        try:
            check_is_fitted(model)
        except NotFittedError:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # about empty clusters: landmarks may be equal
                model = clone(model).fit(given.given)
        if model.n_features_in_ != given.rows.shape[1]:
            raise ValueError(
                f"landmarks is a QKMeans fitted to {model.n_features_in_} features, but X has {given.rows.shape[1]}; "
                "they must be as many."
            )
        return model

    # ---- use ------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> NDArray[Any]:
        """Compute the features of every row, an array of shape (n_samples, K); X is as for :meth:`fit`."""
        check_is_fitted(self)
        return self._features(self._check_rows(X))

    def kernel_row(self, X: Any) -> NDArray[Any]:
        r"""Compute rows of C, an array of shape (n_samples, K): kernel values between the rows of X and the landmarks.

        The approximate kernel agrees with these values, and follows from them between other points:
        :math:`\tilde K(x, y) = c(x)\, W^+ c(y)'`; see :meth:`approximate_kernel`.
        """
        check_is_fitted(self)
        n_threads = resolve_threads(self.n_threads)
        return joined(kernel_values(part, self._values, n_threads) for part in self._check_rows(X).parts())

    def approximate_kernel(self, X: Any, Y: Any = None) -> NDArray[Any]:
        r"""Compute :math:`\tilde K = C_X W^+ C_Y'`, the approximate kernel between the rows of X and of Y (None: X)."""
        check_is_fitted(self)
        F = self._features(self._check_rows(X))
        return np.asarray(F @ (F if Y is None else self._features(self._check_rows(Y))).T)

    def approximation_error(self, X: Any) -> float:
        r"""Compute :math:`\|K - \tilde K\|_F / \|K\|_F` for the kernel matrix of the rows of X, which is never formed.

        For more than 5000 rows the error is estimated from 5000 of them, drawn by `random_state`.
        """
        check_is_fitted(self)
        rows = self._check_rows(X).rows
        n = rows.shape[0]
        seed = check_random_state(self.random_state).randint(2**31)
        drawn = np.random.default_rng(seed).permutation(n)[:_MOST_ROWS]  # another sample than that of the landmarks
        sample = rows.take(np.sort(drawn) if n > _MOST_ROWS else np.arange(n))
        return relative_error(
            sample, self._features(MemoryInput(sample)), self._values, n, resolve_threads(self.n_threads)
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to the file `path` for :func:`quickmeans.load`.

        The file is complete or absent, whatever happens. Not stored are `n_threads`, `landmarks` that are not a name,
        and a generator as `random_state`: a loaded model has their defaults. A model whose kernel is a pair of
        functions cannot be stored.
        """
        container.write(path, self.to_state())

    def to_state(self) -> State:
        """What a file holds of the fitted model."""
        check_is_fitted(self)
        self._check_parameters()
        kernel, (degree, coef0) = self.kernel_, self._powers
        if not isinstance(kernel, str):
            raise ValueError("A kernel that is a pair of functions cannot be stored; use one that has a name.")
        facts = {
            "parameters": storable_parameters(self.get_params(deep=False), _NOT_STORED),
            "fitted_kernel": kernel,
            "fitted_degree": float(degree),
            "fitted_coef0": float(coef0),
            "gamma": float(self.gamma_),
            "working_dtype": self.product_.dtype.name,
            "feature_names_in": [str(name) for name in getattr(self, "feature_names_in_", ())],
        }
        state = State("QKNystroem", facts, {"mean": self.mean_, "normalization": self.normalization_})
        state.add_product(self.product_)
        if self.component_indices_ is not None:
            state.tensors["component_indices"] = self.component_indices_.astype(np.uint64)
        if not state.affords(self.product_):
            state.tensors["components"] = self.components_
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The model that :meth:`to_state` made the state of; a ValueError says what is wrong with it."""
        known = cls().get_params().keys() - _NOT_STORED
        model = cls(**state.parameters(known, strings=("landmarks", "kernel")))
        model._check_parameters()
        model.kernel_ = state.choice("fitted_kernel", NAMES)
        model._powers = state.number("fitted_degree", float, 1.0), state.number("fitted_coef0", float)
        model.gamma_ = state.number("gamma", float, np.finfo(np.float64).tiny)
        dtype, mean = state.dtype("working_dtype"), state.tensor("mean", 1, ("float64",))
        product = state.product(len(mean), dtype)
        if product is None:
            raise ValueError("there must be factors.")
        model.normalization_, model.component_indices_ = stored_arrays(state, product, dtype)
        model.n_features_in_ = len(mean)
        model.__dict__.update(state.feature_names(len(mean)))
        state.finish()
        with np.errstate(all="ignore"):  # landmarks that are too large are refused
            model._set_landmarks(Landmarks(product, mean))
            model._values.values(mean[None].astype(dtype), 1)
        return model

    def _features(self, given: Input) -> NDArray[Any]:
        n_threads, kernel = resolve_threads(self.n_threads), self._values
        dtype = np.result_type(self.normalization_.dtype, given.dtype)
        normalization = self.normalization_.astype(dtype, copy=False)
        return joined(features(part, kernel, normalization, n_threads) for part in given.parts())

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool = False) -> Input:
        source = as_source(X)
        if source is not None:
            check_features(self, source, reset=reset)
            return SourceInput(source)
        return MemoryInput(validate_data(self, with_columns(X), reset=reset, accept_sparse="csr", dtype=_TYPES))

    def _check_parameters(self) -> None:
        check_kernel(self.kernel)
        check_gamma(self.gamma)
        check_whole("n_components", self.n_components, 1)
        if not is_number(self.degree) or not 1 <= self.degree < np.inf:
            raise ValueError(f"degree must be a finite number not below 1, got {self.degree!r}.")
        if not is_number(self.coef0) or not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        if isinstance(self.landmarks, str) and self.landmarks not in CHOICES:
            raise ValueError(must_be_landmarks(self.landmarks))
        compression = self.compression
        auto = isinstance(compression, str) and compression == "auto"
        if not auto and not (is_number(compression) and 1 <= float(compression) < np.inf):
            raise ValueError(f"compression must be a finite number not below 1, or 'auto', got {compression!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
