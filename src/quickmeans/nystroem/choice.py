"""The choice of landmarks: a table of ways by name, and the centroids of a given clustering."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from quickmeans.kmeans.rows import Rows
from quickmeans.nystroem.compression import compressed
from quickmeans.nystroem.heldout import HeldOut
from quickmeans.nystroem.kernels import Kernel, Landmarks
from quickmeans.nystroem.leverage import by_leverage
from quickmeans.nystroem.structured import Structured
from quickmeans.transform import SparseProduct


class Clusters(Protocol):
    """A fitted clustering of rows, such as QKMeans."""

    cluster_centers_: NDArray[Any]

    def predict(self, X: Any) -> Any:
        """The nearest centroid of every row."""


@dataclass(frozen=True)
class Problem:
    """What landmarks are chosen for.

    Attributes
    ----------
    rows : Rows
    X : array, sparse matrix or RowSource
        The same rows as a clustering takes them.
    mean : array of shape (n_features,)
        The mean of the rows, rounded to `dtype`.
    origin : array of shape (n_features,)
        What dense landmarks are stored about: distances are accurate about the mean, inner products about zero.
    dtype : numpy.dtype
        float32 or float64: the arithmetic of the kernel.
    n_landmarks : int
    kernel : callable
        Makes the kernel for given landmarks.
    compression : float or "auto"
    cluster : callable
        ``cluster(n, seed)`` clusters the rows.
    rng : numpy.random.RandomState
    n_threads : int
    """

    rows: Rows
    X: Any
    mean: NDArray[np.float64]
    origin: NDArray[np.float64]
    dtype: np.dtype[Any]
    n_landmarks: int
    kernel: Callable[[Landmarks], Kernel]
    compression: float | str
    cluster: Callable[[int, int], Clusters]
    rng: np.random.RandomState
    n_threads: int

    def dense(self, points: NDArray[Any]) -> Landmarks:
        """Any points as landmarks."""
        return Landmarks.dense(points, self.origin, self.dtype)

    def clusters(self) -> Clusters:
        """A clustering of the rows with as many clusters as landmarks are needed."""
        return self.cluster(self.n_landmarks, self.rng.randint(2**31))


Chosen = tuple[Landmarks, NDArray[np.int64] | None]  # and which rows they are, if they are rows


def _kmeans(problem: Problem) -> Chosen:
    return problem.dense(problem.clusters().cluster_centers_), None


def _qkmeans(problem: Problem) -> Chosen:
    return compressed_centers(problem, problem.clusters()), None


def _uniform(problem: Problem) -> Chosen:
    index = np.sort(problem.rng.permutation(problem.rows.shape[0])[: problem.n_landmarks])
    return problem.dense(problem.rows.take(index)), index


def _leverage(problem: Problem) -> Chosen:
    kernel = problem.kernel(problem.dense(problem.origin[None]))
    index = by_leverage(problem.rows, kernel, problem.n_landmarks, problem.rng, problem.n_threads)
    return problem.dense(problem.rows.take(index)), index


def _structured(problem: Problem, transform: str, *, learn: bool = False) -> Chosen:
    rows, mean, rng = problem.rows, problem.mean, problem.rng
    structure = Structured(transform, problem.n_landmarks, rows.shape[1], rng)
    vectors = rows.take(rng.permutation(rows.shape[0])[: structure.n_blocks]) - mean
    if learn:
        return Landmarks(structure.learned(rows, mean, vectors, problem.dtype, problem.n_threads), mean), None
    return Landmarks(structure.product(vectors, problem.dtype), mean), None


NEED_MEMORY = {"leverage"}  # reads rows in any order, again and again

CHOICES: dict[str, Callable[[Problem], Chosen]] = {
    "qkmeans": _qkmeans,
    "kmeans": _kmeans,
    "uniform": _uniform,
    "leverage": _leverage,
    "hadamard": partial(_structured, transform="hadamard"),
    "haar": partial(_structured, transform="haar"),
    "kmeans-hadamard": partial(_structured, transform="hadamard", learn=True),
}


def must_be_landmarks(landmarks: Any) -> str:
    """What to say of a wrong parameter `landmarks`."""
    return f"landmarks must be one of {', '.join(map(repr, CHOICES))}, an array or a QKMeans, got {landmarks!r}."


def given_points(points: Any, n_columns: int, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """The user's points, which must have so many columns and be finite in this type."""
    try:
        shape = np.asarray(points, np.float64).shape
    except (TypeError, ValueError):
        shape = ()
    if len(shape) != 2 or 0 in shape:
        raise ValueError(must_be_landmarks(points))
    rows = check_array(points, dtype=np.float64, ensure_all_finite=True, input_name="landmarks")
    if rows.shape[1] != n_columns:
        raise ValueError(f"landmarks has {rows.shape[1]} columns, but X has {n_columns}; they must be as many.")
    if np.abs(rows).max() > np.finfo(dtype).max:
        raise ValueError(f"landmarks has numbers that are not finite in {dtype}; scale it and X, or use float64.")
    return np.asarray(rows, np.float64)


def product_rows(product: SparseProduct, mean: NDArray[np.float64], dtype: np.dtype[Any]) -> Landmarks:
    """The rows of a product about a mean as landmarks in this arithmetic."""
    return Landmarks(SparseProduct([S.astype(dtype) for S in product.factors]), rounded(mean, dtype))


def compressed_centers(problem: Problem, clusters: Clusters) -> Landmarks:
    """A product near the centroids, chosen and refined by the error of the kernel matrix of some of the rows."""
    mean, dtype = problem.mean, problem.dtype
    points = clusters.cluster_centers_.astype(np.float64) - mean
    whole = SparseProduct([points.astype(dtype)])
    if problem.compression == 1:
        return Landmarks(whole, mean)
    sizes = np.bincount(clusters.predict(problem.X), minlength=len(points)).astype(np.float64)
    heldout = HeldOut(
        problem.rows,
        whole,
        lambda product: problem.kernel(Landmarks(product, mean)),
        dtype,
        problem.rng,
        problem.n_threads,
    )
    return Landmarks(compressed(points, np.maximum(sizes, 1), problem.compression, heldout, dtype), mean)


def rounded(mean: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """The mean rounded to a type, so that it is the same number in C, in W and in the landmarks."""
    return mean.astype(dtype).astype(np.float64)
