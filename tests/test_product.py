"""SparseProduct as an object: what it takes, what it gives, what it refuses."""

import copy
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import scipy.sparse.linalg

from quickmeans import SparseProduct
from quickmeans.testing import check_adjoint


def test_hand_worked():
    V = SparseProduct([sp.csr_array([[1, 0], [0, 2], [1, 1]]), np.array([[1, 0, 3], [0, 1, 0]])])
    np.testing.assert_array_equal(V.toarray(), [[1, 0, 3], [0, 2, 0], [1, 1, 3]])
    np.testing.assert_array_equal(V @ [1, 2, 3], [10, 4, 12])
    np.testing.assert_array_equal(V.T @ [1, 1, 1], [2, 3, 6])
    np.testing.assert_allclose(V.row_norms(), np.sqrt([10, 4, 11]))
    assert V.shape == (3, 3)
    assert V.nnz == 7
    assert V.macs == 6 + 3, "the first factor is more than half full and counts as dense"
    assert V.dtype == np.float64
    labels, gaps = V.nearest_rows([[0, 2, 0], [1, 0, 3]], 2, return_distance=True)
    np.testing.assert_array_equal(labels, [[1, 2], [0, 2]])
    np.testing.assert_allclose(gaps, [[0, np.sqrt(11)], [0, 1]], atol=1e-7)


