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
from quickmeans.threads import resolve_threads
from quickmeans.transform.checks import (
    Factor,
    check_dense,
    check_factors,
    check_operand,
    check_rows,
    first_bad_position,
    readable,
    working_dtype,
)

Kernel = kernels.Product

_NORMS_OVERFLOW = "The squared norms of the rows overflow; scale the factors"
_LARGEST_TILE = 64  # rows that the kernel handles together
_BLOCK = 256  # rows of V that are dense at a time when only their norms are wanted


class SparseProduct(LinearOperator):  # type: ignore[misc]  # SciPy is untyped
    r"""The K x D matrix :math:`V = S_1 S_2 \cdots S_Q`, never formed.

    Applying V to a vector costs as many multiply-adds as the factors have non-zeros, not K D. The product is a
    :class:`scipy.sparse.linalg.LinearOperator`, so ``V @ x``, ``V @ M``, ``V.T`` and SciPy's solvers work, and it
    takes rows: ``X @ V.T`` is N x K for X of N rows, in any memory layout, without a copy of X.

    Parameters
    ----------
    factors : sequence of matrices
        :math:`S_1, \ldots, S_Q` from left to right: SciPy sparse matrices or arrays, dense arrays, other products, or a
        mix. They are copied. Each is kept as a CSR array, or as a dense array if more than half of it is non-zero; a
        dense factor runs at the speed of a dense matrix product.

    Attributes
    ----------
    shape : tuple of int
        (K, D).
    dtype : numpy.dtype
        float32 or float64: the factors' common type, never narrower than float32; float64 for integers.
    factors : tuple
        The factors as they are kept, read-only.
    nnz : int
        Non-zero coefficients of all factors.
    macs : int
        Multiply-adds per vector: the non-zeros of sparse factors, all entries of dense ones.

    Notes
    -----
    Results have the common type of product and operand by NumPy's rules, never narrower than float32: float32 stays
    float32, 8- and 16-bit integers and float16 meet a float32 product in float32, wider integers in float64.

    NaN and infinities in the operand of ``@`` reach all results that depend on them, and at most those that they would
    reach in a dense product. :meth:`nearest_row` and :meth:`nearest_rows` refuse them, naming the first one, and
    numbers so large that a product might overflow.

    X is copied only if the kernel cannot read it: foreign byte order, long double, or strides that are no multiple of
    the item size. A pandas frame does not know ``frame @ V.T``; write ``V.apply(frame)``.

    The product of two products, ``V @ W``, is a SparseProduct.

    A row of a result depends on its row of X alone: neither the number of threads nor the other rows change a bit
    of it.

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

    def __init__(self, factors: Iterable[Any]) -> None:
        """See the class."""
        self._factors = check_factors(_spliced(factors))
        super().__init__(self._factors[0].dtype, (self._factors[0].shape[0], self._factors[-1].shape[1]))
        self._kernels: dict[np.dtype[Any], Kernel] = {}
        self._offsets: dict[np.dtype[Any], tuple[NDArray[Any], float]] = {}

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors as they are kept, read-only."""
        return tuple(_read_only_view(S) for S in self._factors)

    @property
    def nnz(self) -> int:
        """The number of non-zero coefficients of all factors."""
        return sum(S.nnz if sp.issparse(S) else int(np.count_nonzero(S)) for S in self._factors)

    @property
    def macs(self) -> int:
        """Multiply-adds per vector: the non-zeros of sparse factors, all entries of dense ones."""
        return sum(S.nnz if sp.issparse(S) else S.size for S in self._factors)

    # ---- the product ----------------------------------------------------------------------------------------------

    def apply(self, X: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """``X @ V.T`` for rows X, N x D; the result is N x K and row-major.

        `n_threads` is the most threads to use; by default see :func:`quickmeans.threads.resolve_threads`.
        """
        rows = check_rows(X, self.shape[1])
        dtype = self._dtype_with(rows)
        return self._kernel(dtype).apply(rows, _threads(rows, n_threads))

    def __matmul__(self, other: Any) -> Any:
        if type(other) is np.ndarray and other.dtype == self.dtype and other.shape == self.shape[1:]:
            return self._matvec(other)  # the shortest way: a microsecond counts here
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
        if x.dtype != self.dtype or x.strides[-1] % x.itemsize:
            return self.apply(x.reshape(1, -1)).reshape(-1)
        return self._own_kernel.apply_one(x.reshape(-1))

    def _matmat(self, X: NDArray[Any]) -> NDArray[Any]:
        rows = readable(X.T)
        return self._kernel(self._dtype_with(rows)).apply(rows, _threads(rows, None), transposed=True)

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

    # ---- its rows as points ---------------------------------------------------------------------------------------

    def nearest_row(
        self,
        X: ArrayLike,
        *,
        bias: ArrayLike | None = None,
        return_distance: bool = False,
        n_threads: int | None = None,
    ) -> Any:
        r"""For each row x of X the row of V nearest to it.

        .. math:: \arg\min_k \|x - v_k\| = \arg\min_k \; b_k - \langle v_k, x\rangle, \qquad b_k = \|v_k\|^2 / 2

        Parameters
        ----------
        X : array of shape (N, D)
            Finite real numbers.
        bias : array of shape (K,), optional
            Other values for b: to compare the rows of X minus some mu, say, add <v_k, mu> to half the squared norms.
        return_distance : bool
            Also return the distances, or with `bias` the values of :math:`b_k - \langle v_k, x\rangle`. A distance is
            computed from :math:`\|x\|^2` and the product: its square is good to a few units of rounding of
            :math:`\|x\|^2 + \|v_k\|^2`, so that a point on a row need not be at distance zero.
        n_threads : int, optional
            At most so many threads; by default see :func:`quickmeans.threads.resolve_threads`.

        Returns
        -------
        labels : array of int64, shape (N,)
            Of equally near rows, the one with the lower index.
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
        """For each row of X the `m` nearest rows of V, nearest first, ties to the lower index.

        As :meth:`nearest_row`, with results of shape (N, m).
        """
        if not isinstance(m, int | np.integer) or isinstance(m, bool):
            raise TypeError(f"m must be a whole number, got {m!r}.")
        if not 1 <= m <= self.shape[0]:
            raise ValueError(f"m must be between 1 and the number of rows, {self.shape[0]}, got {m}.")
        labels, values = self._nearest(X, int(m), bias, return_distance, n_threads)
        return (labels, values) if return_distance else labels

    def _nearest(
        self, X: ArrayLike, m: int, bias: ArrayLike | None, return_distance: bool, n_threads: int | None
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        rows = check_rows(X, self.shape[1])
        dtype = self._dtype_with(rows)
        offset, largest = self._offset(bias, dtype)
        labels, scores, bad = self._kernel(dtype).nearest(rows, m, offset, largest, _threads(rows, n_threads))
        if bad >= 0:
            raise ValueError(_why_not_comparable(rows, bad, dtype))
        if not return_distance:
            return labels, scores
        if bias is not None:
            return labels, -scores
        squares = _squared_norms(rows)[:, None] - 2 * scores.astype(np.float64)
        return labels, _finite(np.sqrt(np.maximum(squares, 0)), dtype, "The distances overflow; scale X")

    def gaussian(
        self, X: ArrayLike, gamma: float, *, mean: ArrayLike | None = None, n_threads: int | None = None
    ) -> NDArray[Any]:
        r"""Gaussian kernel values between the rows of X, about a mean m, and the rows of V; N x K and row-major.

        .. math:: \exp(-\gamma \|x - m - v_k\|^2)

        The distances are computed as in :meth:`nearest_row` and never stored.

        Parameters
        ----------
        X : array of shape (N, D)
            Finite real numbers.
        gamma : float
            Positive.
        mean : array of shape (D,), optional
            By default zero.
        n_threads : int, optional
            At most so many threads; by default see :func:`quickmeans.threads.resolve_threads`.
        """
        rows = check_rows(X, self.shape[1])
        if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma < np.inf:
            raise ValueError(f"gamma must be a positive finite number, got {gamma!r}.")
        dtype = self._dtype_with(rows)
        if 2 * float(gamma) > float(np.finfo(dtype).max):
            wider = " or use float64" if dtype == np.float32 else ""
            raise ValueError(f"gamma={gamma!r} is too large for {dtype}; scale X{wider}.")
        centre = np.zeros(self.shape[1]) if mean is None else check_dense(mean, "mean").astype(np.float64)
        if centre.shape != (self.shape[1],):
            raise ValueError(f"mean must have shape ({self.shape[1]},), one value per column, got {centre.shape}.")
        offset, largest = self._offset(None, dtype)
        threads = _threads(rows, n_threads)
        shift = _finite(centre, dtype, "mean must be finite")
        if np.abs(shift).max() > np.sqrt(np.finfo(dtype).max / (16.0 * len(shift))):
            raise ValueError(f"mean is too large for {dtype}: its square must be finite; scale X and mean.")
        out, bad = self._kernel(dtype).gaussian(rows, shift, offset, largest, float(gamma), threads)
        if bad >= 0:
            raise ValueError(_why_not_comparable(rows, bad, dtype))
        return out

    def _offset(self, bias: ArrayLike | None, dtype: np.dtype[Any]) -> tuple[NDArray[Any], float]:
        """0 - b (and so never -0), b the given bias or half the squared norms of the rows; and its largest size."""
        if bias is not None:
            values = check_dense(bias, "bias")
            if values.shape != (self.shape[0],):
                raise ValueError(f"bias must have shape ({self.shape[0]},), one value per row, got {values.shape}.")
            offset = _finite(0.0 - values.astype(np.float64), dtype, "bias must be finite")
            return offset, float(np.abs(offset).max())
        if dtype not in self._offsets:
            offset = _finite(0.0 - self._squared_row_norms(dtype) / 2, dtype, _NORMS_OVERFLOW)
            self._offsets[dtype] = offset, float(np.abs(offset).max())
        return self._offsets[dtype]

    # ---- dense views ----------------------------------------------------------------------------------------------

    def toarray(self) -> NDArray[Any]:
        """V as a dense K x D array."""
        out = np.empty(self.shape, self.dtype)
        for begin, block in self._row_blocks(self.dtype):
            out[begin : begin + len(block)] = block
        return out

    def row_norms(self) -> NDArray[Any]:
        """The Euclidean norms of the rows of V, computed without forming V."""
        squares = _finite(self._squared_row_norms(self.dtype), np.dtype(np.float64), _NORMS_OVERFLOW)
        return np.asarray(np.sqrt(squares), self.dtype)

    def _squared_row_norms(self, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        """||v_k||^2 of the rows as they come out in arithmetic of the given type, summed in float64."""
        norms = np.empty(self.shape[0])
        for begin, block in self._row_blocks(dtype):
            norms[begin : begin + len(block)] = _squared_norms(block)
        return norms

    def _row_blocks(self, dtype: np.dtype[Any]) -> Iterable[tuple[int, NDArray[Any]]]:
        """The rows of V, a block at a time: rows of S_1 times the other factors."""
        first, others = self._factors[0], self._factors[1:]
        rest = SparseProduct(others).T if others else None
        for begin in range(0, self.shape[0], _BLOCK):
            rows = first[begin : begin + _BLOCK]
            block = (rows.toarray() if sp.issparse(rows) else rows).astype(dtype)
            yield begin, block if rest is None else rest.apply(block)

    # ---- bookkeeping ----------------------------------------------------------------------------------------------

    def _dtype_with(self, rows: NDArray[Any]) -> np.dtype[Any]:
        return self.dtype if rows.dtype == self.dtype else working_dtype(self.dtype, rows.dtype)

    def _kernel(self, dtype: np.dtype[Any]) -> Kernel:
        """The factors packed for the native code; made when first needed."""
        kernel = self._kernels.get(dtype)
        if kernel is None:
            kernel = kernels.Product(self._factors, dtype)
            self._kernels[dtype] = kernel
        return kernel

    @cached_property
    def _own_kernel(self) -> Kernel:
        return self._kernel(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._factors,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseProduct):
            return NotImplemented
        if (self.shape, self.dtype, len(self._factors)) != (other.shape, other.dtype, len(other._factors)):
            return False
        return all(_same(S, T) for S, T in zip(self._factors, other._factors, strict=True))

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
    """The factors, with products among them replaced by theirs."""
    if not isinstance(factors, list | tuple) or not any(isinstance(S, SparseProduct) for S in factors):
        return factors
    return [S for F in factors for S in (F._factors if isinstance(F, SparseProduct) else [F])]


def _read_only_view(S: Factor) -> Factor:
    """Another array over the same read-only numbers, so that nothing done to it reaches ours."""
    if not sp.issparse(S):
        return S.view()
    return sp.csr_array((S.data.view(), S.indices.view(), S.indptr.view()), shape=S.shape)


def _same(S: Factor, T: Factor) -> bool:
    if sp.issparse(S) != sp.issparse(T) or S.shape != T.shape:
        return False
    if not sp.issparse(S):
        return np.array_equal(S, T)
    return all(np.array_equal(getattr(S, part), getattr(T, part)) for part in ("indptr", "indices", "data"))


def _squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """||x||^2 of every row, summed in float64, a block of rows at a time."""
    norms = np.empty(len(rows))
    for begin in range(0, len(rows), 1024):
        block = rows[begin : begin + 1024].astype(np.float64, order="C")  # one order of summation for every layout
        np.einsum("ij,ij->i", block, block, out=norms[begin : begin + 1024])
    return norms


def _finite(values: NDArray[np.float64], dtype: np.dtype[Any], problem: str) -> NDArray[Any]:
    """values in the given type, or an error that names the first one that does not fit."""
    with np.errstate(over="ignore"):
        converted = values.astype(dtype)
    bad = np.argwhere(~np.isfinite(converted))
    if len(bad):
        where = ", ".join(map(str, bad[0]))
        remedy = " or use float64" if dtype == np.float32 and np.isfinite(values).all() else ""
        raise ValueError(f"{problem}{remedy} (the first one that is not finite in {dtype} has index {where}).")
    return converted


def _why_not_comparable(rows: NDArray[Any], first: int, dtype: np.dtype[Any]) -> str:
    """Why the kernel gave up among the rows that begin with `first`."""
    position = first_bad_position(rows[first : first + _LARGEST_TILE])
    if position is None:
        remedy = "scale X or use float64" if dtype == np.float32 else "scale X"
        return f"The products with rows of X from {first} on may overflow {dtype}; {remedy}."
    i, j = first + position[0], position[1]
    what = "NaN" if np.isnan(rows[i, j]) else "infinity"
    return f"X contains {what} (row {i}, column {j}); only finite numbers can be compared."


def _threads(rows: NDArray[Any], n_threads: int | None) -> int:
    if n_threads is None and len(rows) == 1:
        return 1
    return resolve_threads(n_threads)
