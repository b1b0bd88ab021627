r"""Kernels of the form :math:`k(x, y) = f(x) f(y)\, g(\langle x, y\rangle)` against rows of a product as landmarks.

Landmarks are written :math:`u_k = m + v_k` with the mean m of the data and the rows :math:`v_k` of a product, so

.. math:: \langle x, u_k\rangle = \langle x, v_k\rangle + \langle x, m\rangle, \qquad
          \|x - u_k\|^2 = \|(x - m) - v_k\|^2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quickmeans.transform import SparseProduct

Array = NDArray[Any]
Scale = Callable[[Array], Any]  # f, of rows
Profile = Callable[[Array], Any]  # g, of inner products

NAMES = ("rbf", "polynomial", "poly", "sigmoid", "linear", "cosine")


@dataclass(frozen=True)
class Landmarks:
    """The points m + v_k."""

    product: SparseProduct
    mean: NDArray[np.float64]

    @classmethod
    def dense(cls, rows: Array, mean: NDArray[np.float64], dtype: Any) -> "Landmarks":
        """Any rows as landmarks."""
        return cls(SparseProduct([(np.asarray(rows, np.float64) - mean).astype(dtype)]), mean)

    def rows(self) -> NDArray[np.float64]:
        """The landmarks themselves; what rounding leaves of one at zero has no direction, and is made zero."""
        rows = self.product.toarray().astype(np.float64) + self.mean
        noise = 8 * float(np.finfo(self.product.dtype).eps) * np.linalg.norm(self.mean)
        rows[np.linalg.norm(rows, axis=1) <= noise] = 0
        return np.asarray(rows, np.float64)

    def dots(self, X: Array, n_threads: int) -> Array:
        """<x, u_k> for all rows of X."""
        dots = self.product.apply(X, n_threads=n_threads)
        dots += (X @ self.mean).astype(dots.dtype)[:, None]
        return dots


class Kernel(Protocol):
    """Values between rows and landmarks."""

    @property
    def landmarks(self) -> Landmarks:
        """The landmarks."""

    def values(self, X: Array, n_threads: int) -> Array:
        """k(x, u_k) for the rows of X, N x K."""

    def against(self, rows: Array, dtype: Any) -> "Kernel":
        """The same kernel with these rows as landmarks."""

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        """k(x, x) for the rows of X."""


@dataclass(frozen=True)
class Gaussian:
    r""":math:`\exp(-\gamma \|x - y\|^2)`: f is :math:`\exp(-\gamma \|x\|^2)` and g is :math:`\exp(2 \gamma t)`."""

    gamma: float
    landmarks: Landmarks

    def values(self, X: Array, n_threads: int) -> Array:
        """See :class:`Kernel`."""
        to = self.landmarks
        return to.product.gaussian(X, self.gamma, mean=to.mean, n_threads=n_threads)

    def against(self, rows: Array, dtype: Any) -> "Gaussian":
        """See :class:`Kernel`."""
        return Gaussian(self.gamma, Landmarks.dense(rows, self.landmarks.mean, dtype))

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        """See :class:`Kernel`."""
        return np.ones(len(X))


class DotProduct:
    """A kernel by its f (None for one) and g.

    Inner products with given rows need no mean: where it is large, it would only take digits away from them.
    """

    def __init__(self, name: str, f: Scale | None, g: Profile, landmarks: Landmarks) -> None:
        """See the class."""
        self.name, self.f, self.g, self.landmarks = name, f, g, landmarks
        self._factors = None if f is None else _per_row(f, landmarks.rows())

    def values(self, X: Array, n_threads: int) -> Array:
        """See :class:`Kernel`."""
        with np.errstate(over="ignore", invalid="ignore"):
            dots = self.landmarks.dots(X, n_threads)
            values = _same_shape(self.g, dots)
            if self.f is not None:
                values *= _per_row(self.f, X).astype(values.dtype)[:, None]
                values *= np.asarray(self._factors, values.dtype)
        return self._checked(values)

    def against(self, rows: Array, dtype: Any) -> "DotProduct":
        """See :class:`Kernel`."""
        return DotProduct(self.name, self.f, self.g, Landmarks.dense(rows, np.zeros(rows.shape[1]), dtype))

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        """See :class:`Kernel`."""
        rows = np.asarray(X, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            values = _same_shape(self.g, np.einsum("id,id->i", rows, rows))
            values = values if self.f is None else values * _per_row(self.f, rows) ** 2
        return self._checked(values)

    def _checked(self, values: Array) -> Array:
        if not np.isfinite(values).all():
            wider = " or use float64" if values.dtype == np.float32 else ""
            raise ValueError(
                f"The {self.name} kernel has values that are not finite in {values.dtype}; "
                f"scale X{wider}, or take a kernel that grows more slowly."
            )
        return values


class Cosine(DotProduct):
    """<x, y> / |x| |y|. Rows get length one before the product, so that none is too long or too short for it."""

    def __init__(self, landmarks: Landmarks) -> None:
        """See the class."""
        super().__init__("cosine", _inverse_length, _itself, landmarks)

    def values(self, X: Array, n_threads: int) -> Array:
        """See :class:`Kernel`."""
        with np.errstate(over="ignore", invalid="ignore"):
            dots = self.landmarks.dots((X * _inverse_length(X)[:, None]).astype(X.dtype), n_threads)
            dots *= np.asarray(self._factors, dots.dtype)
        return self._checked(dots)

    def against(self, rows: Array, dtype: Any) -> "Cosine":
        """See :class:`Kernel`."""
        return Cosine(Landmarks.dense(rows, np.zeros(rows.shape[1]), dtype))


def make_kernel(
    kernel: str | tuple[Scale | None, Profile], gamma: float, degree: float, coef0: float, landmarks: Landmarks
) -> Kernel:
    """The kernel by name, or from the user's f and g."""
    if isinstance(kernel, tuple):
        return DotProduct("given", *kernel, landmarks)
    if kernel == "rbf":
        return Gaussian(gamma, landmarks)
    if kernel in ("polynomial", "poly"):
        return DotProduct(kernel, None, partial(_power, gamma=gamma, degree=degree, coef0=coef0), landmarks)
    if kernel == "sigmoid":
        return DotProduct(kernel, None, partial(_tanh, gamma=gamma, coef0=coef0), landmarks)
    return Cosine(landmarks) if kernel == "cosine" else DotProduct(kernel, None, _itself, landmarks)


