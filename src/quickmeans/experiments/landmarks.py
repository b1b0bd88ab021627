"""Kernel features from the landmarks that the experiments compare."""

from typing import Any

from quickmeans.experiments.frame import Run
from quickmeans.experiments.models import kmeans, qkmeans
from quickmeans.kernel_approximation import QKNystroem


def nystroem(run: Run, data: str, K: int, seed: int, method: str) -> QKNystroem:
    """Fitted: on rows ("uniform"), on the centroids of "K-means", or on those of a QKMeans."""
    landmarks: Any = method
    if method == "K-means":
        landmarks = kmeans(run, data, K, seed).centers
    elif method != "uniform":
        landmarks = qkmeans(run, data, K, seed, method)
    model = QKNystroem(gamma="mean-distance", n_components=K, landmarks=landmarks, random_state=seed)
    return model.fit(run.split(data).X)
