"""The constants of the cost model: what native operations cost, in multiply-adds of a dense product.

    python -m benchmarks.cost_model

Processor time of one thread, float32, the best of many short runs. Prints every constant beside the value in use,
and writes benchmarks/results/cost_model.json. Constants of the solvers: benchmarks/solver_constants.py.
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

K, D, N = 512, 256, 1024
WINDOW = 256  # centers whose scores are computed before candidates are listed: kWindowRows in native/kernels/types.hpp
FLOAT32 = np.dtype(np.float32)
DIMENSIONS = (32, 64, 128, 256, 512)  # of the rows whose candidates are settled
MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15)
# name: the value in use, and where
IN_USE = {
    "sparse entry / dense entry": "1 / 0.4, kDenseSliceShare in native/product.cpp",
    "starting a thread": "1e7, kWorkPerThread in native/product.cpp",
    "adding an entry to a sum": "1e7 / 1e6, kWorkPerThread / kEntriesPerThread in native/sums.cpp",
    "comparing a row": "160, kWorkPerRow in native/work.hpp",
    "comparing a row with a center": "4, kWorkPerScore in native/work.hpp",
    "settling a candidate": "3000, _SETTLE in kmeans/cost.py",
    "settling, per entry of the row": "8, _SETTLE_ENTRY in kmeans/cost.py",
    "listing a candidate": "300, _LIST in kmeans/cost.py",
}


def best(call: Callable[[], Any], clock: Callable[[], float] = time.process_time, seconds: float = 3.0) -> float:
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


def nearest_seconds(rng: np.random.Generator) -> list[float]:
    """Seconds per row, per score and per multiply-add of comparing rows with all centers.

    Times for several dimensions and numbers of centers are fitted by a non-negative combination, relative errors
    squared.
    """
    costs, times = [], []
    for n_columns in (2, 4, 10, 30, 100, 250):
        X = rng.standard_normal((8 * N, n_columns)).astype(np.float32)
        for n_centers in (2, 8, 32, 128, 512):
            centers, zeros = X[:n_centers], np.zeros(n_centers)
            screen = kernels.Screen(None, centers, np.zeros(n_columns), None, zeros, None)
            times.append(best(partial(screen.label, X), seconds=0.5) / len(X))
            costs.append([1, n_centers, n_columns * n_centers, n_columns])
    scale = 1 / np.array(times)
    return list(nnls(np.array(costs) * scale[:, None], np.ones(len(times)))[0][:3])


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


def list_seconds(rng: np.random.Generator) -> float:
    """Seconds per candidate listed: of two orders of the same centers, one lists a candidate in every window.

    Offsets that rise from window to window let the best center of each window pass; offsets that fall only the first.
    """
    centers, X = _data(D, rng)
    steps = 100.0 * (np.arange(len(centers)) // WINDOW)
    up, down = (_screen(centers, 0.0, offset) for offset in (steps, -steps))
    rising, falling = _alternate([partial(_assign, X, up), partial(_assign, X, down)], rounds=400)
    return (rising - falling) / (_assign(X, up).n_listed - _assign(X, down).n_listed)


def settle_seconds(listed: float, rng: np.random.Generator) -> list[float]:
    """Seconds per candidate settled and per entry of its row, if listing one takes `listed`.

    Assignments with a low-rank product and several margins. Their times are fitted by a constant for every dimension
    and a non-negative combination of candidates and their entries, relative errors squared.
    """
    costs, times = [], []
    for i, n_columns in enumerate(DIMENSIONS):
        centers, X = _data(n_columns, rng)
        screens = [_screen(centers, margin) for margin in MARGINS]
        seconds = _alternate([partial(_assign, X, screen) for screen in screens])
        for screen, measured in zip(screens, seconds, strict=True):
            counted = _assign(X, screen)
            costs.append([*np.eye(len(DIMENSIONS))[i], counted.n_settled, counted.n_settled * n_columns])
            times.append(measured - listed * counted.n_listed)
    scale = 1 / np.array(times)
    return list(nnls(np.array(costs) * scale[:, None], np.ones(len(times)))[0][-2:])


def _data(n_columns: int, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Centers of which a few directions tell most, and rows about them."""
    decay = 1 / (1 + np.arange(n_columns) / 8)
    centers = (rng.standard_normal((8 * K, n_columns)) * decay).astype(np.float32)
    noise = 0.7 * decay * rng.standard_normal((N, n_columns))
    return centers, (centers[rng.integers(0, 8 * K, N)] + noise).astype(np.float32)


def _alternate(calls: list[Callable[[], Any]], rounds: int = 80) -> list[float]:
    """The shortest time of each call."""
    times = np.full(len(calls), np.inf)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.process_time()
            call()
            times[i] = min(times[i], time.process_time() - begin)
    return list(times)


def _screen(centers: NDArray[np.float32], margin: float, offset: NDArray[np.float64] | float = 0.0) -> kernels.Screen:
    """The centers projected on their 16 leading directions, with something added to all scores."""
    basis = np.linalg.svd(centers, full_matrices=False)[2][:16]
    low = centers @ basis.T
    exact, near = (-(A.astype(float) ** 2).sum(axis=1) / 2 for A in (centers, low))
    slack = np.sqrt(np.maximum(2 * (near - exact), 0))
    product = kernels.Product([low, basis], FLOAT32)
    mean = np.zeros(centers.shape[1])
    return kernels.Screen(product, centers, mean, near + offset, exact + offset, slack, margin)


def _assign(X: NDArray[np.float32], screen: kernels.Screen) -> kernels.Assignment:
    assignment = kernels.make_assignment(len(X), np.float32)
    screen.assign(X, assignment, exact_scores=False)
    return assignment


def measure() -> tuple[dict[str, float], dict[str, float]]:
    """Multiply-adds per nanosecond, and the constants in multiply-adds of the dense product."""
    rng = np.random.default_rng(0)
    dense, sparse = product_seconds(1, rng), product_seconds(0.05, rng)
    listed = list_seconds(rng)
    settled, settled_entry = settle_seconds(listed, rng)
    row, score, entry = nearest_seconds(rng)
    rates = {
        "comparing rows with all centers": 1e-9 / entry,
        "dense product": 1e-9 / dense,
        "sparse product": 1e-9 / sparse,
    }
    costs = {
        "sparse entry / dense entry": sparse / dense,
        "starting a thread": thread_seconds() / dense,
        "adding an entry to a sum": sum_seconds(rng) / dense,
        "comparing a row": row / entry,
        "comparing a row with a center": score / entry,
        "settling a candidate": settled / dense,
        "settling, per entry of the row": settled_entry / dense,
        "listing a candidate": listed / dense,
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
