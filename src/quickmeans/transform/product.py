"""A matrix that is a product of sparse factors."""

from collections.abc import Iterable
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from quickmeans import kernels
from quickmeans.checks import check_whole
from quickmeans.kernels import readable
from quickmeans.threads import resolve_threads
from quickmeans.transform.checks import (
    check_comparable,
    check_dense,
    check_gamma,
    check_mean,
    check_operand,
    check_rows,
    check_vector,
    finite_in,
    squared_norms,
    working_dtype,
)
from quickmeans.transform.factors import Factor, check_factors, equal_factors, read_only_view

_NORMS_OVERFLOW = "The squared norms of the rows overflow; scale the factors"
# Rows of V that are computed at a time: fewer where the rows of S_1 are long, but at least one tile of the kernel.
_BLOCK, _LEAST_BLOCK, _BLOCK_ENTRIES = 256, 64, 1 << 21


class SparseProduct(LinearOperator):  # type: ignore[misc]  # SciPy is untyped
    r"""The K x D matrix :math:`V = S_1 S_2 \cdots S_Q`, never formed.

    Applying V to a vector costs as many multiply-adds as the factors have non-zeros, instead of K D. The product is a
    :class:`scipy.sparse.linalg.LinearOperator`, so ``V @ x``, ``V @ M``, ``V.T`` and SciPy's solvers work. It also
    applies to rows: for X of N rows, in any memory layout, ``X @ V.T`` is N x K and needs no copy of X.

    Parameters
    ----------
    factors : sequence of matrices
        :math:`S_1, \ldots, S_Q` from left to right: SciPy sparse matrices or arrays, dense arrays, other products, or a
        mix. They are copied. Each is kept as a CSR array, or as a dense array if more than half of it is non-zero.

    Attributes
    ----------
    shape : tuple of int
        (K, D).
    dtype : numpy.dtype
        float32 or float64: the common type of the factors, but at least float32; float64 for integers.
    factors : tuple
        The factors as they are kept, read-only.
    nnz : int
        Number of non-zero coefficients of all factors.
    macs : int
        Multiply-adds per vector: the non-zeros of sparse factors and all entries of dense ones.

    Notes
    -----
    Results have the common type of product and operand by NumPy's rules, but at least float32. So a float32 product
    gives float32 for float32, float16 and 8- or 16-bit integers, and float64 for wider integers.

    NaN and infinities in the operand of ``@`` spread to the results that depend on them, as in a dense product.
    :meth:`nearest_row` and :meth:`nearest_rows` refuse them, and also numbers so large that a product might overflow.

    X is copied only if the native code cannot read it: foreign byte order, long double, unaligned addresses or strides
    that are not a multiple of the item size. pandas does not support ``frame @ V.T``; write ``V.apply(frame)``.

    The product of two products, ``V @ W``, is a SparseProduct. Each row of a result depends on its own row of X
    alone, and is the same to the bit for any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans import SparseProduct
    >>> V = SparseProduct([[[1, 0], [0, 2], [1, 1]], np.eye(2)])
    >>> V
    SparseProduct(3 x 2, 2 factors, 6 non-zeros, compression 1.0x, float64)
    >>> V @ [3, 4]
    array([3., 8., 7.])
    >>> V.nearest_row([[0.9, 0.8], [0.1, 1.7]])
    array([2, 1])
    """

    def __new__(cls, factors: Iterable[Any]) -> "SparseProduct":  # without it help() shows SciPy's *args, **kwargs
        return super().__new__(cls)  # type: ignore[no-any-return]  # SciPy is untyped

    def __init__(self, factors: Iterable[Any]) -> None:
        """See the class."""
        self._factors = check_factors(_spliced(factors))
        super().__init__(self._factors[0].dtype, (self._factors[0].shape[0], self._factors[-1].shape[1]))
        self._natives: dict[np.dtype[Any], kernels.Product] = {}
        self._offsets: dict[np.dtype[Any], tuple[NDArray[Any], float]] = {}

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors as they are kept, read-only."""
        return tuple(read_only_view(S) for S in self._factors)

    @property
    def nnz(self) -> int:
        """Number of non-zero coefficients of all factors."""
        return sum(S.nnz if sp.issparse(S) else int(np.count_nonzero(S)) for S in self._factors)

    @property
    def macs(self) -> int:
        """The multiply-adds per vector: the non-zeros of sparse factors and all entries of dense ones."""
        return sum(S.nnz if sp.issparse(S) else S.size for S in self._factors)

    def apply(self, X: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """Compute ``X @ V.T`` for the rows of X.

        Parameters
        ----------
        X : array of shape (N, D)
            Real numbers.
        n_threads : int, default=None
            The most threads to use; for None see :func:`quickmeans.threads.resolve_threads`.

        Returns
        -------
        array of shape (N, K)
            In row-major order.
        """
        rows = check_rows(X, self.shape[1])
        return self.native(self._dtype_with(rows)).apply(rows, _threads(rows, n_threads))

    def __matmul__(self, other: Any) -> Any:
        if type(other) is np.ndarray and other.dtype == self.dtype and other.shape == self.shape[1:]:
            return self._matvec(other)  # the shortest path: a product with one vector takes microseconds
        return super().__matmul__(other) if isinstance(other, Number) else self.dot(other)

    def __rmatmul__(self, other: Any) -> Any:
        return super().__rmatmul__(other) if isinstance(other, Number) else self._rdot(other)

    def dot(self, x: Any) -> Any:
        if isinstance(x, SparseProduct):
            return SparseProduct([self, x])
        if isinstance(x, LinearOperator | Number):
            return super().dot(x)
        operand = check_operand(x, self.shape[1], self.shape)
        return self._matvec(operand) if operand.ndim == 1 else self._matmat(operand)

    def _rdot(self, x: Any) -> Any:
        if isinstance(x, LinearOperator | Number):
            return super()._rdot(x)
        operand = check_operand(np.transpose(check_dense(x, "The operand")), self.shape[0], self.shape)
        return self._transposed._matvec(operand) if operand.ndim == 1 else self._transposed.apply(operand.T)

    def _matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        if x.dtype != self.dtype or not x.flags.aligned or x.strides[-1] % x.itemsize:
            return self.apply(x.reshape(1, -1)).reshape(-1)
        return self._own_native.apply_one(x.reshape(-1))

    def _matmat(self, X: NDArray[Any]) -> NDArray[Any]:
        rows = readable(X.T)
        return self.native(self._dtype_with(rows)).apply(rows, _threads(rows, None), transposed=True)

    def _rmatvec(self, x: NDArray[Any]) -> NDArray[Any]:
        return self._transposed._matvec(x)

    def _rmatmat(self, X: NDArray[Any]) -> NDArray[Any]:
        return self._transposed._matmat(X)

    def _transpose(self) -> "SparseProduct":
        return self._transposed

    def _adjoint(self) -> "SparseProduct":
        return self._transposed

    @cached_property
    def _transposed(self) -> "SparseProduct":
        transposed = SparseProduct([S.T for S in reversed(self._factors)])
        transposed.__dict__["_transposed"] = self
        return transposed

    # ---- the rows of V as points ----------------------------------------------------------------------------------

    def nearest_row(
        self,
        X: ArrayLike,
        *,
        bias: ArrayLike | None = None,
        return_distance: bool = False,
        n_threads: int | None = None,
    ) -> Any:
        r"""Find the row of V nearest to each row x of X.

        .. math:: \arg\min_k \|x - v_k\| = \arg\min_k \; b_k - \langle v_k, x\rangle, \qquad b_k = \|v_k\|^2 / 2

        Parameters
        ----------
        X : array of shape (N, D)
            Finite real numbers.
        bias : array of shape (K,), default=None
            Values to use for b instead. For example, :math:`\|v_k\|^2 / 2 + \langle v_k, \mu\rangle` compares the rows
            of X minus :math:`\mu`.
        return_distance : bool, default=False
            Also return the distances, or with `bias` the values of :math:`b_k - \langle v_k, x\rangle`. Distances are
            computed from :math:`\|x\|^2` and the product. The error of a squared distance is a few units of rounding of
            :math:`\|x\|^2 + \|v_k\|^2`, so a point that equals a row may have a small distance that is not zero.
        n_threads : int, default=None
            The most threads to use; for None see :func:`quickmeans.threads.resolve_threads`.

        Returns
        -------
        labels : array of int64, shape (N,)
            Index of the nearest row; the lowest one if several are equally near.
        distances : array of shape (N,)
            Only if `return_distance`.
        """
        labels, values = self._nearest(X, 1, bias, return_distance, n_threads)
        return (labels[:, 0], values[:, 0]) if return_distance else labels[:, 0]

    def nearest_rows(
        self,
        X: ArrayLike,
        m: int,
        *,
        bias: ArrayLike | None = None,
        return_distance: bool = False,
        n_threads: int | None = None,
    ) -> Any:
        """Find the `m` rows of V nearest to each row of X, nearest first; equally near ones in order of their index.

        Parameters
        ----------
        X : array of shape (N, D)
            Finite real numbers.
        m : int
            How many, at most K.
        bias, return_distance, n_threads
            As in :meth:`nearest_row`.

        Returns
        -------
        labels : array of int64, shape (N, m)
        distances : array of shape (N, m)
            Only if `return_distance`.
        """
        m = check_whole("m", m, 1, ", the number of rows", most=self.shape[0])
        labels, values = self._nearest(X, m, bias, return_distance, n_threads)
        return (labels, values) if return_distance else labels

    def _nearest(
        self, X: ArrayLike, m: int, bias: ArrayLike | None, return_distance: bool, n_threads: int | None
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        rows = check_rows(X, self.shape[1])
        dtype = self._dtype_with(rows)
        offset, largest = self._offset(bias, dtype)
        labels, scores, bad = self.native(dtype).nearest(rows, m, offset, largest, _threads(rows, n_threads))
        check_comparable(rows, bad, dtype)
        if not return_distance:
            return labels, scores
        if bias is not None:
            return labels, -scores
        squares = squared_norms(rows)[:, None] - 2 * scores.astype(np.float64)
        return labels, finite_in(np.sqrt(np.maximum(squares, 0)), dtype, "The distances overflow; scale X")

    def gaussian(
        self, X: ArrayLike, gamma: float, *, mean: ArrayLike | None = None, n_threads: int | None = None
    ) -> NDArray[Any]:
        r"""Compute Gaussian kernel values between the rows of X minus a mean m, and the rows of V.

        .. math:: \exp(-\gamma \|x - m - v_k\|^2)

        The distances are computed as in :meth:`nearest_row` and never stored.

        Parameters
        ----------
        X : array of shape (N, D)
            Finite real numbers.
        gamma : float
            Positive.
        mean : array of shape (D,), default=None
            The mean m; None stands for zero.
        n_threads : int, default=None
            The most threads to use; for None see :func:`quickmeans.threads.resolve_threads`.

        Returns
        -------
        array of shape (N, K)
            In row-major order.
        """
        rows = check_rows(X, self.shape[1])
        dtype = self._dtype_with(rows)
        gamma = check_gamma(gamma, dtype)
        shift = np.zeros(self.shape[1], dtype) if mean is None else check_mean(mean, self.shape[1], dtype)
        offset, largest = self._offset(None, dtype)
        out, bad = self.native(dtype).gaussian(rows, shift, offset, largest, gamma, _threads(rows, n_threads))
        check_comparable(rows, bad, dtype)
        return out

    def _offset(self, bias: ArrayLike | None, dtype: np.dtype[Any]) -> tuple[NDArray[Any], float]:
        """Return 0 - b, and its largest absolute value; b is the given bias or half the squared norms of the rows.

        0 - b is never -0, so that equal scores are equal to the bit.
        """
        if bias is not None:
            values = check_vector(bias, "bias", self.shape[0], "row")
            offset = finite_in(0.0 - values, dtype, "bias must be finite")
            return offset, float(np.abs(offset).max())
        if dtype not in self._offsets:
            offset = finite_in(0.0 - self._squared_row_norms(dtype) / 2, dtype, _NORMS_OVERFLOW)
            self._offsets[dtype] = offset, float(np.abs(offset).max())
        return self._offsets[dtype]

    # ---- dense rows -----------------------------------------------------------------------------------------------

    def toarray(self) -> NDArray[Any]:
        """Return V as a dense K x D array."""
        out = np.empty(self.shape, self.dtype)
        for begin, block in self._row_blocks(self.dtype):
            out[begin : begin + len(block)] = block
        return out

    def row_norms(self) -> NDArray[Any]:
        """Return the Euclidean norms of the rows of V, computed a block of rows at a time."""
        squares = finite_in(self._squared_row_norms(self.dtype), np.dtype(np.float64), _NORMS_OVERFLOW)
        return np.asarray(np.sqrt(squares), self.dtype)

    def _squared_row_norms(self, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        """Return ||v_k||^2 of the rows, which are computed in the given type, summed in float64."""
        norms = np.empty(self.shape[0])
        for begin, block in self._row_blocks(dtype):
            norms[begin : begin + len(block)] = squared_norms(block)
        return norms

    def _row_blocks(self, dtype: np.dtype[Any]) -> Iterable[tuple[int, NDArray[Any]]]:
        """Yield the rows of V, a block at a time, with the index of the first: rows of S_1 times the other factors."""
        first, *rest = self._factors
        right = SparseProduct([S.T for S in reversed(rest)]) if rest else None
        step = min(_BLOCK, max(_LEAST_BLOCK, _BLOCK_ENTRIES // first.shape[1]))
        for begin in range(0, self.shape[0], step):
            rows = first[begin : begin + step]
            block = (rows.toarray() if sp.issparse(rows) else rows).astype(dtype, copy=False)
            yield begin, block if right is None else right.apply(block)

    def _dtype_with(self, rows: NDArray[Any]) -> np.dtype[Any]:
        return self.dtype if rows.dtype == self.dtype else working_dtype(self.dtype, rows.dtype)

    def native(self, dtype: np.dtype[Any]) -> kernels.Product:
        """Return the factors as the native code takes them, in float32 or float64; made once, when first needed."""
        native = self._natives.get(dtype)
        if native is None:
            native = self._natives[dtype] = kernels.Product(self._factors, dtype)
        return native

    @cached_property
    def _own_native(self) -> kernels.Product:
        return self.native(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._factors,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseProduct):
            return NotImplemented
        if (self.shape, self.dtype, len(self._factors)) != (other.shape, other.dtype, len(other._factors)):
            return False
        return all(equal_factors(S, T) for S, T in zip(self._factors, other._factors, strict=True))

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.nnz))

    def __repr__(self) -> str:
        K, D = self.shape
        q = len(self._factors)
        return (
            f"SparseProduct({K} x {D}, {q} factor{'s' * (q > 1)}, {self.nnz} non-zeros, "
            f"compression {K * D / max(self.nnz, 1):.1f}x, {self.dtype})"
        )


def _spliced(factors: Any) -> Any:
    """Return the factors, with each product among them replaced by its factors."""
    if not isinstance(factors, list | tuple) or not any(isinstance(S, SparseProduct) for S in factors):
        return factors
    return [S for F in factors for S in (F._factors if isinstance(F, SparseProduct) else [F])]


def _threads(rows: NDArray[Any], n_threads: int | None) -> int:
    if n_threads is None and len(rows) == 1:
        return 1
    return resolve_threads(n_threads)
