r"""Kernels :math:`k(x, y) = f(x) f(y)\, g(\langle x, y\rangle)` between rows and landmarks.

Landmarks are written :math:`u_k = m + v_k` with the mean m of the data and the rows :math:`v_k` of a product, so that

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
from quickmeans.transform.checks import squared_norms

Array = NDArray[Any]
Scale = Callable[[Array], Any]  # f, of rows
Profile = Callable[[Array], Any]  # g, of inner products

# The largest power by repeated multiplication: its error is at most 7 units of rounding, and numpy.power takes at least
# 6 times as long (benchmarks/thresholds.py).
_LARGEST_POWER = 8


@dataclass(frozen=True)
class Landmarks:
    """The points m + v_k.

    Attributes
    ----------
    product : SparseProduct
        Its rows are the v_k.
    mean : array of shape (n_features,)
        m.
    """

    product: SparseProduct
    mean: NDArray[np.float64]

    @classmethod
    def dense(cls, rows: Array, mean: NDArray[np.float64], dtype: Any) -> "Landmarks":
        """Any points as landmarks, stored about this mean."""
        return cls(SparseProduct([(np.asarray(rows, np.float64) - mean).astype(dtype)]), mean)

    def rows(self) -> NDArray[np.float64]:
        """The landmarks as an array.

        A landmark at zero is moved by the rounding of v_k = -m, a few units of rounding of m; that is no direction, and
        it is set to zero.
        """
        rows: NDArray[np.float64] = np.add(self.product.toarray(), self.mean, dtype=np.float64)
        rounding = 8 * float(np.finfo(self.product.dtype).eps) * float(np.linalg.norm(self.mean))
        rows[squared_norms(rows) <= rounding**2] = 0
        return rows

    def dots(self, X: Array, n_threads: int) -> Array:
        """<x, u_k> for all rows of X."""
        dots = self.product.apply(X, n_threads=n_threads)
        dots += (X @ self.mean).astype(dots.dtype)[:, None]
        return dots


class Kernel(Protocol):
    """Kernel values between rows and landmarks."""

    @property
    def landmarks(self) -> Landmarks:
        """The points u_k."""

    def values(self, X: Array, n_threads: int) -> Array:
        """k(x, u_k) for the rows of X, N x K."""

    def against(self, rows: Array, dtype: Any) -> "Kernel":
        """The same kernel with these rows as landmarks, in arithmetic of this type."""

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        """k(x, x) for the rows of X."""

    def pull(self, X: Array, C: Array, G: Array) -> Array | None:
        """The gradient of <G, C> in the landmarks, where C are the values of X; None if the slope is not known."""


@dataclass(frozen=True)
class Gaussian:
    r""":math:`\exp(-\gamma \|x - y\|^2)`: f is :math:`\exp(-\gamma \|x\|^2)` and g is :math:`\exp(2 \gamma t)`."""

    gamma: float
    landmarks: Landmarks

    def values(self, X: Array, n_threads: int) -> Array:
        to = self.landmarks
        return to.product.gaussian(X, self.gamma, mean=to.mean, n_threads=n_threads)

    def against(self, rows: Array, dtype: Any) -> "Gaussian":
        return Gaussian(self.gamma, Landmarks.dense(rows, self.landmarks.mean, dtype))

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        return np.ones(len(X))

    def pull(self, X: Array, C: Array, G: Array) -> Array | None:
        r""":math:`\sum_i P_{ik} (x_i - u_k)` with :math:`P = 2 \gamma\, G \circ C`."""
        P = (2 * self.gamma * G * C).astype(X.dtype)
        U = self.landmarks.rows().astype(X.dtype)
        return np.asarray(P.T @ X - P.sum(axis=0)[:, None] * U)


class DotProduct:
    """A kernel by its f (None for ones) and g.

    `against` stores rows about zero: a large mean would only cost digits of inner products.
    """

    def __init__(self, name: str, f: Scale | None, g: Profile, landmarks: Landmarks) -> None:
        self.name, self.f, self.g, self.landmarks = name, f, g, landmarks
        self._factors = None if f is None else _per_row(f, landmarks.rows())

    def values(self, X: Array, n_threads: int) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            dots = self.landmarks.dots(X, n_threads)
            values = _same_shape(self.g, dots)
            if self.f is not None:
                values *= _per_row(self.f, X).astype(values.dtype)[:, None]
                values *= np.asarray(self._factors, values.dtype)
        return self._checked(values)

    def against(self, rows: Array, dtype: Any) -> "DotProduct":
        return DotProduct(self.name, self.f, self.g, Landmarks.dense(rows, np.zeros(rows.shape[1]), dtype))

    def diagonal(self, X: Array) -> NDArray[np.float64]:
        rows = np.asarray(X, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            values = _same_shape(self.g, np.einsum("id,id->i", rows, rows))
            values = values if self.f is None else values * _per_row(self.f, rows) ** 2
        return self._checked(values)

    def pull(self, X: Array, C: Array, G: Array) -> Array | None:
        return None

    def _checked(self, values: Array) -> Array:
        if not np.isfinite(values).all():
            wider = " or use float64" if values.dtype == np.float32 else ""
            raise ValueError(
                f"The {self.name} kernel has values that are not finite in {values.dtype}; "
                f"scale X{wider}, or take a kernel that grows more slowly."
            )
        return values


class Cosine(DotProduct):
    """<x, y> / |x| |y|. Rows are divided by their lengths before the product, so that it does not overflow."""

    def __init__(self, landmarks: Landmarks) -> None:
        super().__init__("cosine", _inverse_length, _identity, landmarks)

    def values(self, X: Array, n_threads: int) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            dots = self.landmarks.dots((X * _inverse_length(X)[:, None]).astype(X.dtype), n_threads)
            dots *= np.asarray(self._factors, dots.dtype)
        return self._checked(dots)

    def against(self, rows: Array, dtype: Any) -> "Cosine":
        return Cosine(Landmarks.dense(rows, np.zeros(rows.shape[1]), dtype))


def _identity(t: Array) -> Array:
    return t


def _power(t: Array, *, gamma: float, degree: float, coef0: float) -> Array:
    t *= t.dtype.type(gamma)
    t += t.dtype.type(coef0)
    if degree == int(degree) and degree <= _LARGEST_POWER:
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
    """1 / |x|, and 0 for zero rows, whose kernel values are then zero."""
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


def _polynomial(gamma: float, degree: float, coef0: float, landmarks: Landmarks) -> Kernel:
    return DotProduct("polynomial", None, partial(_power, gamma=gamma, degree=degree, coef0=coef0), landmarks)


KERNELS: dict[str, Callable[[float, float, float, Landmarks], Kernel]] = {
    "rbf": lambda gamma, degree, coef0, landmarks: Gaussian(gamma, landmarks),
    "polynomial": _polynomial,
    "poly": _polynomial,
    "sigmoid": lambda gamma, degree, coef0, landmarks: DotProduct(
        "sigmoid", None, partial(_tanh, gamma=gamma, coef0=coef0), landmarks
    ),
    "linear": lambda gamma, degree, coef0, landmarks: DotProduct("linear", None, _identity, landmarks),
    "cosine": lambda gamma, degree, coef0, landmarks: Cosine(landmarks),
}
NAMES = tuple(KERNELS)


def check_kernel(kernel: Any) -> None:
    """Refuse what is neither the name of a kernel nor a pair (f, g)."""
    pair = isinstance(kernel, tuple) and len(kernel) == 2 and (kernel[0] is None or callable(kernel[0]))
    if not (pair and callable(kernel[1])) and not (isinstance(kernel, str) and kernel in NAMES):
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, NAMES))}, or a pair (f, g) of callables with "
            f"k(x, y) = f(x) f(y) g(<x, y>), got {kernel!r}."
        )


def make_kernel(
    kernel: str | tuple[Scale | None, Profile], gamma: float, degree: float, coef0: float, landmarks: Landmarks
) -> Kernel:
    """The kernel by name, or from the user's pair (f, g)."""
    if isinstance(kernel, tuple):
        return DotProduct("given", *kernel, landmarks)
    return KERNELS[kernel](gamma, degree, coef0, landmarks)