def test_factors_are_copied_read_only_and_canonical(rng):
    given = sp.coo_array(([1.0, 2.0, 3.0, 0.0], ([0, 0, 1, 1], [2, 2, 0, 1])), shape=(2, 3))
    V = SparseProduct([given, np.eye(3)])
    given.data[:] = 99
    (S, eye) = V.factors
    np.testing.assert_array_equal(S.toarray(), [[0, 0, 3], [3, 0, 0]])
    assert S.nnz == 2
    assert sp.issparse(eye), "a dense array of zeros is kept sparse"
    with pytest.raises(ValueError, match="read-only"):
        S.data[0] = 1
    for part in (S.indices, S.indptr):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
    S.data = S.data * 7
    np.testing.assert_array_equal(V.toarray(), [[0, 0, 3], [3, 0, 0]])
    duplicates = sp.csr_array(([1.0, 2.0, 4.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    np.testing.assert_array_equal(SparseProduct([duplicates]).toarray(), [[3, 4]])
    mine = np.ones((2, 2))
    theirs = SparseProduct([mine])
    mine[0, 0] = 5
    np.testing.assert_array_equal(theirs.toarray(), np.ones((2, 2)))
    dense = SparseProduct([sp.csr_array(rng.standard_normal((4, 4)))]).factors[0]
    assert isinstance(dense, np.ndarray), "a sparse matrix without zeros is kept dense"
    with pytest.raises(ValueError, match="read-only"):
        dense[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        dense.flags.writeable = True


@pytest.mark.parametrize(
    ("factors", "operand", "result"),
    [("f4", "f4", "f4"), ("f4", "f8", "f8"), ("f8", "f4", "f8"), ("f2", "f2", "f4"), ("i8", "f4", "f8"),
     ("f4", "u1", "f4"), ("f4", "i4", "f8"), ("?", "?", "f8"), ("g", "f4", "f8"), ("f4", "g", "f8"),
     ("f4", ">f4", "f4"), ("f4", ">i2", "f4")],
)  # fmt: skip
def test_types_of_results(factors, operand, result):
    V = SparseProduct([np.eye(3).astype(factors), np.ones((3, 2), factors)])
    X = np.array([[1, 0], [1, 1]]).astype(operand)
    for Y in (X @ V.T, (V @ X.T).T, np.stack([V @ x for x in X]), V.nearest_row(X, return_distance=True)[1]):
        assert Y.dtype == result
    np.testing.assert_array_equal(X @ V.T, [[1, 1, 1], [2, 2, 2]])


def test_operands_of_every_kind(chain, rng):
    V = SparseProduct(chain(6, 5, 4, density=0.5, dtype=np.float64))
    U = V.toarray()
    x, M, X = rng.standard_normal(4), rng.standard_normal((4, 3)), rng.standard_normal((7, 4))
    y, Y = rng.standard_normal(6), rng.standard_normal((3, 6))
    for ours, theirs in [
        (V @ x, U @ x), (V @ M, U @ M), (V @ list(x), U @ x), (V.T @ y, U.T @ y), (X @ V.T, X @ U.T), (y @ V, y @ U),
        (Y @ V, Y @ U), (V.matvec(x), U @ x), (V.matmat(M), U @ M), (V.rmatvec(y), U.T @ y), (V.H @ y, U.T @ y),
        (V.rmatmat(Y.T), U.T @ Y.T), (V.dot(x), U @ x), (V(M), U @ M), ((2 * V) @ x, 2 * U @ x),
        ((V + V) @ x, 2 * U @ x), ((V.T @ V) @ x, U.T @ U @ x), (V @ x[:, None], U @ x[:, None]),
        (x[None] @ V.T, x[None] @ U.T), (V @ M[:, :0], U @ M[:, :0]),
    ]:  # fmt: skip
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_products_of_products_and_transposes(chain):
    V = SparseProduct(chain(6, 5, 4, dtype=np.float64))
    G = V @ V.T
    assert isinstance(G, SparseProduct)
    assert len(G.factors) == 4
    assert isinstance(V.T, SparseProduct)
    assert V.T.T is V
    assert V.T.shape == (4, 6)


def test_scipy_solvers_accept_it(rng):
    V = SparseProduct([np.eye(30) + 0.1 * rng.standard_normal((30, 30)), sp.eye_array(30) * 2])
    x = rng.standard_normal(30)
    solution = scipy.sparse.linalg.lsqr(V, V @ x, atol=1e-12, btol=1e-12)[0]
    np.testing.assert_allclose(solution, x, atol=1e-6)
    np.testing.assert_allclose(
        scipy.sparse.linalg.svds(V, k=1, random_state=0)[1], np.linalg.svd(V.toarray())[1][:1], rtol=1e-6
    )


def test_adjoint(chain):
    for dtype in (np.float32, np.float64):
        check_adjoint(SparseProduct(chain(40, 30, 50, dtype=dtype)))


def test_row_norms_and_toarray_across_blocks(chain):
    factors = chain(1000, 20, 30)
    V = SparseProduct(factors)
    U = reference.product(factors)
    np.testing.assert_allclose(V.toarray(), U, atol=1e-5)
    np.testing.assert_allclose(V.row_norms(), np.linalg.norm(U, axis=1), rtol=1e-5, atol=1e-6)
    assert V.row_norms().dtype == np.float32


def test_norms_follow_the_working_type(rng):
    """With float64 rows a float32 product is compared in float64 throughout."""
    factors = [rng.standard_normal((4, 30)).astype(np.float32), rng.standard_normal((30, 200)).astype(np.float32)]
    V, U = SparseProduct(factors), reference.product(factors)
    X = np.stack([(U[0] + U[1]) / 2 + sign * 3e-9 * (U[0] - U[1]) for sign in (1, -1)])
    np.testing.assert_array_equal(V.nearest_row(X), [0, 1])
    assert V.nearest_row(U, return_distance=True)[1].max() < 1e-5


def test_distances_of_many_rows(chain, rng):
    V = SparseProduct(chain(20, 10, 30))
    X = rng.standard_normal((2500, 30)).astype(np.float32)
    labels, gaps = V.nearest_row(X, return_distance=True)
    np.testing.assert_allclose(gaps, np.linalg.norm(X - V.toarray()[labels], axis=1), rtol=1e-5)
    assert np.isfinite(V.nearest_row(V.toarray() * np.float32(1), return_distance=True)[1]).all()


def test_bias_keeps_its_digits():
    V = SparseProduct([np.zeros((2, 3))])
    assert V.nearest_row(np.ones((1, 3)), bias=[1.0, 1 - 1e-12]) == 1


def test_bias_replaces_the_norms(chain, rng):
    V = SparseProduct(chain(50, 20, 30, dtype=np.float64))
    X, b = rng.standard_normal((20, 30)), rng.standard_normal(50)
    values = b - X @ V.toarray().T
    labels, least = V.nearest_row(X, bias=b, return_distance=True)
    np.testing.assert_array_equal(labels, values.argmin(axis=1))
    np.testing.assert_allclose(least, values.min(axis=1))


def test_centring_by_bias(chain, rng):
    """With b_k = ||v_k||^2 / 2 + <v_k, mu> the rows of X - mu are compared without forming X - mu."""
    V = SparseProduct(chain(50, 20, 30, dtype=np.float64))
    X, mu = rng.standard_normal((20, 30)) + 5, rng.standard_normal(30) + 5
    np.testing.assert_array_equal(V.nearest_row(X, bias=V.row_norms() ** 2 / 2 + V @ mu), V.nearest_row(X - mu))


def test_pickle_copy_equality_hash(chain):
    factors = chain(9, 8, 7)
    V = SparseProduct(factors)
    V.nearest_row(np.ones((3, 7)))
    for W in (pickle.loads(pickle.dumps(V)), copy.copy(V), copy.deepcopy(V), SparseProduct(factors)):
        assert W == V
        assert hash(W) == hash(V)
        np.testing.assert_array_equal(W.nearest_row(np.ones((3, 7))), V.nearest_row(np.ones((3, 7))))
    assert SparseProduct(chain(9, 8, 7)) != V
    assert SparseProduct([f.astype(np.float64) for f in factors]) != V
    assert SparseProduct(factors[:1]) != V
    a, b, c = (
        SparseProduct([sp.csr_array(M)])
        for M in ([[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], [[1, 1, 0], [0, 0, 0]])
    )
    assert len({a, b, c}) == 3
    assert SparseProduct([[[1, 2]]]) != SparseProduct([[[1, 3]]])
    assert V != "V"
    assert len(pickle.dumps(V)) < 40 * V.nnz + 2000, "caches are not pickled"


def test_repr_says_what_it_is():
    V = SparseProduct([sp.eye_array(100, dtype=np.float32)] * 2)
    assert repr(V) == "SparseProduct(100 x 100, 2 factors, 200 non-zeros, compression 50.0x, float32)"
    assert list(inspect.signature(SparseProduct).parameters) == ["factors"]


def broken(kind, part, value):
    matrix = kind(sp.random_array((6, 8), density=0.5, rng=0))
    getattr(matrix, part)[2] = value
    return matrix


@pytest.mark.parametrize(
    ("factors", "error", "message"),
    [
        ([broken(sp.csr_array, "indices", 8)], ValueError, "Factor 1 is not a valid sparse matrix: its indices"),
        (
            [np.eye(6), broken(sp.csc_array, "indices", 10**6)],
            ValueError,
            "Factor 2 is not a valid sparse matrix: its indices",
        ),
        ([broken(sp.csr_array, "indptr", -5)], ValueError, "Factor 1 is not a valid sparse matrix: its indices"),
        ([], ValueError, "at least one factor"),
        (np.eye(3), TypeError, r"write SparseProduct\(\[S\]\)"),
        (sp.eye_array(3), TypeError, r"write SparseProduct\(\[S\]\)"),
        (
            [np.eye(3), np.eye(3), np.ones((4, 2))],
            ValueError,
            r"Factors 2 and 3 do not chain.*\(3, 3\) and \(4, 2\).*3 rows",
        ),
        ([np.eye(3), np.ones((3, 0))], ValueError, r"Factor 2 has shape \(3, 0\)"),
        ([np.ones((0, 3))], ValueError, r"Factor 1 has shape \(0, 3\)"),
        (None, TypeError, "takes a sequence of factors, got None"),
        ("abc", TypeError, "takes a sequence of factors, got 'abc'"),
        ([None], TypeError, "Factor 1 must be an array of numbers, got NoneType"),
        ([np.eye(2), [[1, 2], [3]]], ValueError, "Factor 2 must be a rectangular array of numbers"),
        ([np.ma.masked_equal(np.eye(2), 0)], TypeError, r"Factor 1 is a masked array.*filled\(\)"),
        ([[1, 2], [3, 4]], ValueError, r"Factor 1 must be a 2-D matrix, got 1-D; .* write SparseProduct\(\[S\]\)"),
        ([np.ones((2, 2, 2))], ValueError, "Factor 1 must be a 2-D matrix, got 3-D"),
        ([np.eye(3), np.eye(3) * 1j], TypeError, "Factor 2 has dtype complex128"),
        ([np.array([["a"]])], TypeError, "Factor 1 has dtype <U1"),
        ([np.array([[None]])], TypeError, "Factor 1 has dtype object"),
        ([np.array([[1, np.nan], [1, 1]])], ValueError, "Factor 1 holds nan at row 0, column 1"),
        ([sp.csr_array([[0, 1, 0, 0], [0, 0, 0, -np.inf]])], ValueError, "Factor 1 holds -inf at row 1, column 3"),
        ([np.broadcast_to(1.0, (1, 2**31))], ValueError, "at most 2147483647"),
    ],
)
def test_bad_factors(factors, error, message):
    with pytest.raises(error, match=message):
        SparseProduct(factors)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones((2, 4)), ValueError, "X has 4 columns, but the product has 3"),
        (np.ones(3), ValueError, r"2-D array of rows, got 1-D of shape \(3,\); for a single row pass X\[None, :\]"),
        (np.ones((1, 1, 3)), ValueError, "2-D array of rows, got 3-D"),
        (np.ones((2, 3)) * 1j, TypeError, "X has dtype complex128"),
        (np.array([["a", "b", "c"]]), TypeError, "X has dtype <U1"),
        (np.array([[None] * 3]), TypeError, "X has dtype object"),
        (sp.eye_array(3), TypeError, "X is a sparse matrix"),
        ([], ValueError, r"2-D array of rows, got 1-D of shape \(0,\)\.$"),
        (np.ma.masked_equal(np.eye(3), 0), TypeError, "X is a masked array"),
    ],
)
def test_bad_rows(X, error, message):
    V = SparseProduct([np.eye(3)])
    for call in (V.nearest_row, V.apply, lambda X: V.nearest_rows(X, 2)):
        with pytest.raises(error, match=message):
            call(X)


@pytest.mark.parametrize(
    ("operand", "error", "message"),
    [
        (np.ones(4), ValueError, "The operand has 4 entries, but the 3 x 3 product needs 3"),
        (np.ones((4, 4)), ValueError, "The operand has 4 entries per vector, but the 3 x 3 product needs 3"),
        (np.ones((2, 2, 3)), ValueError, r"must be a vector or a matrix, got 3-D of shape \(\d, 2, \d\)"),
        (np.array(3.0), ValueError, "must be a vector or a matrix, got 0-D"),
        (np.ones(3) * 1j, TypeError, "The operand has dtype complex128"),
        (sp.eye_array(3), TypeError, "The operand is a sparse matrix"),
        (None, TypeError, "The operand must be an array of numbers, got NoneType"),
        ("abc", TypeError, "The operand has dtype <U3"),
    ],
)
def test_bad_operands_of_matmul(operand, error, message):
    V = SparseProduct([np.eye(3)])
    with pytest.raises(error, match=message):
        V @ operand
    if not sp.issparse(operand):
        with pytest.raises(error, match=message):
            operand @ V


def test_products_among_the_factors_are_spliced(chain):
    V = SparseProduct(chain(6, 5, 4))
    assert len(SparseProduct([V, np.eye(4), V.T]).factors) == 5


def test_distances_that_overflow():
    with pytest.raises(ValueError, match="The distances overflow; scale X"):
        SparseProduct([np.eye(3)]).nearest_row(np.full((3, 3), 1e200), return_distance=True)
    with pytest.raises(ValueError, match="squared norms of the rows overflow; scale the factors"):
        SparseProduct([np.eye(3) * 1e200]).row_norms()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"m": 0}, ValueError, "m must be a whole number from 1 to 3, the number of rows, got 0"),
        ({"m": 4}, ValueError, "m must be a whole number from 1 to 3, the number of rows, got 4"),
        ({"m": 1.5}, ValueError, "m must be a whole number .* got 1.5"),
        ({"m": True}, ValueError, "m must be a whole number .* got True"),
        ({"m": 2, "n_threads": 0}, ValueError, "n_threads must be a whole number not below 1, got 0"),
        ({"m": 2, "n_threads": -3}, ValueError, "n_threads must be a whole number not below 1, got -3"),
        ({"m": 2, "n_threads": 1.5}, ValueError, "n_threads must be a whole number not below 1, got 1.5"),
        ({"m": 2, "bias": np.ones(2)}, ValueError, r"bias must have shape \(3,\)"),
        ({"m": 2, "bias": [0, np.nan, 0]}, ValueError, r"bias must be finite.*has index 1\)"),
        ({"m": 2, "bias": [0, 1j, 0]}, TypeError, "bias has dtype complex128"),
    ],
)
def test_bad_arguments_of_nearest_rows(arguments, error, message):
    with pytest.raises(error, match=message):
        SparseProduct([np.eye(3)]).nearest_rows(np.ones((2, 3)), **arguments)


