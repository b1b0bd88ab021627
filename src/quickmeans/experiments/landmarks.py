"""Nyström models with the landmarks that the experiments compare."""

from typing import Any

import quickmeans
from quickmeans.experiments.models import kmeans, model_path, qkmeans
from quickmeans.experiments.run import Run
from quickmeans.kernel_approximation import QKNystroem


def nystroem(run: Run, data: str, K: int, seed: int, method: str) -> QKNystroem:
    """Return a model whose landmarks are rows ("uniform"), K-means centroids or QKMeans centroids; a file keeps it."""
    path = model_path(run, data, K, f"Nystroem, {method}", seed).with_suffix(".safetensors")
    if not path.exists():
        _fitted(run, data, K, seed, method).save(path)
    model = quickmeans.load(path)
    assert isinstance(model, QKNystroem)
    return model


def _fitted(run: Run, data: str, K: int, seed: int, method: str) -> QKNystroem:
    landmarks: Any = method
    if method == "K-means":
        landmarks = kmeans(run, data, K, seed).centers
    elif method != "uniform":
        landmarks = qkmeans(run, data, K, seed, method)
    model = QKNystroem(gamma="mean-distance", n_components=K, landmarks=landmarks, random_state=seed)
    return model.fit(run.split(data).X)
