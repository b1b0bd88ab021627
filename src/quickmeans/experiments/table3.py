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
`QKNeighbors` with two clusters per query is more accurate than one cluster in the paper. One cluster is less accurate
here than in the paper. For K-means the split explains 0.3 to 0.7 of that: with one test row of every class the accuracy
was .941, .964 and .981 (five seeds; `quickmeans reproduce blobs` measures both splits). More iterations do the same:
.935 after 10, .948 after 20 and .951 after 40 (128 clusters, one seed). Other draws of the centres gave .941 and .923,
starts in different classes .941; a cube of side 24 instead of 20, or a deviation of 10 instead of 12, gives .971. For
QK-means with 128 clusters neither split nor iterations matter: with the paper's sets it was .66, .65 and .66 for three
seeds after 10 iterations and .67, .66 and .67 after 30, .62 with one test row of every class, and .66 for the algorithm
to the letter. What changes it is the number of entries: sparsity 10 gave .69 and sparsity 20 gave .80 (one seed)."""
PAPER = {("blobs", method, K): value for method, row in _ROWS.items() for K, value in row.items()}


def cases(run: Run) -> list[Row]:
    """Return the exact search and every number of clusters."""
    return [{"data": "blobs", "K": EXACT, "seed": 0}, *run.blob_cases()]


EXPERIMENT = Experiment(
    "Table 3: accuracy on Blobs", ABOUT, cases, measure, partial(compare, paper=PAPER), draw, DIFFERS
)
