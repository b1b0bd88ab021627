"""Table 3: accuracy on Blobs."""

from functools import partial
from typing import Any

from quickmeans.experiments.classification import ABOUT, EXACT, compare, draw, measure
from quickmeans.experiments.experiment import Experiment
from quickmeans.experiments.results import Row
from quickmeans.experiments.run import Run

_ROWS: dict[str, dict[Any, Any]] = {
    "1NN Brute force search": {EXACT: "N/A"},
    "1NN KD Tree": {EXACT: "N/A"},
    "1NN Ball Tree": {EXACT: "N/A"},
    "1NN K-means": {128: 0.96, 256: 0.97, 512: 0.99},
    "1NN QK-means": {128: 0.74, 256: 0.66, 512: 0.66},
    "Nyström K-means + SVM": {128: 0.98, 256: 1.0, 512: 1.0},
    "Nyström QK-means + SVM": {128: 0.95, 256: 1.0, 512: 1.0},
}
DIFFERS = """\
`QKNeighbors` with two clusters per query is more accurate than one cluster in the paper. We do not know why one cluster
is less accurate here than in the paper: other draws of Blobs, a start by k-means++ and 30 iterations instead of 10 each
changed the accuracy of k-means with 128 clusters by at most .02; with QK-means it depends on the supports that palm4MSA
converges to (with sparsity 10 and one seed it was .73)."""
PAPER = {("blobs", method, K): value for method, row in _ROWS.items() for K, value in row.items()}


def cases(run: Run) -> list[Row]:
    """Return the exact search and every number of clusters."""
    return [{"data": "blobs", "K": EXACT, "seed": 0}, *run.blob_cases()]


EXPERIMENT = Experiment(
    "Table 3: accuracy on Blobs", ABOUT, cases, measure, partial(compare, paper=PAPER), draw, DIFFERS
)
