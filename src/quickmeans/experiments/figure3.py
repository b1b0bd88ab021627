"""Figure 3: the time to assign all rows of Blobs to centroids, and the number of parameters of the centroids."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.models import OURS, kmeans, qkmeans
from quickmeans.experiments.operators import csr_factors, nearest, scipy_chain
from quickmeans.experiments.peers import predictor
from quickmeans.experiments.plots import panels, spread_bars
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run
from quickmeans.report.cost import n_numbers
from quickmeans.timing import alternate

LEVELS = (2, 5)
DENSE, DENSE_NUMPY, FAST, FAST_SCIPY = (
    "K-means (scikit-learn)",
    "K-means (NumPy)",
    "QK-means, sparsity {}",
    "QK-means, sparsity {} (SciPy)",
)
METHODS = [DENSE, DENSE_NUMPY, *(name.format(k) for k in LEVELS for name in (FAST_SCIPY, FAST)), OURS]


def measure(run: Run, data: str, K: int, seed: int) -> Iterator[Row]:
    """Measure the milliseconds of one assignment of all rows; the models take turns."""
    calls, numbers = _assignments(run, data, K, seed)
    seconds = alternate(calls, rounds=3, most=6)
    for method in METHODS:
        yield {"method": method, "numbers": numbers[method], "milliseconds": 1e3 * seconds[method]}


def _assignments(run: Run, data: str, K: int, seed: int) -> tuple[dict[str, Callable[[], Any]], dict[str, int]]:
    X, U = run.split(data).X, kmeans(run, data, K, seed).centers
    calls: dict[str, Callable[[], Any]] = {
        DENSE: partial(predictor(U).predict, X),
        DENSE_NUMPY: lambda: nearest(U @ X.T, U),
    }
    numbers = {DENSE: U.size, DENSE_NUMPY: U.size}
    for k in LEVELS:
        model = qkmeans(run, data, K, seed, FAST.format(k))
        calls[FAST.format(k)] = partial(model.predict, X)
        calls[FAST_SCIPY.format(k)] = partial(_by_scipy, csr_factors(model), model.cluster_centers_, X)
        numbers[FAST.format(k)] = numbers[FAST_SCIPY.format(k)] = n_numbers(model)
    ours = qkmeans(run, data, K, seed, OURS)
    calls[OURS], numbers[OURS] = partial(ours.predict, X), n_numbers(ours)
    return calls, numbers


def _by_scipy(factors: list[Any], centers: NDArray[Any], X: NDArray[Any]) -> NDArray[np.int64]:
    return nearest(scipy_chain(factors, X.T), centers)


def compare(results: Results) -> list[Line]:
    """Return how many times faster than k-means QK-means is, in the same kind of implementation."""
    lines = []
    for K in results.values("K"):
        paper = "faster" if K >= 256 else "not faster"
        for fast, dense in ((FAST_SCIPY, DENSE_NUMPY), (FAST, DENSE)):
            method = fast.format(5)
            gain = results.ratio("milliseconds", dense, method, K=K)
            lines += line(f"K = {K}, {method}: times faster than {dense}", paper, gain)
    return lines


def draw(run: Run, results: Results) -> Any:
    """Draw bars with the numbers of parameters above them."""
    figure, axes = panels(1, 1, title=TITLE)
    figure.set_size_inches(9, 5)
    spread_bars(axes[0][0], results, "milliseconds", METHODS, results.values("K"), numbers="numbers")
    return figure


ABOUT = """\
All rows in one batch, float32. The paper compares NumPy with a chain of SciPy's CSR products; we add the fused kernel
and scikit-learn's `predict`. The centres of Blobs are drawn at random and cannot be compressed, so the default model
keeps dense centroids."""
TITLE = "Figure 3: time of assignment on Blobs, with the numbers of parameters"
EXPERIMENT = Experiment(TITLE, ABOUT, Run.blob_cases, measure, compare, draw)
