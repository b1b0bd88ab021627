"""The constants of the cost model: what native operations cost, in multiply-adds of a dense product.

    python -m benchmarks.cost_model

Processor time of one thread, float32 unless said otherwise, the best of many short runs. Prints every constant beside
the value in use, and where that is, and writes benchmarks/results/cost_model.json.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

from benchmarks.harness import machine, save
from quickmeans import kernels
from quickmeans.threads import with_one_blas_thread

K, D, N = 512, 256, 1024
FLOAT32 = np.dtype(np.float32)
DIMENSIONS = (32, 64, 128, 256, 512)  # of the rows whose candidates are settled
MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15)
# name: the value in use, and where
IN_USE = {
    "sparse entry / dense entry": "1 / 0.4, kDenseSliceShare in native/product.cpp",
    "starting a thread": "1e7, kWorkPerThread in native/product.cpp",
    "adding an entry to a sum": "1e7 / 1e6, kWorkPerThread / kEntriesPerThread in native/bindings/sums.cpp",
    "settling a candidate": "3000, _SETTLE in kmeans/calibration.py",
    "settling, per entry of the row": "8, _SETTLE_ENTRY in kmeans/calibration.py",
    "listing a candidate": "300, _LIST in kmeans/calibration.py",
    "gathered entry / dense entry, float64": "16, _GATHER in transform/pair.py",
    "sparse entry / dense entry, float64": "1 / 0.15, _FEW in transform/quadratic.py",
}


def best(call: Callable[[], Any], clock: Callable[[], float] = time.process_time, seconds: float = 1.0) -> float:
    """The shortest of the runs that fit into this time, of which there are ten or more."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)


def product_seconds(density: float, rng: np.random.Generator) -> float:
    """Seconds per multiply-add of a product with one factor."""
    S = rng.standard_normal((K, D)).astype(np.float32)
    if density < 1:
        S = sp.csr_array(np.where(rng.random(S.shape) < density, S, 0))
    X, offset = rng.standard_normal((N, D)).astype(np.float32), np.zeros(K, np.float32)
    product = kernels.Product([S], FLOAT32)
    return best(lambda: product.nearest(X, 1, offset, 0.0, 1)) / (N * (S.nnz if density < 1 else S.size))


def thread_seconds() -> float:
    """Wall time of starting and joining a second thread, from a call that has nothing to do."""
    rows, support = np.zeros((16, 1)), np.zeros((16, 1), np.uint8)
    atoms = np.zeros((1, 1))
    one, two = (
        best(lambda n=n: kernels.masked_product(rows, atoms, support, n), time.perf_counter) for n in (1, 2)
    )  # fmt: skip
    return two - one


def sum_seconds(rng: np.random.Generator) -> float:
    """Seconds per entry of adding rows to the sums of their clusters."""
    X, labels = rng.standard_normal((20 * N, D)).astype(np.float32), rng.integers(0, K, 20 * N)
    order, starts = kernels.group_by_label(labels, K)
    sums = np.zeros((K, D))
    return best(lambda: kernels.add_members(X, order, starts, None, sums, 1)) / X.size


def settle_seconds(rng: np.random.Generator) -> list[float]:
    """Seconds per candidate settled, per entry of its row, and per candidate listed.

    Assignments with a low-rank product and several margins, in turns. Their times are fitted by a constant for every
    dimension and a non-negative combination of the candidates settled and listed, relative errors squared.
    """
    costs, times = [], []
    for i, n_columns in enumerate(DIMENSIONS):
        decay = 1 / (1 + np.arange(n_columns) / 8)  # so that a few directions tell most
        centers = (rng.standard_normal((8 * K, n_columns)) * decay).astype(np.float32)
        X = (centers[rng.integers(0, 8 * K, N)] + 0.7 * decay * rng.standard_normal((N, n_columns))).astype(np.float32)
        screens = [_screen(centers, margin) for margin in MARGINS]
        times += _alternate([partial(_assign, X, screen) for screen in screens])
        for screen in screens:
            counted = _assign(X, screen)
            costs.append(
                [*np.eye(len(DIMENSIONS))[i], counted.n_settled, counted.n_settled * n_columns, counted.n_listed]
            )
    scale = 1 / np.array(times)
    return list(nnls(np.array(costs) * scale[:, None], np.ones(len(times)))[0][-3:])


