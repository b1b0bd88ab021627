"""The native kernel on every instruction set, against the dense product."""

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from quickmeans import SparseProduct, _native, kernels

TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
LAYOUTS = {
    "rows": lambda X: np.ascontiguousarray(X),
    "columns": lambda X: np.asfortranarray(X),
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": lambda X: _unaligned(X),
    "read-only": lambda X: _read_only(X),
    "odd strides": lambda X: _odd_strides(X),
}


def _unaligned(X):
    buffer = np.empty(X.nbytes + 1, np.uint8)
    view = buffer[1:].view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


def _odd_strides(X):
    """Rows that begin at every byte, as the fields of packed records do."""
    records = np.zeros(len(X), [("flag", "u1"), ("row", X.dtype, X.shape[1])])
    records["row"] = X
    return records["row"]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _palm(U, weights, factors, per_row=1):
    sets = [kernels.FactorSet(per_row, 0, False, False)] * max(1, len(factors))
    return kernels.Palm(U, weights, factors, sets, kernels.PalmOptions(False, False, 0.1, 1, 2))


def _never(q, M):
    raise AssertionError("the sets of all factors are given by counts")


def tolerance(dtype):
    return 2e-4 if dtype == np.float32 else 1e-11


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 200])
@pytest.mark.parametrize("dims", [(1, 1), (3, 5), (17, 16, 33), (300, 20, 20, 40), (40, 20, 600)])
def test_apply_is_the_dense_product(isa, chain, rng, dims, n, dtype):
    factors = chain(*dims, density=0.3, dtype=dtype)
    X = rng.standard_normal((n, dims[-1])).astype(dtype)
    V = SparseProduct(factors)
    Y = X @ V.T
    assert Y.dtype == dtype
    assert Y.shape == (n, dims[0])
    np.testing.assert_allclose(Y, X @ reference.product(factors).T, atol=tolerance(dtype), rtol=0)
    np.testing.assert_array_equal(V @ X.T, Y.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", TYPES)
def test_every_element_type_and_layout(isa, chain, rng, kind, layout):
    factors = chain(30, 20, 45, dtype=np.float32)
    X = LAYOUTS[layout](rng.integers(0, 2 if kind == "?" else 100, (70, 45)).astype(kind))
    Y = X @ SparseProduct(factors).T
    expected = np.float32 if np.dtype(kind).kind in "fb" or np.dtype(kind).itemsize <= 2 else np.float64
    assert Y.dtype == (np.float64 if kind == "f8" else expected)
    np.testing.assert_allclose(Y, X.astype("f8") @ reference.product(factors).T, rtol=1e-5, atol=1e-3)


def test_half_precision_is_read_exactly(isa):
    X = np.arange(2**16, dtype=np.uint16).view(np.float16)[:, None]
    Y = X @ SparseProduct([np.ones((1, 1), np.float32)]).T
    np.testing.assert_array_equal(Y, X.astype(np.float32))


@st.composite
def problems(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    dims = draw(st.lists(st.integers(1, 40), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = []
    for shape in pairwise(dims):
        # Rows from empty to full, so that sparse and dense slices meet in one factor.
        keep = rng.random(shape) < rng.choice([0, 0.05, 0.3, 1], size=(shape[0], 1))
        factor = (rng.integers(-1, 2, shape) * keep).astype(dtype)
        factors.append(factor if draw(st.booleans()) else sp.coo_array(factor))
    kind = draw(st.sampled_from(["f4", "f8", "i1", "u8", "f2"]))
    X = rng.integers(0 if kind == "u8" else -3, 4, (draw(st.integers(0, 100)), dims[-1])).astype(kind)
    return factors, LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](X)


@given(problems(), st.data())
def test_any_shape_layout_and_type(isa, problem, data):
    """Small whole numbers: every sum is exact, so ties are real and results must be equal."""
    factors, X = problem
    V, U = SparseProduct(factors), reference.product(factors)
    np.testing.assert_array_equal(X @ V.T, X.astype("f8") @ U.T)
    np.testing.assert_array_equal(V.toarray(), U)
    m = data.draw(st.integers(1, min(len(U), 9)))
    labels, gaps = V.nearest_rows(X, m, return_distance=True)
    np.testing.assert_array_equal(labels, reference.nearest_rows(X, U, m))
    np.testing.assert_allclose(gaps, np.take_along_axis(reference.distances(X, U), labels, 1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(V.nearest_row(X), labels[:, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_threads_and_any_company(isa, chain, rng, dtype):
    """A row's result does not depend on the threads, on its place in a tile, or on whether it comes alone."""
    V = SparseProduct([*chain(700, 90, density=0.06, dtype=dtype), rng.standard_normal((90, 64)).astype(dtype)])
    X = rng.standard_normal((3000, 64)).astype(dtype)
    Y = V.apply(X, n_threads=1)
    labels, gaps = V.nearest_rows(X, 5, return_distance=True, n_threads=1)
    for n_threads in (2, 7):
        np.testing.assert_array_equal(V.apply(X, n_threads=n_threads), Y)
        again = V.nearest_rows(X, 5, return_distance=True, n_threads=n_threads)
        np.testing.assert_array_equal(again[0], labels)
        np.testing.assert_array_equal(again[1], gaps)
        np.testing.assert_array_equal(V.nearest_row(X, n_threads=n_threads), labels[:, 0])
    for start, stop in ((0, 1), (5, 7), (100, 117), (1, 3000)):
        np.testing.assert_array_equal(V.apply(X[start:stop]), Y[start:stop])
        again = V.nearest_rows(X[start:stop], 5, return_distance=True)
        np.testing.assert_array_equal(again[0], labels[start:stop])
        assert again[1].tobytes() == gaps[start:stop].tobytes()
    again = V.nearest_rows(np.asfortranarray(X), 5, return_distance=True)
    assert again[1].tobytes() == gaps.tobytes()
    np.testing.assert_array_equal(V @ X[9], Y[9])


@pytest.mark.parametrize("n", [1, 40])
def test_ties_go_to_the_lower_index(isa, rng, n):
    """Every row of V stands three times, in rows of several lengths that the kernel handles out of order."""
    rows = np.tril(rng.integers(1, 4, (60, 60))) * (rng.random((60, 60)) < 0.4)
    V = SparseProduct([sp.csr_array(np.tile(rows, (3, 1)).astype(np.float32))])
    X = np.tile(rows[7], (n, 1)).astype(np.float32)
    U = np.tile(rows, (3, 1))
    np.testing.assert_array_equal(V.nearest_row(X), reference.nearest_rows(X, U, 1)[:, 0])
    np.testing.assert_array_equal(V.nearest_rows(X, 180), reference.nearest_rows(X, U, 180))


def test_more_elements_than_32_bits_count(chain):
    """2^31 elements and more in X, and in the result, by rows that repeat and results that are not kept."""
    V = SparseProduct(chain(4, 16, 1024, density=0.01))
    x = np.arange(1024, dtype=np.uint8)
    X = np.broadcast_to(x, (2**21 + 5, 1024))
    assert X.size > 2**31
    labels = V.nearest_row(X)
    assert (labels == V.nearest_row(x[None])).all()


def test_offsets_past_32_bits(tmp_path, chain):
    """The far end of a sparse file of 9 GB."""
    V = SparseProduct(chain(4, 16, 32))
    X = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(70_000_000, 32))
    X[-1] = np.arange(32)
    tail = np.memmap(tmp_path / "x", dtype=np.float32, mode="r", shape=X.shape)[:: 70_000_000 - 1]
    assert tail.strides[0] > 2**32
    np.testing.assert_array_equal(tail @ V.T, np.array(tail) @ V.T)


def test_non_finite_numbers_pass_through_apply(isa):
    """Only the results that use the bad coordinate are touched, alone or in a tile."""
    V = SparseProduct([sp.csr_array(np.float32([[0, 1, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]]))])
    x = np.float32([np.inf, 1, 2, 3])
    expected = [1, np.inf, 0, 6]
    np.testing.assert_array_equal(V @ x, expected)
    np.testing.assert_array_equal(np.tile(x, (40, 1)) @ V.T, np.tile(expected, (40, 1)))
    x[0] = np.nan
    np.testing.assert_array_equal(V @ x, [1, np.nan, 0, 6])


@pytest.mark.parametrize(("n", "where"), [(1, 0), (2, 1), (500, 0), (500, 499), (500, 250)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nearest_row_names_the_first_bad_number(isa, chain, rng, n, where, value):
    V = SparseProduct(chain(20, 10, 30))
    X = rng.standard_normal((n, 30)).astype(np.float32)
    X[where:, 7] = value
    for order in "CF":
        with pytest.raises(ValueError, match=rf"X contains (NaN|infinity) \(row {where}, column 7\)"):
            V.nearest_row(np.array(X, order=order))
    with pytest.raises(ValueError, match=rf"X contains (NaN|infinity) \(row {where}, column 7\)"):
        V.nearest_rows(X, 3)


@pytest.mark.parametrize("n", [1, 100])
def test_overflow_is_an_error_and_not_a_label(isa, n):
    V = SparseProduct([np.float32([[1e18, 1e18], [1e18, -1e18]])])
    X = np.full((n, 2), 3e38, np.float32)
    for m in (1, 2):
        with pytest.raises(ValueError, match="may overflow float32; scale X or use float64"):
            V.nearest_rows(X, m)
    assert (V.nearest_row(X.astype(np.float64)) == 0).all()


@pytest.mark.parametrize("n", [1, 40])
def test_overflow_on_the_way_to_a_loser_is_an_error_too(isa, n):
    """In float32 the first row overflows to NaN and would lose; in float64 it wins."""
    V = SparseProduct([np.float32([[-10, 10, 1], [0, 0, 0.5]])])
    X = np.tile(np.float32([1e38, 1e38, 5]), (n, 1))
    with pytest.raises(ValueError, match="may overflow float32"):
        V.nearest_row(X, bias=np.zeros(2))
    assert (V.nearest_row(X.astype(np.float64), bias=np.zeros(2)) == 0).all()


@pytest.mark.parametrize(("K", "D"), [(20, 300), (160, 40), (33, 129)])
def test_dense_factors_of_several_blocks(isa, rng, K, D):
    U = rng.integers(-3, 4, (K, D)).astype(np.float32)
    X = rng.integers(-3, 4, (70, D)).astype(np.float32)
    V = SparseProduct([U])
    for rows in (X, X[:1]):
        np.testing.assert_array_equal(rows @ V.T, rows @ U.T)
        np.testing.assert_array_equal(V.nearest_rows(rows, 3), reference.nearest_rows(rows, U, 3))


def test_bias_of_a_single_row_meets_its_own_sum(isa, rng):
    """Rows of equal length stand side by side in the kernel; each must begin with its own bias."""
    V = SparseProduct([sp.csr_array(np.kron(np.eye(48, dtype=np.float32), [[1, 0, 0]]))])
    bias = rng.permutation(48)
    assert V.nearest_row(np.zeros((1, 144), np.float32), bias=bias) == bias.argmin()


def test_forced_instruction_set_is_used(isa, chain):
    V = SparseProduct(chain(5, 6))
    V @ np.ones(6, np.float32)
    assert V.native(np.dtype(np.float32)).isa == isa


def test_unknown_instruction_set_is_refused(monkeypatch, chain):
    monkeypatch.setenv("QUICKMEANS_ISA", "mmx")
    with pytest.raises(ValueError, match=r"QUICKMEANS_ISA is 'mmx'; set it to one of .*baseline, or unset it"):
        SparseProduct(chain(5, 6)) @ np.ones(6)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([], "no factors"),
        ([np.ones((2, 3), "f4"), np.ones((2, 3), "f4")], "do not chain"),
        ([np.ones((0, 3), "f4")], "number of rows"),
        ([np.ones((3, 0), "f4")], "number of columns"),
        ([(3, np.array([0, 2]), np.array([0, 3], "i4"), np.ones(2, "f4"))], "column out of range"),
        ([(3, np.array([0, 2]), np.array([0, -1], "i4"), np.ones(2, "f4"))], "column out of range"),
        ([(3, np.array([0, 2]), np.array([0], "i4"), np.ones(1, "f4"))], "inconsistent sparse factor"),
        ([(3, np.array([0, 2, 1]), np.array([0], "i4"), np.ones(1, "f4"))], "inconsistent sparse factor"),
        ([(1, np.array([0, 2]), np.array([0, 0], "i4"), np.ones(2, "f4"))], "inconsistent sparse factor"),
        ([(3, np.array([], "i8"), np.array([], "i4"), np.ones(0, "f4"))], "number of rows"),
    ],
)
def test_the_binding_refuses_what_would_read_out_of_bounds(factors, message):
    with pytest.raises(ValueError, match=message):
        _native.Product32(factors, "")


def test_the_binding_refuses_arrays_that_do_not_fit():
    kernel = _native.Product32([np.ones((2, 3), np.float32)], "")
    X = np.ones((4, 3), np.float32)
    with pytest.raises(ValueError, match="wrong shape of out"):
        kernel.apply(X, np.empty((4, 3), np.float32), 1)
    with pytest.raises(ValueError, match="rows do not fit"):
        kernel.apply(X[:, :2], np.empty((4, 2), np.float32), 1)
    with pytest.raises(ValueError, match="labels or scores"):
        kernel.nearest(X, np.zeros(2, "f4"), 0.0, np.empty((4, 3), "i8"), np.empty((4, 3), "f4"), 1)
    with pytest.raises(ValueError, match="does not fit"):
        kernel.apply_one(np.ones(2, np.float32), np.empty(2, np.float32))
    with pytest.raises(TypeError):
        kernel.apply(X, np.empty((4, 2), np.float64), 1)
    with pytest.raises(TypeError, match="contiguous matrix of the right type"):
        _native.Product32([np.ones((2, 3), np.float64)], "")


def test_any_number_of_threads_will_do(rng):
    V = SparseProduct([rng.standard_normal((9, 5))])
    X = rng.standard_normal((200, 5))
    for n_threads in (-3, 0, 1, 1000):
        np.testing.assert_array_equal(V.native(np.dtype(np.float64)).apply(X, n_threads), X @ V.T)


AWKWARD = {
    "Fortran order": np.asfortranarray,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "backwards": lambda a: a[::-1].copy()[::-1],
    "unaligned": lambda a: _unaligned(a) if a.ndim == 2 else _unaligned(a[None])[0],
    "read-only": _read_only,
    "another type": lambda a: a.astype(np.longdouble if a.dtype.kind == "f" else np.int16),
}


@pytest.mark.parametrize("layout", AWKWARD)
def test_layouts_are_made_right_for_every_kernel(rng, layout):
    """Whole numbers, so that no type rounds them."""

    def calls(change):
        def array(*shape, low=1, high=9, dtype=np.float64):
            return change(np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype))

        x, weights = array(60, 7), array(60)
        sums, squares = np.zeros((4, 7)), np.zeros((4, 7))
        members, starts = change(np.arange(60)), change(np.array([0, 10, 10, 55, 60]))
        kernels.add_members(x, members, starts, weights, sums, 2)
        kernels.moments(x, weights, array(7), sums, squares, 2)
        support = np.ones((20, 6), np.uint8)
        gram = change(np.eye(6) * 8 + np.ones((6, 6)))
        fit = kernels.fit_supports(
            gram, array(20, 6), array(20), array(20, dtype=np.int64, high=3), support, 2, prices=True
        )
        S = change(np.random.default_rng(0).integers(0, 2, (8, 9)).astype(float))
        sets = [kernels.FactorSet(2, 2, False, False), kernels.FactorSet(3, 0, False, False)]
        options = kernels.PalmOptions(False, False, 0.1, 1, 2)
        palm = kernels.Palm(array(8, 9), array(8), [S[:, :8].T @ S[:, :8], S], sets, options)
        return [
            sums, squares, support, *fit, palm.start(), palm.sweep(_never), palm.factor(0), palm.factor(1),
            kernels.seed(array(60, 7), weights, 3, change(np.linspace(0, 0.75, 16).reshape(8, 2)), 1),
            kernels.masked_product(array(20, 7), array(7, 6), support, 1),
            kernels.mark_largest(array(8, 9), 2, 3), kernels.match_largest(array(8, 9), 2, 3),
            *kernels.group_by_label(array(60, dtype=np.int64), 9),
            kernels.Product([array(4, 7)], np.dtype(np.float64)).apply(x, 1),
        ]  # fmt: skip

    for result, expected in zip(calls(AWKWARD[layout]), calls(lambda a: a), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_arrays_to_be_changed_must_be_right():
    x = np.ones((3, 2))
    for sums in (np.zeros((1, 2), np.float32), np.zeros((2, 1)).T[:, ::-1], _read_only(np.zeros((1, 2)))):
        with pytest.raises(ValueError, match="sums must be a writeable, aligned array of float64 in C order"):
            kernels.add_members(x, np.arange(3), np.array([0, 3]), None, sums, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: kernels.add_members(x, np.array([3]), np.array([0, 1]), None, np.zeros((1, 2)), 1), "member"),
        (lambda x: kernels.add_members(x, np.array([0]), np.array([0, 2]), None, np.zeros((1, 2)), 1), "starts"),
        (lambda x: kernels.add_members(x, np.arange(2), np.array([0, 3, 2]), None, np.zeros((2, 2)), 1), "starts"),
        (lambda x: kernels.add_members(x, np.arange(3), np.array([0, 3]), np.ones(2), np.zeros((1, 2)), 1), "weights"),
        (lambda x: kernels.moments(x, None, np.ones(3), np.zeros((1, 2)), np.zeros((1, 2)), 1), "shift"),
        (lambda x: kernels.moments(x, None, np.ones(2), np.zeros((0, 2)), np.zeros((0, 2)), 1), "shift"),
        (lambda x: kernels.moments(x, None, np.ones(2), np.zeros((1, 2)), np.zeros((2, 2)), 1), "squares"),
        (lambda x: kernels.seed(x, np.ones(3), 3, np.ones((1, 1)), 1), "first"),
        (lambda x: kernels.seed(x, np.ones(3), -1, np.ones((1, 1)), 1), "first"),
        (lambda x: kernels.seed(x, np.ones(2), 0, np.ones((1, 1)), 1), "weights"),
        (lambda x: kernels.seed(x, np.ones(3), 0, np.ones((1, 0)), 1), "uniforms"),
        (lambda x: kernels.Search(x, np.ones(2), spherical=False, n_threads=1), "weights"),
        (lambda x: kernels.Search(x[:0], np.ones(0), spherical=False, n_threads=1), "rows"),
        (lambda x: kernels.Search(x, np.ones(3), spherical=False, n_threads=1).place(np.ones((2, 3))), "centers"),
        (lambda x: kernels.Search(x, np.ones(3), spherical=False, n_threads=1).place(np.ones((0, 2))), "centers"),
        (lambda x: kernels.Search(x, np.ones(3), spherical=False, n_threads=1).iterate(1), "place centers first"),
        (lambda x: kernels.Search(x, np.ones(3), spherical=False, n_threads=1).go_back(), "nothing was kept"),
        (lambda x: kernels.masked_product(x, x, np.ones((3, 2), np.uint8), 1), "atoms"),
        (lambda x: _palm(x, np.ones(3), [np.ones((4, 2))]), "wrong shape of a factor"),
        (lambda x: _palm(x, np.ones(3), [np.ones((3, 3))]), "wrong shape of the last factor"),
        (lambda x: _palm(x, np.ones(2), [np.ones((3, 2))]), "wrong size of weights"),
        (lambda x: _palm(x, np.ones(3), []), "wrong number of sets"),
        (lambda x: _palm(x, np.ones(3), [np.ones((3, 2))], per_row=-1), "negative number of entries"),
        (lambda x: kernels.mark_largest(x, -1, 0), "negative"),
    ],
)
def test_native_calls_check_sizes_and_bounds(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((3, 2)))
