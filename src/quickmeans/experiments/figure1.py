"""Figure 1: the time of applying dense and fast D x D operators to 100 vectors."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from quickmeans import SparseProduct
from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.operators import scipy_chain
from quickmeans.experiments.plots import panels, spread_lines
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run
from quickmeans.timing import alternate

LEVELS = (2, 3, 5, 10)
VECTORS = 100
DENSE, FAST, SCIPY = "dense (NumPy)", "sparsity {}", "sparsity {} (SciPy)"
METHODS = [DENSE, *(name.format(k) for name in (FAST, SCIPY) for k in LEVELS)]


def cases(run: Run) -> list[Row]:
    """Return powers of two, with every seed."""
    return run.seeded([{"D": 2**i} for i in range(6, 11 if run.quick else 14)])


def measure(run: Run, D: int, seed: int) -> Iterator[Row]:
    """Measure milliseconds per application of operators of log2(D) factors."""
    rng = np.random.default_rng(seed)
    U, M = rng.standard_normal((D, D), np.float32), rng.standard_normal((D, VECTORS), np.float32)
    calls: dict[str, Callable[[], Any]] = {DENSE: partial(np.matmul, U, M)}
    for k in LEVELS:
        factors = [regular_factor(D, k, rng) for _ in range(int(np.log2(D)))]
        calls[FAST.format(k)] = partial(SparseProduct(factors).__matmul__, M)
        calls[SCIPY.format(k)] = partial(scipy_chain, factors, M)
    for method, seconds in alternate(calls, rounds=6, most=5).items():
        yield {"method": method, "milliseconds": 1e3 * seconds}


def regular_factor(n: int, k: int, rng: np.random.Generator) -> Any:
    """Return the sum of k permutation matrices with random values: mostly k non-zeros per row and column."""
    columns = np.concatenate([rng.permutation(n) for _ in range(k)])
    values = rng.standard_normal(n * k).astype(np.float32) / k**0.5
    return sp.csr_array((values, (np.tile(np.arange(n), k), columns)), shape=(n, n))


def compare(results: Results) -> list[Line]:
    """Return the size from which on the fast operator is faster, and the ratio at the largest size."""
    lines, sizes = [], results.values("D")
    for method in (name.format(k) for k in LEVELS for name in (FAST, SCIPY)):
        gains = {D: results.ratio("milliseconds", DENSE, method, D=D) for D in sizes}
        lost = max((D for D, gain in gains.items() if gain and gain < 1), default=0)
        first = next((str(D) for D in sizes if lost < D), f"above {sizes[-1]}")
        lines += line(f"{method}: D from which on it is faster than dense", "about 1000", first)
        lines += line(f"{method}: times faster at D = {sizes[-1]}", "-", gains[sizes[-1]])
    return lines


def draw(run: Run, results: Results) -> Any:
    """Draw time against D."""
    figure, axes = panels(1, 1, title=EXPERIMENT.title)
    spread_lines(axes[0][0], results, "D", "milliseconds", METHODS)
    axes[0][0].set(yscale="log")
    axes[0][0].legend(fontsize=7)
    return figure


ABOUT = """\
Float32; the methods take turns, and the best of several rounds counts. The paper applies its factors by a chain of
SciPy's CSR products ("SciPy" here); ours are applied by one fused kernel."""
EXPERIMENT = Experiment(
    "Figure 1: time of dense and fast D x D operators on 100 vectors", ABOUT, cases, measure, compare, draw
)
