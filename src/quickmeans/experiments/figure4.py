"""Figure 4: the time of a nearest-neighbour search on Blobs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sklearn.neighbors import NearestNeighbors

from quickmeans.experiments.classification import EXACT
from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.models import OURS, kmeans, qkmeans
from quickmeans.experiments.plots import panels, spread_bars
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run
from quickmeans.experiments.search import searches
from quickmeans.report.cost import n_numbers
from quickmeans.timing import alternate

FAST = ["QK-means, sparsity 2", "QK-means, sparsity 5"]
METHODS = ["K-means", *FAST, "QKNeighbors, one cluster", "QKNeighbors, two clusters"]
TREES = {"Brute force": "brute", "KD tree": "kd_tree", "Ball tree": "ball_tree"}
_TREE_QUERIES = 20


def cases(run: Run) -> list[Row]:
    """Return the exact search and every number of clusters."""
    return [{"data": "blobs", "K": EXACT, "seed": 0}, *run.blob_cases()]


def measure(run: Run, data: str, K: Any, seed: int) -> Iterator[Row]:
    """Measure microseconds per query, with all queries in one batch."""
    if K == EXACT:
        yield from _exact(run, data)
        return
    test = run.split(data).test
    calls: dict[str, Callable[[], Any]] = {
        key: partial(search, test) for key, search in searches(run, data, K, seed, FAST).items()
    }
    models = {method: qkmeans(run, data, K, seed, method) for method in (*FAST, OURS)}
    numbers = {method: n_numbers(model) for method, model in models.items()}
    numbers["K-means"] = kmeans(run, data, K, seed).centers.size
    for method, seconds in alternate(calls, rounds=3, most=6).items():
        yield {"method": method, "numbers": numbers.get(method, numbers[OURS]),
               "microseconds": 1e6 * seconds / len(test)}  # fmt: skip


def _exact(run: Run, data: str) -> Iterator[Row]:
    X, test, *_ = run.split(data)
    for method, algorithm in TREES.items():
        queries = test if algorithm == "brute" else test[:_TREE_QUERIES]
        model = NearestNeighbors(n_neighbors=1, algorithm=algorithm).fit(X)
        seconds = alternate({method: partial(model.kneighbors, queries)}, rounds=1)[method]
        yield {"method": method, "microseconds": 1e6 * seconds / len(queries)}


def compare(results: Results) -> list[Line]:
    """Return the times of exact searches and of searches with a product, relative to dense centroids."""
    lines = []
    for K in (K for K in results.values("K") if K != EXACT):
        plain = results.spread("microseconds", K=K, method="K-means")
        for method in TREES:
            exact = results.spread("microseconds", K=EXACT, method=method)
            ratio = exact.mean / plain.mean if plain and exact else None
            lines += line(f"K = {K}, {method}: time over that of the K-means search", "above 10", ratio)
        for method in METHODS[1:]:
            paper = "faster" if method in FAST else "-"
            gain = results.ratio("microseconds", "K-means", method, K=K)
            lines += line(f"K = {K}, {method}: times faster than K-means", paper, gain)
    return lines


def draw(run: Run, results: Results) -> Any:
    """Draw bars with the numbers of parameters above them."""
    figure, axes = panels(1, 1, title=EXPERIMENT.title)
    figure.set_size_inches(9, 5)
    sizes = [K for K in results.values("K") if K != EXACT]
    spread_bars(axes[0][0], results, "microseconds", METHODS, sizes, numbers="numbers")
    axes[0][0].set(ylabel="microseconds per query")
    return figure


ABOUT = """\
All test rows in one batch. The cluster of a query is found by scikit-learn's `predict` for K-means and by the product
for QK-means; faiss searches the rows of the cluster for both. QKNeighbors searches one or two lists of `QKMeans(K)`."""
DIFFERS = """\
Brute force is scikit-learn's, one matrix product for all queries; it is less far behind than in the paper."""
EXPERIMENT = Experiment(
    "Figure 4: time of the nearest-neighbour search on Blobs", ABOUT, cases, measure, compare, draw, DIFFERS
)
