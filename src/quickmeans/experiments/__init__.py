"""The experiments of the paper on QuicK-means: one file per table or figure, numbered as in its LaTeX source.

"journal" are those of its journal version.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quickmeans.experiments.experiment import Experiment

# name of the module -> subject
EXPERIMENTS = {
    "figure1": "time of dense and fast D x D operators on 100 vectors",
    "table2": "the data sets",
    "figure2": "objective over the iterations and centroids, K = 30",
    "figure3": "time of assignment on Blobs, with the numbers of parameters",
    "figure4": "time of the nearest-neighbour search on Blobs",
    "table3": "accuracy on Blobs: nearest neighbours, SVM on Nyström features",
    "blobs": "settings of Blobs that change the accuracy in Table 3",
    "table4": "accuracy on MNIST and Fashion-MNIST: nearest neighbours, SVM on Nyström features",
    "figure5": "error and time of the Nyström approximation",
    "journal": "the journal version: objective, agreement with classes and size against two baselines",
}


def load_experiment(name: str) -> "Experiment":
    """Return the experiment of that name."""
    experiment: Experiment = import_module(f"quickmeans.experiments.{name}").EXPERIMENT
    return experiment
