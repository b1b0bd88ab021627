"""The models that the experiments share: fitted once for every data set, K and seed, and kept in files.

All methods start from the same rows. They stop when the objective falls by less than a millionth, or after 10
iterations on Blobs and 20 on images, as in the paper.
"""

import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

import quickmeans
from quickmeans import QKMeans
from quickmeans.experiments.run import Run
from quickmeans.report.cost import n_numbers

TOLERANCE = 1e-6
PAPER, OURS = "QK-means, sparsity 5", "QKMeans, default"
EQUAL_SIZE = "als, as many numbers as sparsity {}"
_SOLVERS = {"QK-means": "palm4msa", "hierarchical QK-means": "hierarchical"}


class Means(NamedTuple):
    """The result of plain k-means."""

    centers: NDArray[np.float32]
    labels: NDArray[np.int64]
    history: NDArray[np.float64]


class StopWhenSettled:
    """A callback that stops when the objective falls by less than the tolerance."""

    def __init__(self) -> None:
        self.last = np.inf

    def __call__(self, iteration: int, objective: float) -> bool:
        """Return whether to stop."""
        done = abs(self.last - objective) <= TOLERANCE * objective
        self.last = objective
        return done


def n_iterations(data: str) -> int:
    """Return the largest number of iterations."""
    return 10 if data == "blobs" else 20


def start(X: NDArray[Any], K: int, seed: int) -> NDArray[Any]:
    """Return K rows drawn at random."""
    return X[np.random.default_rng(seed).choice(len(X), K, replace=False)]


def kmeans(run: Run, data: str, K: int, seed: int) -> Means:
    """Return plain k-means from the common start."""
    path = model_path(run, data, K, "K-means", seed).with_suffix(".npz")
    if not path.exists():
        X = run.split(data).X
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, **lloyd(X, start(X, K, seed), n_iterations(data))._asdict())
        unfinished.replace(path)
    with np.load(path) as file:
        return Means(file["centers"], file["labels"], file["history"])


def lloyd(X: NDArray[Any], centers: NDArray[Any], max_iter: int) -> Means:
    """Run Lloyd's algorithm with scikit-learn's distances; the history is the objective after every update."""
    rows = X.astype(np.float64)
    scatter, history, stop = float(np.vdot(rows, rows)), [], StopWhenSettled()
    for i in range(max_iter):
        labels = pairwise_distances_argmin(X, centers)
        members = sp.csr_array((np.ones(len(X)), (labels, np.arange(len(X)))), shape=(len(centers), len(X)))
        sizes = np.bincount(labels, minlength=len(centers))
        means = (members @ rows) / np.maximum(sizes, 1)[:, None]
        centers = np.where(sizes[:, None] > 0, means, centers).astype(X.dtype)
        history.append(scatter - float(sizes @ (means**2).sum(axis=1)))
        if stop(i, history[-1]):
            break
    return Means(centers, pairwise_distances_argmin(X, centers), np.array(history))


def qkmeans(run: Run, data: str, K: int, seed: int, method: str) -> QKMeans:
    """Return QKMeans with a solver of the paper ("QK-means, sparsity 5") or ours, from the common start."""
    path = model_path(run, data, K, method, seed).with_suffix(".safetensors")
    if not path.exists():
        X = run.split(data).X
        model = QKMeans(K, init=start(X, K, seed), max_iter=n_iterations(data), tol=0, callback=StopWhenSettled(),
                        random_state=seed, **_options(run, data, K, seed, method))  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # very sparse models may have empty clusters
            model.fit(X).save(path, labels=True)
    model = quickmeans.load(path)
    assert isinstance(model, QKMeans)
    return model


def _options(run: Run, data: str, K: int, seed: int, method: str) -> dict[str, Any]:
    if method == OURS:
        return {}
    solver, level = re.split(", .*sparsity ", method)
    if solver == "als":
        paper = qkmeans(run, data, K, seed, f"QK-means, sparsity {level}")
        return {"shortlist": 0, "compression": paper.cluster_centers_.size / n_numbers(paper)}
    return {"solver": _SOLVERS[solver], "n_factors": "paper", "sparsity_level": int(level), "shortlist": 0}


def model_path(run: Run, data: str, K: int, method: str, seed: int) -> Path:
    """Return the path of a fitted model without its ending."""
    folder = run.directory / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{data}-{K}-{re.sub('[^a-z0-9]+', '-', method.lower())}-{seed}"