def _itself(t: Array) -> Array:
    return t


def _power(t: Array, *, gamma: float, degree: float, coef0: float) -> Array:
    t *= t.dtype.type(gamma)
    t += t.dtype.type(coef0)
    if degree == int(degree) and degree <= 8:
        base = t.copy() if degree > 1 else t
        for _ in range(int(degree) - 1):
            t *= base
        return t
    if degree != int(degree) and (t < 0).any():
        raise ValueError(
            f"A polynomial kernel of degree {degree} has no values where gamma <x, y> + coef0 is negative; "
            "take a whole degree or a larger coef0."
        )
    return np.asarray(np.power(t, t.dtype.type(degree), out=t))


def _tanh(t: Array, *, gamma: float, coef0: float) -> Array:
    t *= t.dtype.type(gamma)
    t += t.dtype.type(coef0)
    return np.tanh(t, out=t)


def _inverse_length(X: Array) -> NDArray[np.float64]:
    """1 / |x|, and 0 for rows without direction: their kernel values are zero."""
    rows = X.astype(np.float64, copy=False)
    lengths = np.sqrt(np.einsum("id,id->i", rows, rows))
    return np.asarray(np.divide(1, lengths, out=np.zeros(len(rows)), where=lengths > 0))


def _per_row(f: Scale, X: Array) -> NDArray[np.float64]:
    values = np.asarray(f(X), np.float64)
    if values.shape != (len(X),):
        raise ValueError(f"f must return one number per row, shape ({len(X)},), got shape {values.shape}.")
    return values


def _same_shape(g: Profile, dots: Array) -> Array:
    values = np.asarray(g(dots))
    if values.shape != dots.shape:
        raise ValueError(f"g must return an array of the shape it is given, {dots.shape}, got {values.shape}.")
    return values.astype(dots.dtype, copy=False)