def _alternate(calls: list[Callable[[], Any]], rounds: int = 40) -> list[float]:
    """The shortest time of each call."""
    times = np.full(len(calls), np.inf)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.process_time()
            call()
            times[i] = min(times[i], time.process_time() - begin)
    return list(times)


def _screen(centers: NDArray[np.float32], margin: float) -> kernels.Screen:
    """The centers projected on their 16 leading directions."""
    basis = np.linalg.svd(centers, full_matrices=False)[2][:16]
    low = centers @ basis.T
    exact, near = (-(A.astype(float) ** 2).sum(axis=1) / 2 for A in (centers, low))
    slack = np.sqrt(np.maximum(2 * (near - exact), 0))
    product = kernels.Product([low, basis], FLOAT32)
    return kernels.Screen(product, centers, np.zeros(centers.shape[1]), near, exact, slack, margin)


def _assign(X: NDArray[np.float32], screen: kernels.Screen) -> kernels.Assignment:
    assignment = kernels.make_assignment(len(X), np.float32)
    screen.assign(X, assignment, exact_scores=False)
    return assignment


@with_one_blas_thread
def solver_seconds(rng: np.random.Generator) -> dict[str, float]:
    """Seconds per multiply-add in float64: of BLAS, of gathered products on a support, of a sparse factor."""
    n = 256
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, n))
    atoms = np.where(rng.random((n, n)) < 0.1, B, 0)
    support = np.ones((n, n), np.uint8)
    entries = kernels.Entries(atoms, n * n)
    return {
        "dense": best(lambda: A @ B) / n**3,
        "gathered": best(lambda: kernels.masked_product(A, atoms, support, 1)) / (n * len(entries)),
        "sparse": best(lambda: entries.times(B)) / (n * len(entries)),
    }


def measure() -> tuple[dict[str, float], dict[str, float]]:
    """Multiply-adds per nanosecond, and the constants in multiply-adds of the dense product."""
    rng = np.random.default_rng(0)
    dense, sparse = product_seconds(1, rng), product_seconds(0.05, rng)
    settled, settled_entry, listed = settle_seconds(rng)
    solver = solver_seconds(rng)
    rates = {
        "dense product": 1e-9 / dense,
        "sparse product": 1e-9 / sparse,
        "BLAS, float64": 1e-9 / solver["dense"],
        "sparse factor, float64": 1e-9 / solver["sparse"],
        "gathered products, float64": 1e-9 / solver["gathered"],
    }
    costs = {
        "sparse entry / dense entry": sparse / dense,
        "starting a thread": thread_seconds() / dense,
        "adding an entry to a sum": sum_seconds(rng) / dense,
        "settling a candidate": settled / dense,
        "settling, per entry of the row": settled_entry / dense,
        "listing a candidate": listed / dense,
        "gathered entry / dense entry, float64": solver["gathered"] / solver["dense"],
        "sparse entry / dense entry, float64": solver["sparse"] / solver["dense"],
    }
    return rates, costs


def main() -> None:
    rates, costs = measure()
    table = Table("constant", "measured", "in use")
    for name, rate in rates.items():
        table.add_row(f"{name}: multiply-adds per ns", f"{rate:.3g}", "")
    for name, cost in costs.items():
        table.add_row(name, f"{cost:.3g}", IN_USE[name])
    Console(width=140).print(table)
    isa = kernels.instruction_sets()[0]
    path = save("cost_model", {"machine": machine(), "isa": isa, "multiply_adds_per_ns": rates, "costs": costs})
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