def test_norms_that_overflow():
    V = SparseProduct([np.full((2, 2), 1e30, np.float32)])
    with pytest.raises(ValueError, match="squared norms of the rows overflow; scale the factors or use float64"):
        V.nearest_row(np.ones((1, 2), np.float32))
    assert V.nearest_row(np.ones((1, 2), np.float64)) == 0


def test_data_frames_are_rows():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    np.testing.assert_array_equal(SparseProduct([np.eye(2)]).nearest_row(frame), [0, 1])


MEMORY_SCRIPT = """
import sys, threading, time
import numpy as np, scipy.sparse as sp
from quickmeans import SparseProduct

def private_memory():
    return 1024 * int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0])

rng = np.random.default_rng(0)
shapes = [(256, 64), (64, 256)]
V = SparseProduct([sp.random_array(shape, density=0.05, rng=rng, dtype=np.float32) for shape in shapes])
X = np.load(sys.argv[1], mmap_mode="r")
V.nearest_row(X[:1000])
start, most, done = private_memory(), 0, False

def sample_memory():
    global most
    while not done:
        most = max(most, private_memory())
        time.sleep(0.002)

sampler = threading.Thread(target=sample_memory)
sampler.start()
V.nearest_row(X)
done = True
sampler.join()
print(most - start)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of the process from /proc")
def test_memory_map_is_not_loaded(tmp_path):
    """Beyond labels and scores a call needs 64 MB at most, whatever the size of the file."""
    n = 2_000_000
    np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.uint8, shape=(n, 256)).flush()
    out = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, tmp_path / "x.npy"], check=True, capture_output=True, text=True
    )
    assert int(out.stdout) < 12 * n + 64e6


def test_interrupt_stops_a_long_call(chain):
    V = SparseProduct(chain(2000, 500, 500, density=0.2))
    X = np.broadcast_to(np.ones(500, np.float32), (3_000_000, 500))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        V.nearest_row(X)
    assert time.monotonic() - start < 5


def test_calls_from_many_python_threads(chain, rng):
    V = SparseProduct(chain(300, 50, 60))
    X = rng.standard_normal((2000, 60)).astype(np.float32)
    expected, results = V.nearest_row(X), []
    threads = [threading.Thread(target=lambda: results.append(V.nearest_row(X))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(np.array_equal(labels, expected) for labels in results)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_works_in_a_forked_child(chain, rng):
    V = SparseProduct(chain(300, 50, 60))
    X = rng.standard_normal((5000, 60)).astype(np.float32)
    expected = V.nearest_row(X)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(V.nearest_row(X), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
