"""Table 4: accuracy on MNIST and Fashion-MNIST."""

from functools import partial
from typing import Any

from quickmeans.experiments.classification import ABOUT, EXACT, compare, draw, measure
from quickmeans.experiments.experiment import Experiment
from quickmeans.experiments.results import Row
from quickmeans.experiments.run import Run

_ROWS: dict[str, dict[Any, Any]] = {
    "1NN Brute force search": {EXACT: (0.85, 0.97)},
    "1NN KD Tree": {EXACT: (0.85, 0.97)},
    "1NN Ball Tree": {EXACT: (0.85, 0.97)},
    "1NN K-means": {10: (0.84, 0.96), 16: (0.84, 0.96), 30: (0.84, 0.96)},
    "1NN QK-means": {10: (0.84, 0.96), 16: (0.84, 0.96), 30: (0.84, 0.96)},
    "Nyström K-means + SVM": {10: (0.71, 0.74), 16: (0.75, 0.83), 30: (0.78, 0.88)},
    "Nyström QK-means + SVM": {10: (0.71, 0.74), 16: (0.74, 0.82), 30: (0.77, 0.88)},
}
PAPER = {
    (data, method, K): value
    for method, row in _ROWS.items()
    for K, values in row.items()
    for data, value in zip(("fashion-mnist", "mnist"), values, strict=True)
}


def cases(run: Run) -> list[Row]:
    """Return every image data set with the exact search and every number of clusters."""
    return [{"data": name, "K": EXACT, "seed": 0} for name in run.images()] + run.image_cases()


EXPERIMENT = Experiment(
    "Table 4: accuracy on MNIST and Fashion-MNIST", ABOUT, cases, measure, partial(compare, paper=PAPER), draw
)
