"""QKNystroem: kernel features from landmarks that are rows of a product of sparse matrices."""

import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from quickmeans.checks import check_whole, is_number
from quickmeans.cluster import QKMeans
from quickmeans.data.features import with_columns
from quickmeans.files import container
from quickmeans.kmeans.blocks import block_rows as rows_at_a_time
from quickmeans.nystroem.compression import compressed
from quickmeans.nystroem.features import dense, features, kernel_values, relative_error, root_inverse
from quickmeans.nystroem.kernels import NAMES, Landmarks, make_kernel
from quickmeans.nystroem.leverage import by_leverage
from quickmeans.nystroem.structured import Structured
from quickmeans.state import UNSIGNED, State, storable_parameters
from quickmeans.threads import resolve_threads
from quickmeans.transform import SparseProduct
from quickmeans.transform.checks import readable

_LANDMARKS = ("qkmeans", "kmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard")
_GAMMAS = ("scale", "mean-distance")
_ITERATIONS = 20  # of k-means
_SAMPLE = 1000  # rows on which a compression is judged
_NOT_STORED = {"n_threads"}
_EXACT = 5000  # the error of more rows is estimated from so many


class QKNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Features whose inner products approximate a kernel, by the Nyström method with fast landmarks.

    .. math:: K \approx \tilde K = C W^+ C', \qquad C_{ik} = k(x_i, u_k), \quad W_{kl} = k(u_k, u_l)

    A drop-in for :class:`sklearn.kernel_approximation.Nystroem` and kernels of the form
    :math:`k(x, y) = f(x) f(y)\, g(\langle x, y\rangle)`. The landmarks :math:`u_k` are the mean plus the rows of a
    product of sparse matrices, so that a row of C costs as many multiply-adds as the factors have non-zeros and not
    K D. The features are the rows of :math:`C W^{-1/2}`, computed by blocks of rows.

    Parameters
    ----------
    kernel : "rbf", "polynomial" (or "poly"), "sigmoid", "linear", "cosine", or a pair (f, g) of callables
        Of a pair, f gets an array of rows and returns a number for each, or is None for ones; g gets an array of inner
        products, which it may overwrite, and returns one of the same shape.
    gamma : float, "scale", "mean-distance" or None
        Of "rbf", :math:`\exp(-\gamma \|x - y\|^2)`, "polynomial", :math:`(\gamma \langle x, y\rangle + c_0)^d`, and
        "sigmoid", :math:`\tanh(\gamma \langle x, y\rangle + c_0)`. None: one over the number of features.
        "scale": that, over the variance of the entries of X. "mean-distance": one over the mean of
        :math:`\|x - y\|^2` over all pairs of rows.
    degree : float
        Of "polynomial"; not below 1.
    coef0 : float
        :math:`c_0` of "polynomial" and "sigmoid".
    n_components : int
        The number K of landmarks and features; at most the number of rows.
    landmarks : str, array of shape (K, n_features), or QKMeans
        "qkmeans": k-means centroids, compressed. "kmeans": the centroids themselves. "uniform": rows of X. "leverage":
        rows drawn by their ridge leverage scores. "hadamard", "haar": rows of X with the signs, or on the supports, of
        rows of the transform; "kmeans-hadamard": such landmarks learned by k-means. An array: these points. A QKMeans:
        its centroids, compressed if they are not already; it is fitted first if it is not, as its clone in a grid
        search is. With the last two `n_components` is ignored.
    compression : float or "auto"
        Of "qkmeans": K D over the multiply-adds of the product. "auto": the highest of 2.5, 5, 10, 20 and 40 at which
        the error on a sample of rows exceeds that of the centroids themselves by no more than 2 %; 1 if there is
        none.
    random_state : int, RandomState or None
        Seeds the choice of landmarks and samples.
    n_threads : int, optional
        At most so many threads. Results do not depend on it.

    Attributes
    ----------
    components_ : array of shape (K, n_features)
        The landmarks.
    component_indices_ : array of shape (K,) or None
        Which rows of X they are; None if they are none.
    normalization_ : array of shape (K, K)
        :math:`W^{-1/2}`, with the eigenvalues of W clipped from below.
    product_ : SparseProduct
        Its rows plus `mean_` are the landmarks.
    mean_ : array of shape (n_features,)
        The point that the product is about: the mean of X, or zero for dense landmarks and kernels other than "rbf".
    gamma_ : float
        `gamma` as a number.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array of str
        If X has names.

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
        """Choose the landmarks for the rows of X; y is ignored."""
        self._check_parameters()
        X = self._check_rows(X, reset=True)
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        mean, spread = _moments(X)
        self.gamma_ = self._resolved_gamma(mean, spread)
        chosen, self.component_indices_ = self._chosen(X, _rounded(mean, dtype), dtype)
        self._keep(chosen)
        return self

    def _keep(self, landmarks: Landmarks) -> None:
        """The fitted attributes that follow from the landmarks."""
        self._fitted_kernel = (self.kernel, self.degree, self.coef0)
        self._set_landmarks(landmarks)
        W = self._values.values(landmarks.rows(), resolve_threads(self.n_threads))
        self.normalization_ = root_inverse(W, landmarks.product.dtype).astype(landmarks.product.dtype)

    def _set_landmarks(self, landmarks: Landmarks) -> None:
        kernel, degree, coef0 = self._fitted_kernel
        self.product_, self.mean_ = landmarks.product, landmarks.mean
        self.components_ = landmarks.rows().astype(landmarks.product.dtype)
        self._values = make_kernel(kernel, self.gamma_, degree, coef0, landmarks)
        self._n_features_out = len(self.components_)

    def _chosen(
        self, X: Any, mean: NDArray[np.float64], dtype: np.dtype[Any]
    ) -> tuple[Landmarks, NDArray[np.int64] | None]:
        """The landmarks, and which rows of X they are if that is what they are."""
        rng, threads = check_random_state(self.random_state), resolve_threads(self.n_threads)
        if isinstance(self.landmarks, QKMeans):
            return self._of_clusters(X, self._fitted(self.landmarks, X), mean, dtype, rng), None
        if not isinstance(self.landmarks, str):
            return Landmarks.dense(self._given(X, dtype), self._centre(mean), dtype), None
        K = self._n_landmarks(X.shape[0])
        if self.landmarks in ("kmeans", "qkmeans"):
            model = QKMeans(K, max_iter=_ITERATIONS, random_state=rng.randint(2**31), n_threads=self.n_threads)
            return self._of_clusters(X, self._fitted(model, X), mean, dtype, rng), None
        if self.landmarks in ("uniform", "leverage"):
            centre = self._centre(mean)
            nowhere = Landmarks.dense(centre[None], centre, dtype)
            kernel = make_kernel(self.kernel, self.gamma_, self.degree, self.coef0, nowhere)
            rows = (
                np.sort(rng.permutation(X.shape[0])[:K])
                if self.landmarks == "uniform"
                else by_leverage(X, kernel, K, rng, threads)
            )
            return Landmarks.dense(dense(X[rows]), centre, dtype), rows
        structure = Structured(self.landmarks.removeprefix("kmeans-"), K, X.shape[1], rng)
        starts = dense(X[rng.permutation(X.shape[0])[: structure.blocks]]) - mean
        if self.landmarks == "kmeans-hadamard":
            return Landmarks(structure.learned(X, mean, starts, dtype, threads), mean), None
        return Landmarks(structure.product(starts, dtype), mean), None

    def _of_clusters(
        self, X: Any, model: QKMeans, mean: NDArray[np.float64], dtype: np.dtype[Any], rng: np.random.RandomState
    ) -> Landmarks:
        """Centroids: as they are, as they were factored, or factored now."""
        if model._fitted_shortlist == 0 and model.product_ is not None:
            factors = [S.astype(dtype) for S in model.product_.factors]
            return Landmarks(SparseProduct(factors), _rounded(model.mean_, dtype))
        if isinstance(self.landmarks, str) and self.landmarks == "kmeans":
            return Landmarks.dense(model.cluster_centers_, self._centre(mean), dtype)
        threads = resolve_threads(self.n_threads)
        sample = dense(X[np.sort(rng.permutation(X.shape[0])[:_SAMPLE])]).astype(np.float64)

        def error(product: SparseProduct) -> float:
            landmarks = Landmarks(product, mean)
            kernel = make_kernel(self.kernel, self.gamma_, self.degree, self.coef0, landmarks)
            normalization = root_inverse(kernel.values(landmarks.rows(), threads), dtype)
            F = features(sample, kernel, normalization, threads)
            return relative_error(sample, F, kernel, len(sample), threads)

        points = model.cluster_centers_.astype(np.float64) - mean
        sizes = np.bincount(model.predict(X), minlength=len(points)).astype(np.float64)
        return Landmarks(compressed(points, np.maximum(sizes, 1), self.compression, error, dtype), mean)

    def _fitted(self, model: QKMeans, X: Any) -> QKMeans:
        try:
            check_is_fitted(model)
        except NotFittedError:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # equal landmarks do no harm
                model = clone(model).fit(X)
        if model.n_features_in_ != X.shape[1]:
            raise ValueError(
                f"landmarks is a QKMeans fitted to {model.n_features_in_} features, but X has {X.shape[1]}; "
                "they must be as many."
            )
        return model

    def _centre(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """What dense landmarks are stored about: distances keep their digits about the mean, products about zero."""
        return mean if self.kernel == "rbf" else np.zeros_like(mean)

    def _given(self, X: Any, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        try:
            shape = np.asarray(self.landmarks, np.float64).shape
        except (TypeError, ValueError):
            shape = ()
        if len(shape) != 2 or 0 in shape:
            raise ValueError(_landmarks_must_be(self.landmarks))
        rows = check_array(self.landmarks, dtype=np.float64, ensure_all_finite=True, input_name="landmarks")
        if rows.shape[1] != X.shape[1]:
            raise ValueError(f"landmarks has {rows.shape[1]} columns, but X has {X.shape[1]}; they must be as many.")
        if np.abs(rows).max() > np.finfo(dtype).max:
            raise ValueError(f"landmarks has numbers that are not finite in {dtype}; scale it and X, or use float64.")
        return np.asarray(rows, np.float64)

    def _n_landmarks(self, n_rows: int) -> int:
        if self.n_components <= n_rows:
            return int(self.n_components)
        warnings.warn(
            f"n_components={self.n_components} is more than the {n_rows} rows of X; there will be {n_rows} components.",
            stacklevel=4,
        )
        return n_rows

    def _resolved_gamma(self, mean: NDArray[np.float64], spread: float) -> float:
        """gamma as a number; `spread` is the mean of ||x - mean||^2."""
        if self.gamma is None:
            return 1.0 / len(mean)
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        inverse = spread + float(np.square(mean - mean.mean()).sum()) if self.gamma == "scale" else 2 * spread
        if inverse <= 1e-24 * (mean @ mean):  # equal rows, to rounding, have no scale
            return 1.0
        if inverse < np.finfo(np.float64).tiny:
            raise ValueError(f"The rows of X are too near each other for gamma={self.gamma!r}; scale X.")
        return 1.0 / inverse

    # ---- use ------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> NDArray[Any]:
        """The features of every row, N x K."""
        check_is_fitted(self)
        return self._features(self._check_rows(X, reset=False))

    def kernel_row(self, X: Any) -> NDArray[Any]:
        r"""Rows of C: kernel values between the rows of X and the landmarks, N x K.

        Those of :math:`\tilde K` are the same there, and follow from them elsewhere:
        :math:`\tilde K(x, y) = c(x)\, W^+ c(y)'`; see :meth:`approximate_kernel`.
        """
        check_is_fitted(self)
        return kernel_values(self._check_rows(X, reset=False), self._values, resolve_threads(self.n_threads))

    def approximate_kernel(self, X: Any, Y: Any = None) -> NDArray[Any]:
        r""":math:`\tilde K = C_X W^+ C_Y'`, the approximate kernel between the rows of X and of Y (by default X)."""
        check_is_fitted(self)
        F = self._features(self._check_rows(X, reset=False))
        return np.asarray(F @ (F if Y is None else self._features(self._check_rows(Y, reset=False))).T)

    def approximation_error(self, X: Any) -> float:
        r""":math:`\|K - \tilde K\|_F / \|K\|_F` for the kernel matrix of the rows of X, without ever forming it.

        Beyond 5000 rows it is estimated from so many, drawn by `random_state`.
        """
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        n = X.shape[0]
        seed = check_random_state(self.random_state).randint(2**31)
        chosen = np.random.default_rng(seed).permutation(n)[:_EXACT]  # not those that landmarks are drawn from
        rows = dense(X[np.sort(chosen)] if n > _EXACT else X)
        return relative_error(rows, self._features(rows), self._values, n, resolve_threads(self.n_threads))

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
        kernel, degree, coef0 = self._fitted_kernel
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
        model._fitted_kernel = (
            state.choice("fitted_kernel", NAMES),
            state.number("fitted_degree", float, 1.0),
            state.number("fitted_coef0", float),
        )
        model.gamma_ = state.number("gamma", float, np.finfo(np.float64).tiny)
        dtype, mean = state.dtype("working_dtype"), state.tensor("mean", 1, ("float64",))
        product = state.product(len(mean), dtype)
        if product is None:
            raise ValueError("there must be factors.")
        model.normalization_, model.component_indices_ = _stored_arrays(state, product, dtype)
        model.n_features_in_ = len(mean)
        model.__dict__.update(state.feature_names(len(mean)))
        state.finish()
        with np.errstate(all="ignore"):  # landmarks that are too large are refused
            model._set_landmarks(Landmarks(product, mean))
            model._values.values(mean[None].astype(dtype), 1)
        return model

    def _features(self, X: Any) -> NDArray[Any]:
        normalization = self.normalization_.astype(np.result_type(self.normalization_.dtype, X.dtype), copy=False)
        return features(X, self._values, normalization, resolve_threads(self.n_threads))

    # ---- checks ---------------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        X = validate_data(self, with_columns(X), reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        return X if sp.issparse(X) else readable(X)

    def _check_parameters(self) -> None:
        kernel = self.kernel
        pair = isinstance(kernel, tuple) and len(kernel) == 2 and (kernel[0] is None or callable(kernel[0]))
        if not (pair and callable(kernel[1])) and not (isinstance(kernel, str) and kernel in NAMES):
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, NAMES))}, or a pair (f, g) of callables with "
                f"k(x, y) = f(x) f(y) g(<x, y>), got {kernel!r}."
            )
        gamma = self.gamma
        named = gamma is None or (isinstance(gamma, str) and gamma in _GAMMAS)
        if not named and not (is_number(gamma) and 0 < float(gamma) < np.inf):
            raise ValueError(f"gamma must be a positive number, 'scale', 'mean-distance' or None, got {gamma!r}.")
        check_whole("n_components", self.n_components, 1)
        if not is_number(self.degree) or not 1 <= self.degree < np.inf:
            raise ValueError(f"degree must be a finite number not below 1, got {self.degree!r}.")
        if not is_number(self.coef0) or not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}.")
        if isinstance(self.landmarks, str) and self.landmarks not in _LANDMARKS:
            raise ValueError(_landmarks_must_be(self.landmarks))
        compression = self.compression
        found = isinstance(compression, str) and compression == "auto"
        if not found and not (is_number(compression) and 1 <= float(compression) < np.inf):
            raise ValueError(f"compression must be a finite number not below 1, or 'auto', got {compression!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _moments(X: Any) -> tuple[NDArray[np.float64], float]:
    """The mean of the rows, and the mean of their squared distances from it."""
    squares, step = 0.0, rows_at_a_time(X.shape[1])
    with np.errstate(over="ignore"):
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        for begin in range(0, X.shape[0], step):
            squares += float(np.square(dense(X[begin : begin + step]) - mean).sum())
        if not np.isfinite(squares + mean @ mean):
            raise ValueError("The squares of the numbers in X overflow float64; scale X.")
    return mean, squares / X.shape[0]


def _rounded(mean: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """A mean that arithmetic of the given type has exactly, so that it is the same in C, W and the landmarks."""
    return mean.astype(dtype).astype(np.float64)


def _landmarks_must_be(landmarks: Any) -> str:
    return f"landmarks must be one of {', '.join(map(repr, _LANDMARKS))}, an array or a QKMeans, got {landmarks!r}."


def _stored_arrays(
    state: State, product: SparseProduct, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """The normalization, and the rows of X that are landmarks, if they are."""
    K = product.shape[0]
    normalization = state.tensor("normalization", 2, (dtype.name,))
    if normalization.shape != (K, K):
        raise ValueError(f"normalization must have shape {(K, K)}, got {normalization.shape}.")
    if "components" in state.tensors and state.tensor("components", 2, (dtype.name,)).shape != product.shape:
        raise ValueError(f"components must have shape {product.shape}.")
    if "component_indices" not in state.tensors:
        return normalization, None
    indices = state.tensor("component_indices", 1, UNSIGNED)
    if len(indices) != K or (indices >= 2**63).any():
        raise ValueError(f"component_indices must name {K} rows.")
    return normalization, indices.astype(np.int64)
