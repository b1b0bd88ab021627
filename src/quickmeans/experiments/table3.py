"""Table 3: accuracy on Blobs."""

from functools import partial
from typing import Any

from quickmeans.experiments.classification import ABOUT, EXACT, against, draw, measure
from quickmeans.experiments.frame import Experiment, Run
from quickmeans.experiments.results import Row

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
Two clusters searched by `QKNeighbors` find more than one cluster does in the paper. Why one finds less here than there
we do not know: other draws of Blobs, a start by k-means++ and 30 iterations instead of 10 each moved the accuracy of
k-means with 128 clusters by some .02 at the most; with QK-means it depends on which supports palm4MSA settles for (with
sparsity 10 and one seed it was .73)."""
PAPER = {("blobs", method, K): value for method, row in _ROWS.items() for K, value in row.items()}


def cases(run: Run) -> list[Row]:
    """Every number of clusters, and the exact search."""
    return [{"data": "blobs", "K": EXACT, "seed": 0}, *run.blob_cases()]


EXPERIMENT = Experiment(
    title="Table 3: accuracy on Blobs",
    about=ABOUT,
    differs=DIFFERS,
    cases=cases,
    measure=measure,
    compare=partial(against, paper=PAPER),
    draw=draw,
)
