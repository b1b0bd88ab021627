"""The one door to the native module.

Every array gets the layout, the type and the byte order that native code reads, and is copied only if it has another.
Results come in fresh arrays, except where a docstring says that an argument is changed. Native code checks sizes and
indices itself: arrays that do not fit are a ValueError.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from quickmeans import _native
from quickmeans.threads import instruction_set

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Assignment: TypeAlias = _native.Assignment32 | _native.Assignment64
_ArrayOrNone = TypeVar("_ArrayOrNone", Array, Array | None)

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_INT32, _INT64, _UINT8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)


def instruction_sets() -> list[str]:
    """The instruction sets that this build has and this machine can run, best first."""
    return _native.instruction_sets()


def readable(rows: Array) -> Array:
    """The rows themselves, or a copy of foreign byte order, of long doubles, or of strides that are no whole items."""
    if rows.flags.c_contiguous and rows.dtype.isnative and rows.dtype.itemsize <= 8:
        return rows
    if not rows.dtype.isnative or rows.dtype.itemsize > 8:
        return rows.astype(rows.dtype.newbyteorder("=") if rows.dtype.itemsize <= 8 else np.float64)
    return rows.copy() if any(stride % rows.itemsize for stride in rows.strides) else rows


def _packed(values: Array, dtype: np.dtype[Any]) -> Array:
    """The values in C order, aligned, of this type."""
    if values.dtype is dtype and values.flags.carray:  # the usual case, in a tenth of a microsecond
        return values
    array = np.ascontiguousarray(values, dtype)
    return array if array.flags.aligned else array.copy()


def _floats(values: _ArrayOrNone) -> _ArrayOrNone:
    return values if values is None else _packed(values, _FLOAT64)


def _ints(values: _ArrayOrNone) -> _ArrayOrNone:
    return values if values is None else _packed(values, _INT64)


def _writable(array: Array, name: str, dtype: np.dtype[Any] = _FLOAT64) -> Array:
    """The array itself, which native code is to change."""
    if array.dtype == dtype and array.flags.carray:
        return array
    raise ValueError(f"{name} must be a writeable, aligned array of {dtype} in C order.")


# ---- a product of sparse factors -------------------------------------------------------------------------------------


class Product:
    """Factors packed for the native code.

    Parameters
    ----------
    factors : sequence of arrays and CSR arrays
        From left to right; CSR without duplicate entries.
    dtype : numpy.dtype
        float32 or float64: the type of all arithmetic and of all results.
    """

    __slots__ = ("dtype", "native", "shape")

    def __init__(self, factors: Sequence[Any], dtype: np.dtype[Any]) -> None:
        self.dtype, self.shape = dtype, (factors[0].shape[0], factors[-1].shape[1])
        make = _native.Product32 if dtype == _FLOAT32 else _native.Product64
        self.native = make([_packed_factor(S, dtype) for S in factors], instruction_set())

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        return self.native.isa

    def apply(self, x: Array, n_threads: int, *, transposed: bool = False) -> Array:
        """``x @ V.T`` in C order, or its transpose in C order."""
        shape = (self.shape[0], len(x)) if transposed else (len(x), self.shape[0])
        out = np.empty(shape, self.dtype)
        self.native.apply(readable(x), out.T if transposed else out, n_threads)
        return out

    def apply_one(self, x: Array) -> Array:
        """``V @ x`` for one vector."""
        out = np.empty(self.shape[0], self.dtype)
        self.native.apply_one(readable(x), out)
        return out

    def nearest(
        self, x: Array, m: int, offset: Array, largest_offset: float, n_threads: int
    ) -> tuple[Ints, Array, int]:
        """The m largest scores ``x @ V.T + offset`` of every row: their columns, the scores, and -1 or a bad row.

        Largest first, ties to the lower column. A row is bad if it has a NaN, an infinity, or numbers so large that
        products may overflow; the number is that of the first row of the tile of up to 64 rows that has one.
        """
        labels, scores = np.empty((len(x), m), np.int64), np.empty((len(x), m), self.dtype)
        packed = _packed(offset, self.dtype)
        return labels, scores, self.native.nearest(readable(x), packed, largest_offset, labels, scores, n_threads)

    def gaussian(
        self, x: Array, mean: Array, offset: Array, largest_offset: float, gamma: float, n_threads: int
    ) -> tuple[Array, int]:
        """``exp(-gamma |x - mean - v_k|^2)`` for offsets -|v_k|^2 / 2, and -1 or a bad row as in :meth:`nearest`."""
        out = np.empty((len(x), self.shape[0]), self.dtype)
        mean, offset = _packed(mean, self.dtype), _packed(offset, self.dtype)
        return out, self.native.gaussian(readable(x), mean, offset, largest_offset, gamma, out, n_threads)


def _packed_factor(S: Any, dtype: np.dtype[Any]) -> tuple[int, Array, Array, Array] | Array:
    if isinstance(S, np.ndarray):
        return _packed(S, dtype)
    return S.shape[1], _ints(S.indptr), _packed(S.indices, _INT32), _packed(S.data, dtype)


# ---- the nearest center of every row ---------------------------------------------------------------------------------


def make_assignment(n_rows: int, dtype: DTypeLike) -> Assignment:
    """An :data:`Assignment` of this number of rows, all of label 0, in float32 or float64."""
    best, second, norms = (np.empty(n_rows, dtype) for _ in range(3))
    return bind_assignment(np.zeros(n_rows, np.int32), best, second, norms)


def bind_assignment(
    labels: NDArray[np.int32], best: Array, second: Array, norms: Array, *, norms_known: bool = False
) -> Assignment:
    """An :data:`Assignment` that is written into these contiguous arrays, of which the last three have one type.

    ``labels`` are the nearest centers; ``best`` their scores; ``second`` upper bounds of the scores of all other
    centers; ``norms`` the squared distances from the mean, which :meth:`Screen.assign` computes unless ``norms_known``.
    ``n_listed`` and ``n_settled`` grow with every call by the number of candidates and by that of exact scores.
    """
    make = _native.Assignment32 if best.dtype == _FLOAT32 else _native.Assignment64
    return make(labels, best, second, norms, norms_known)


class Screen:
    """Centers c_k and a product with rows v_k near them, bound once for many calls.

    Parameters
    ----------
    product : Product or None
        None: the centers are compared themselves.
    centers : array of shape (K, D)
        Its type, float32 or float64, is that of the product and of all arithmetic. It must not be changed afterwards.
    mean : array of shape (D,)
        Norms of rows are taken about it.
    offset, center_offset : arrays of shape (K,)
        To be added to <x, v_k> and <x, c_k>, which makes them scores. Without a product the first is not used.
    slack : array of shape (K,)
        |c_k - v_k|. Without a product it is not used.
    margin : float, default=0.0
        The share of slack times distance from the mean up to which scores of the product may be wrong.
    shortlist : int, default=0
        The number of candidates per row; 0: all within the margin.
    """

    __slots__ = ("_native", "dtype", "n_centers")

    def __init__(
        self,
        product: Product | None,
        centers: Array,
        mean: Array,
        offset: Array | None,
        center_offset: Array,
        slack: Array | None,
        margin: float = 0.0,
        shortlist: int = 0,
    ) -> None:
        self.dtype, self.n_centers = (_FLOAT32 if centers.dtype == _FLOAT32 else _FLOAT64), len(centers)
        if product is None or offset is None or slack is None:
            offset, slack = center_offset, np.zeros(len(center_offset))
        native = None if product is None else product.native
        arrays = _packed(centers, self.dtype), _floats(mean), _floats(offset), _floats(center_offset), _floats(slack)
        bind = _native.Screen32.bind if self.dtype == _FLOAT32 else _native.Screen64.bind
        self._native: _native.Screen32 | _native.Screen64 = bind(native, *arrays, margin, shortlist, instruction_set())

    def with_margin(self, margin: float, offset: Array | None = None, shortlist: int | None = None) -> "Screen":
        """The same screen with another margin and, if given, another offset of the product and shortlist."""
        other = object.__new__(Screen)
        other.dtype, other.n_centers = self.dtype, self.n_centers
        other._native = self._native.with_margin(margin, _floats(offset), shortlist)
        return other

    @property
    def margin(self) -> float:
        """The margin."""
        return self._native.margin

    @property
    def shortlist(self) -> int:
        """The number of candidates per row, or 0."""
        return self._native.shortlist

    def assign(
        self,
        x: Array,
        assignment: Assignment,
        first: int = 0,
        index: Ints | None = None,
        projected: Array | None = None,
        exact_scores: bool = True,
        n_threads: int = 1,
    ) -> int:
        """Find the nearest centers of the rows of x, of which row i is row ``first + i`` of the assignment.

        The assignment, which is changed, has the type of the screen. The index, ascending, names the rows of x to look
        at; None stands for all. ``projected`` are the rows of x times all factors of the product but the first, where
        they are known (the norms must be known then). Without ``exact_scores`` a row with one candidate gets a lower
        bound of its score. Returns -1, or a bad row as in :meth:`Product.nearest`, counted among those looked at.
        """
        narrow = None if projected is None else readable(projected)
        return self._native.assign(readable(x), assignment, first, _ints(index), narrow, exact_scores, n_threads)

    def nearest(self, x: Array, m: int, n_listed: int, n_threads: int = 1) -> tuple[Ints, Array, int]:
        """The m nearest centers of every row in any order, their scores, and -1 or a bad row as in :meth:`assign`.

        The product lists ``n_listed`` candidates, m or more, and exact scores decide among them.
        """
        labels, scores = np.empty((len(x), m), np.int64), np.empty((len(x), m), self.dtype)
        return labels, scores, self._native.nearest(readable(x), n_listed, labels, scores, n_threads)


# ---- sums of rows, and starting points -------------------------------------------------------------------------------


def group_by_label(labels: Array, n_labels: int) -> tuple[Ints, Ints]:
    """Positions in ascending order of their labels, ties in their order, and where in it each label begins.

    The positions of label k are ``order[starts[k] : starts[k + 1]]``. A label outside [0, n_labels) is a ValueError.
    """
    packed = _packed(labels, _INT32 if labels.dtype == _INT32 else _INT64)
    order, starts = np.empty(len(packed), np.int64), np.empty(n_labels + 1, np.int64)
    _native.group_by_label(packed, n_labels, order, starts)
    return order, starts


def add_members(x: Array, members: Ints, starts: Ints, weights: Floats | None, sums: Floats, n_threads: int) -> None:
    """Add to row k of ``sums`` the rows ``members[starts[k] : starts[k + 1]]`` of x times their weights, in float64.

    There is a weight for every member; None stands for ones.
    """
    out = _writable(sums, "sums")
    groups = _ints(members), _ints(starts)
    _native.add_members(readable(x), *groups, _floats(weights), out, n_threads, instruction_set())


def moments(x: Array, weights: Floats | None, shift: Floats, sums: Floats, squares: Floats, n_threads: int) -> None:
    """Add the weighted sums of d = x - shift and of d^2 over the rows of x to ``sums`` and ``squares``.

    The rows are divided into as many blocks as both have rows, one block for each. None stands for weights of one.
    """
    out = _writable(sums, "sums"), _writable(squares, "squares")
    _native.moments(readable(x), _floats(weights), _floats(shift), *out, n_threads, instruction_set())


def seed(rows: Array, weights: Floats, first: int, uniforms: Floats, n_threads: int) -> Ints:
    """Starting rows by greedy k-means++: a row of ``uniforms``, numbers in [0, 1), has the draws for one center.

    The rows are float32; ``first`` is the first center. There are fewer centers than rows of ``uniforms`` if no more
    rows with weight are away from them.
    """
    chosen = np.empty(len(uniforms), np.int64)
    packed = _packed(rows, _FLOAT32), _floats(weights)
    n = _native.seed(*packed, first, _floats(uniforms), chosen, n_threads, instruction_set())
    return chosen[:n]


# ---- the search for better clusters ----------------------------------------------------------------------------------


class Search:
    """Clusters of rows in float32, with Lloyd's iteration and moves of centers; sums are float64.

    After every method but `swap`, `grow` and `shrink` the centers are the means of their rows.

    Parameters
    ----------
    rows : array of float32, shape (n_rows, n_features)
        About their mean, or of length one if spherical. They must not be changed afterwards.
    weights : array of shape (n_rows,)
    spherical : bool
        Whether centers have length one.
    n_threads : int
    """

    __slots__ = ("_native", "shape")

    def __init__(self, rows: Array, weights: Floats, *, spherical: bool, n_threads: int) -> None:
        self.shape = rows.shape
        self._native = _native.Search(
            _packed(rows, _FLOAT32), _floats(weights), spherical, n_threads, instruction_set()
        )

    def place(self, centers: Array) -> None:
        """Begin anew with these centers."""
        self._native.place(_packed(centers, _FLOAT32))

    def iterate(self, most: int, tol: float = 0.0) -> int:
        """At most so many iterations of Lloyd; how many it took until no label changed or squared shifts were <= tol.

        Clusters that lose all rows keep their centers.
        """
        return self._native.iterate(most, tol)

    def swap(self, most: int) -> int:
        """At most so many swaps of a cheap center for the split of a cluster of larger gain; how many were made."""
        return self._native.swap(most)

    def grow(self, most: int) -> int:
        """Split the clusters of the largest gains, at most so many; how many centers were added."""
        return self._native.grow(most)

    def shrink(self, count: int) -> None:
        """Remove so many of the cheapest centers."""
        self._native.shrink(count)

    def keep(self) -> None:
        """Remember the clusters as they are."""
        self._native.keep()

    def go_back(self) -> None:
        """Return to the clusters that were kept last."""
        self._native.go_back()

    def means(self) -> Floats:
        """The centers."""
        out = np.empty((self.n_centers, self.shape[1]))
        self._native.means(out)
        return out

    def labels(self) -> NDArray[np.int32]:
        """The cluster of every row."""
        out = np.empty(self.shape[0], np.int32)
        self._native.labels(out)
        return out

    def cluster_weights(self) -> Floats:
        """The weight of every cluster."""
        out = np.empty(self.n_centers)
        self._native.cluster_weights(out)
        return out

    @property
    def n_centers(self) -> int:
        """The number of centers."""
        return self._native.n_centers

    @property
    def assigned(self) -> float:
        """The objective after the last assignment, before the centers moved."""
        return self._native.assigned

    @property
    def objective(self) -> float:
        """The objective of the labels and the centers after the last iteration."""
        return self._native.objective

    @property
    def converged(self) -> bool:
        """Whether the last call of `iterate` ended before its time."""
        return self._native.converged

    @property
    def work(self) -> float:
        """Multiply-adds so far."""
        return self._native.work

    @property
    def pass_work(self) -> float:
        """Multiply-adds of comparing every row with every center."""
        return float(self.shape[0]) * float(self.shape[1]) * self.n_centers


# ---- the inner loops of the solvers ----------------------------------------------------------------------------------


def fit_supports(
    gram: Floats,
    targets: Floats,
    weights: Floats,
    drop: Ints,
    support: NDArray[np.uint8],
    n_threads: int,
    *,
    prices: bool,
) -> tuple[Floats, Floats | None]:
    """For every row the least-squares coefficients on its support, after removing the ``drop`` cheapest entries.

    ``support`` is changed. The prices, if wanted, are what the removal of an entry would add to the objective, times
    the row's weight, and infinite outside the support.
    """
    mask = _writable(support, "support", _UINT8)
    values, priced = np.empty(targets.shape), np.empty(targets.shape) if prices else None
    problem = _floats(gram), _floats(targets), _floats(weights), _ints(drop)
    _native.fit_supports(*problem, mask, values, priced, n_threads, instruction_set())
    return values, priced


def masked_product(rows: Floats, atoms: Floats, support: NDArray[np.uint8], n_threads: int) -> Floats:
    """``rows @ atoms`` on the support, and zero elsewhere; it skips the zeros of the atoms."""
    out = np.empty(support.shape)
    _native.masked_product(_floats(rows), _floats(atoms), _packed(support, _UINT8), out, n_threads)
    return out


class Entries:
    """The non-zeros of a matrix. If there are more than ``most``, they can only be counted, and not all are."""

    __slots__ = ("_native", "shape")

    def __init__(self, S: Floats, most: int) -> None:
        self.shape = S.shape
        self._native = _native.Entries(_floats(S), most, instruction_set())

    def __len__(self) -> int:
        return len(self._native)

    def norm(self) -> float:
        """The Frobenius norm."""
        return self._native.norm()

    def scaled(self, c: float) -> "Entries":
        """The entries times c."""
        other = object.__new__(Entries)
        other.shape, other._native = self.shape, self._native.scaled(c)
        return other

    def put(self, out: Floats) -> None:
        """Write the entries to their places in ``out``."""
        self._native.put(_writable(out, "out"))

    def times(self, X: Floats, *, transposed: bool = False) -> Floats:
        """S X, or S' X."""
        out = np.empty((self.shape[1 if transposed else 0], X.shape[1]))
        self._native.times(_floats(X), out, transposed)
        return out

    def refine(
        self,
        P: Floats | None,
        diagonal: Floats,
        G: Floats | None,
        M: Floats,
        row_curvature: Floats,
        column_curvature: Floats,
        n_steps: int,
    ) -> tuple[float, float]:
        """Steps of conjugate gradients for <S, P S G> - 2 <M, S> on the support; returns <M, S> and <S, P S G>.

        None stands for a P that is the diagonal, and for a G that is the identity. The second derivative along entry
        (i, j) is the product of the curvatures of row i and column j.
        """
        form = _floats(P), _floats(diagonal), _floats(G), _floats(M)
        return self._native.refine(*form, _floats(row_curvature), _floats(column_curvature), n_steps)


# ---- the largest or smallest entries ---------------------------------------------------------------------------------


def mark_largest(M: Floats, per_row: int, per_column: int) -> Mask:
    """Where the entries of largest absolute value of every row and of every column are; ties to the lower index."""
    kept = np.empty(M.shape, np.bool_)
    _native.mark_largest(_floats(M), per_row, per_column, kept)
    return kept


def match_largest(M: Floats, per_row: int, per_column: int) -> Mask:
    """Entries chosen greedily by absolute value, at most ``per_row`` of a row and ``per_column`` of a column."""
    kept = np.empty(M.shape, np.bool_)
    _native.match_largest(_floats(M), per_row, per_column, kept)
    return kept


def smallest(M: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], Ints]:
    """The k smallest numbers of every row in ascending order, ties to the lower column, and their columns."""
    values, columns = np.empty((len(M), k), np.float32), np.empty((len(M), k), np.int64)
    _native.smallest(_packed(M, _FLOAT32), values, columns)
    return values, columns
