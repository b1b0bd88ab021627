"""Arrays of every layout and type give the results of a C-contiguous array of the working type, to the bit."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from quickmeans import SparseProduct
from quickmeans.transform import factorize, hierarchical_palm4msa, palm4msa, sparse_als
from quickmeans.transform.projections import (
    AtMostPerRowAndColumn,
    Constant,
    FixedSupport,
    NonNegative,
    TopPerRow,
    TopPerRowAndColumn,
)

TYPES = ["f2", "f4", "f8", "g", ">f2", ">f4", ">f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u2"]


def strided(A):
    wide = np.zeros([3 * n for n in A.shape], A.dtype)
    wide[tuple(slice(None, None, 3) for _ in A.shape)] = A
    return wide[tuple(slice(None, None, 3) for _ in A.shape)]


def backwards(A):
    flip = tuple(slice(None, None, -1) for _ in A.shape)
    return np.ascontiguousarray(A[flip])[flip]


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


def odd_address(A):
    """Contiguous numbers at an odd address."""
    return np.frombuffer(b" " + A.tobytes(), np.uint8)[1:].view(A.dtype).reshape(A.shape)


def unaligned(A):
    """Numbers at odd addresses, with strides that are no multiple of their size."""
    records = np.zeros(A.shape, [("pad", "u1"), ("value", A.dtype)])
    records["value"] = A
    return records["value"]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "read-only": read_only,
    "big-endian": lambda A: A.astype(A.dtype.newbyteorder(">")),
    "odd address": odd_address,
    "unaligned": unaligned,
    "list": lambda A: A.tolist(),
}


@pytest.fixture
def numbers():
    """Small whole numbers, which every type holds exactly; truth values where the type has no others."""

    def make(*shape, dtype="f8", seed=0):
        values = np.random.default_rng(seed).integers(0, 5, shape)
        return (values > 2 if np.dtype(dtype) == bool else values).astype(dtype)

    return make


def working(A):
    """The same numbers, C-contiguous, in the type that a solver computes its result in."""
    small = A.dtype.kind == "f" and A.dtype.itemsize <= 4
    return np.ascontiguousarray(A, np.float32 if small else np.float64)


SOLVES = {
    "palm4msa": lambda U, **kw: palm4msa(U, 2, 3, max_iter=5, **kw),
    "hierarchical": lambda U, **kw: hierarchical_palm4msa(U, 3, 3, max_iter=5, **kw),
    "sparse_als": lambda U, **kw: sparse_als(U, 2, max_iter=2, **kw),
    "three factors": lambda U, **kw: sparse_als(U, 1.5, n_factors=3, inner_dim=3, max_iter=2, **{"init": "svd"} | kw),
    "auto": lambda U, **kw: factorize(U, compression=2, **kw),
    "svd": lambda U, **kw: factorize(U, "svd", 2, **kw),
    "threshold": lambda U, **kw: factorize(U, "threshold", 2, **kw),
}


def same(first, second):
    return first.product == second.product and np.array_equal(first.history, second.history)


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_the_matrix_and_the_weights(solve, layout, numbers):
    U, n = numbers(12, 16), numbers(12) + 1
    result = SOLVES[solve](LAYOUTS[layout](U), weights=LAYOUTS[layout](n))
    assert same(result, SOLVES[solve](U, weights=n))


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_the_matrix_and_the_weights(solve, dtype, numbers):
    U, n = numbers(12, 16, dtype=dtype), numbers(12, dtype=dtype)
    result = SOLVES[solve](U, weights=n)
    assert same(result, SOLVES[solve](working(U), weights=n.astype(np.float64)))
    assert result.product.dtype == working(U).dtype


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_the_start(layout, numbers):
    U, C, W = numbers(12, 16), numbers(12, 4, seed=1), numbers(4, 16, seed=2)
    plain = SparseProduct([C, W])
    init = SparseProduct([LAYOUTS[layout](S) for S in (C, W)])
    assert init == plain
    assert same(sparse_als(U, 1.2, init=init), sparse_als(U, 1.2, init=plain))
    assert same(palm4msa(U, init=init, max_iter=5), palm4msa(U, init=plain, max_iter=5))
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.bsr_array):
        if layout != "big-endian":  # SciPy has no sparse matrices of foreign byte order
            assert SparseProduct([kind(LAYOUTS[layout](S)) for S in (C, W)]) == plain


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_factors(dtype, numbers):
    C, W = numbers(12, 4, dtype=dtype), numbers(4, 16, dtype=dtype)
    expected = SparseProduct([working(C), working(W)])
    assert SparseProduct([C, W]) == expected
    if dtype not in ("f2", "g") and np.dtype(dtype).isnative:  # SciPy has no sparse matrices of these
        assert SparseProduct([sp.csr_array(C), sp.csc_array(W)]) == expected


PROJECTIONS = {
    "constant": lambda change, A: [Constant(change(A)), TopPerRow(3)],
    "support": lambda change, A: [FixedSupport(change(A)), TopPerRow(3)],
    "last": lambda change, A: [TopPerRow(3), NonNegative(Constant(change(A)))],
}


@pytest.mark.parametrize("sets", PROJECTIONS)
@pytest.mark.parametrize("change", [*LAYOUTS.values(), *TYPES, np.transpose], ids=[*LAYOUTS, *TYPES, "transposed"])
def test_layouts_and_types_of_constants_and_supports(sets, change, numbers):
    U, A = numbers(9, 9), numbers(9, 9, dtype=change if isinstance(change, str) else "f8", seed=3)
    make = (lambda A: A) if isinstance(change, str) else change
    plain = np.ascontiguousarray(A.T if change is np.transpose else A, np.float64)
    result = palm4msa(U, 2, projections=PROJECTIONS[sets](make, A), max_iter=5)
    assert same(result, palm4msa(U, 2, projections=PROJECTIONS[sets](np.asarray, plain), max_iter=5))


@pytest.mark.parametrize("of_supports", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_what_a_projection_returns(layout, of_supports, numbers):
    def kept(change):
        inner = TopPerRow(3)
        return SimpleNamespace(name="own", is_of_supports=of_supports, project=lambda M: change(inner.project(M)))

    U = numbers(9, 12)
    result, plain = (
        palm4msa(U, 2, projections=[kept(change), kept(change)], max_iter=5) for change in (LAYOUTS[layout], np.asarray)
    )
    assert same(result, plain)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "list"])
def test_projections_of_every_layout_and_type(layout, dtype, numbers):
    M = numbers(7, 9, dtype=dtype)
    for projection in (TopPerRow(2), TopPerRowAndColumn(np.int8(40), scaled=True), AtMostPerRowAndColumn(2)):
        projected = projection.project(LAYOUTS[layout](M))
        np.testing.assert_array_equal(projected, projection.project(M.astype(np.float64)))


def test_a_zero_constant_that_cannot_be_written_to(numbers):
    zero = read_only(np.zeros((9, 9)))
    own = SimpleNamespace(name="zero", is_of_supports=False, project=lambda M: zero)
    assert palm4msa(numbers(9, 9), 2, projections=[own, TopPerRow(3)], max_iter=3).relative_error == 1


def test_bad_constants_supports_and_projections(numbers):
    U = numbers(9, 9)
    narrow = SimpleNamespace(name="narrow", is_of_supports=True, project=lambda M: M[:, 1:])
    for sets, error, message in [
        (lambda: [Constant(np.ones((9, 8)))], ValueError, r"value must have the shape of its factor, \(9, 9\), got"),
        (lambda: [Constant(np.full((9, 9), np.nan))], ValueError, "value must hold finite numbers only"),
        (lambda: [Constant(np.ones((9, 9)) * 1j)], TypeError, "value has dtype complex128"),
        (lambda: [Constant(sp.eye_array(9))], TypeError, "value is a sparse matrix"),
        (lambda: [FixedSupport(np.ones((1, 9)))], ValueError, "support must have the shape of its factor"),
        (lambda: [FixedSupport("all")], TypeError, "support has dtype"),
        (lambda: [narrow], ValueError, r"The projection 'narrow' of a \(9, 9\) matrix has shape \(9, 8\)"),
    ]:
        with pytest.raises(error, match=message):
            palm4msa(U, 1, projections=sets())


def results(V, X, bias, mean):
    """All that a product computes from rows, as arrays."""
    labels, distances = V.nearest_rows(X, 3, return_distance=True)
    rows = np.asarray(X)
    return [
        V.apply(X), V.nearest_row(X), labels, distances, V.nearest_row(X, bias=bias), V.gaussian(X, 0.01, mean=mean),
        rows @ V.T, V @ rows.T, V @ rows[1], V.T.T.dot(rows[0]), V.T @ rows[:, :7].T.repeat(2, axis=0)[:12],
    ]  # fmt: skip


@pytest.mark.parametrize("product_type", ["f4", "f8"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_of_every_layout_and_type(layout, dtype, product_type, numbers):
    V = SparseProduct([numbers(12, 5, dtype=product_type, seed=1), numbers(5, 16, dtype=product_type, seed=2)])
    X, bias, mean = (numbers(*shape, dtype=dtype) for shape in ((70, 16), (12,), (16,)))
    change = LAYOUTS[layout]
    if layout == "list":
        X = np.array(X.tolist())
    plain = np.ascontiguousarray(X, np.float32 if np.result_type(V.dtype, X.dtype) == np.float32 else np.float64)
    expected = results(V, plain, bias.astype(np.float64), mean.astype(np.float64))
    for ours, theirs in zip(results(V, change(X), change(bias), change(mean)), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
