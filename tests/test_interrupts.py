"""Ctrl-C in the middle of long native calls: it comes through in time, and the next call finds all memory sound."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from quickmeans import SparseProduct, kernels

WAIT = 0.3  # seconds in which a signal must come through


def seconds_until_interrupt(call):
    """From the signal to the exception."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.2, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        return time.perf_counter() - sent[0]
    finally:
        timer.join()


def seed(rng):
    rows, uniforms = rng.standard_normal((200_000, 16), np.float32), rng.random((5000, 3))
    return lambda: kernels.seed(rows, np.ones(len(rows)), 0, uniforms, 2)


def search(rng, n_threads=1):
    rows = rng.standard_normal((100_000, 64), np.float32)
    search = kernels.Search(rows, np.ones(len(rows)), spherical=False, n_threads=n_threads)
    search.place(rows[:2000].astype(np.float64))
    return lambda: search.iterate(1000)


def near_centers(rng):
    """One call with rows that have no labels takes seconds."""
    rows = rng.standard_normal((400_000, 128), np.float32)
    near = kernels.NearCenters(rows[:20_000], 2)
    labels, best, norms = np.full(len(rows), -1, np.int32), np.empty(len(rows), np.float32), np.empty(len(rows), "f4")
    return lambda: near.assign(rows, labels, best, norms, far=0.0, turn=0, n_threads=2)


def csr_rows(rng):
    X = sp.random_array((20_000, 200), density=0.2, rng=rng, format="csr", dtype=np.float32)
    return kernels.CsrRows(X.indptr, X.indices, X.data, 200)


def csr_nearest(rng):
    rows, centers = csr_rows(rng), kernels.CsrCenters(rng.random((30_000, 200), np.float32), np.zeros(30_000), 1)
    return lambda: rows.nearest(centers, 2)


def csr_seed(rng):
    rows, uniforms = csr_rows(rng), rng.random((5000, 3))
    return lambda: rows.seed(np.arange(20_000), np.ones(20_000), 0, uniforms, 1)


def csr_distances(rng):
    rows, centers, zero = csr_rows(rng), rng.random((10_000, 200)), np.zeros(200)
    norms = rows.norms(zero, 1)
    return lambda: rows.distances(centers, zero, norms, np.float32, spherical=False, n_threads=1)


def fit_supports(rng, n_threads=1):
    """One problem alone takes seconds."""
    r = 1500
    gram, targets = np.eye(r) + 0.01, rng.standard_normal((24, r))
    support, drop = np.ones((24, r), np.uint8), np.zeros(24, np.int64)
    return lambda: kernels.fit_supports(gram, targets, np.ones(24), drop, support, n_threads, prices=True)


def palm(rng):
    """One sweep alone takes seconds."""
    n, everything = 700, kernels.FactorSet(700, 700, False, True)
    factors = [rng.standard_normal((n, n)) for _ in range(5)]
    options = kernels.PalmOptions(False, False, 0.1, 7, 30)
    solver = kernels.Palm(rng.standard_normal((n, n)), np.ones(n), factors, [everything] * 5, options)
    return lambda: solver.sweep(lambda q, M: None)


def sums(rng):
    """All rows in one cluster, again and again."""
    X, members = rng.standard_normal((2000, 1000), np.float32), np.tile(np.arange(2000), 5000)
    return lambda: kernels.add_members(X, members, np.array([0, len(members)]), None, np.zeros((1, 1000)), 1)


def moments(rng):
    X = np.broadcast_to(rng.standard_normal(1000), (10_000_000, 1000))
    return lambda: kernels.moments(X, None, np.zeros(1000), np.zeros((1, 1000)), np.zeros((1, 1000)), 1)


def distances(rng):
    centers, X = np.ones((3000, 2000)), np.broadcast_to(np.zeros(2000), (10_000, 2000))
    found = kernels.Distances(centers, np.zeros(2000), centers.dtype)
    return lambda: found.compute(X, centers.dtype, 1)


def squared_differences(rng):
    X, labels = np.broadcast_to(rng.standard_normal(1000), (10_000_000, 1000)), np.zeros(10_000_000, np.int32)
    return lambda: kernels.squared_differences(X, labels, np.zeros((1, 1000)), 1)


def packing(rng):
    S = np.ones((6000, 8000), np.float32)
    return lambda: [kernels.Product([S], S.dtype) for _ in range(10)]


def wide_product(rng):
    V = kernels.Product([np.ones((4000, 4000), np.float32)], np.dtype(np.float32))
    X = np.broadcast_to(np.ones(4000, np.float32), (100_000, 4000))
    return lambda: V.nearest(X, 1, np.zeros(4000), 0.0, 1)


def settling(rng):
    """Every center is a candidate of every row."""
    centers, X = rng.standard_normal((8000, 1000), np.float32), rng.standard_normal((5000, 1000), np.float32)
    product = SparseProduct([sp.random_array((8000, 1000), density=0.001, rng=rng, dtype=np.float32)])
    screen = kernels.Screen(
        product.native(np.dtype(np.float32)),
        centers,
        np.zeros(1000),
        np.zeros(8000),
        np.zeros(8000),
        np.ones(8000),
        1e6,
    )
    return lambda: screen.assign(X, kernels.make_assignment(5000, np.float32))


def mark_largest(rng):
    M = np.broadcast_to(rng.standard_normal(4000), (8000, 4000)).copy()
    return lambda: [kernels.mark_largest(M, 1000, 1000) for _ in range(10)]


def match_largest(rng):
    M = np.broadcast_to(rng.standard_normal(4000), (8000, 4000)).copy()
    return lambda: [kernels.match_largest(M, 2, 2) for _ in range(10)]


def scan(rng):
    rows, ids = rng.standard_normal((100_000, 64), np.float32), np.arange(100_000)
    lists = kernels.RowLists(1, 64, similarity=False)
    lists.set(np.zeros(1, np.int64), np.array([rows.ctypes.data]), np.array([ids.ctypes.data]), np.array([len(rows)]))
    probes = np.zeros((len(rows), 1), np.int64)
    return lambda: (lists.search(rows, probes, 5, 2), ids)  # which keeps rows and ids alive


@pytest.mark.parametrize(
    "problem",
    [
        seed,
        search,
        near_centers,
        lambda rng: search(rng, n_threads=2),
        csr_nearest,
        csr_seed,
        csr_distances,
        fit_supports,
        palm,
        sums,
        moments,
        distances,
        squared_differences,
        packing,
        wide_product,
        settling,
        mark_largest,
        match_largest,
        scan,
    ],
    ids=lambda problem: problem.__name__,
)
def test_interrupts_come_through(rng, problem):
    """Up to three attempts, because the machine may be busy."""
    call = problem(rng)
    assert min(_attempts(call)) < WAIT


def _attempts(call):
    for _ in range(3):
        yield (seconds := seconds_until_interrupt(call))
        if seconds < WAIT:
            return


@pytest.mark.parametrize("n_threads", [2, 5])
def test_interrupts_reach_the_other_threads(rng, n_threads):
    """Those that are in the middle of a problem, and those for which the caller waits."""
    call = fit_supports(rng, n_threads)
    assert min(_attempts(call)) < WAIT
    gram, targets = np.eye(40) * 2, rng.standard_normal((50, 40))
    support, drop = np.ones((50, 40), np.uint8), np.zeros(50, np.int64)
    values, _ = kernels.fit_supports(gram, targets, np.ones(50), drop, support, n_threads, prices=False)
    np.testing.assert_allclose(values, targets / 2)
