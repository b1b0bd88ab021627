"""The data of the benchmarks: files in the directory QUICKMEANS_DATA, Blobs, made-up activations, photographs."""

import os
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from quickmeans.experiments import data
from quickmeans.report.patches import patches


def directory() -> Path:
    """Return the directory of the files."""
    path = Path(os.environ.get("QUICKMEANS_DATA", ""))
    if not os.environ.get("QUICKMEANS_DATA") or not path.is_dir():
        raise SystemExit(
            "Set QUICKMEANS_DATA to a directory with mnist/ and fashion-mnist/ (the original IDX files, gzipped) and "
            "word-vectors/vectors.npy (any matrix of word vectors)."
        )
    return path


def images(name: str) -> np.ndarray:
    """Return the training images of MNIST or Fashion-MNIST as rows."""
    return data.images(directory() / name).X


def blobs() -> np.ndarray:
    """Return the paper's Blobs, without test rows."""
    return make_blobs(29000, 2000, centers=1000, cluster_std=12, random_state=0)[0].astype(np.float32)


def noisy_mixture(n_rows: int, n_columns: int) -> np.ndarray:
    """Return rows around centres in a subspace of D / 16 dimensions, with noise in all dimensions."""
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((n_columns // 16, n_columns)).astype(np.float32)
    X = rng.standard_normal((2000, n_columns // 16)).astype(np.float32)[rng.integers(2000, size=n_rows)] @ basis
    X += rng.standard_normal(X.shape, np.float32)
    return X


def convnet(n_rows: int = 21000, n_columns: int = 1280) -> np.ndarray:
    """Return rows like activations of a network for images: not negative, mostly zero, with long tails.

    Classes in 24 dimensions go through two layers with ReLU; the last layer has noise, thresholds and scales.
    """
    rng = np.random.default_rng(0)
    H = 1.2 * rng.standard_normal((100, 24))[rng.integers(100, size=n_rows)] + rng.standard_normal((n_rows, 24))
    for width in (256, 512):
        weights = rng.standard_normal((H.shape[1], width)) / np.sqrt(H.shape[1])
        H = np.maximum(H @ weights + 0.3 * rng.standard_normal(width), 0)
    A = H @ rng.standard_normal((H.shape[1], n_columns))
    A = (A - A.mean(axis=0)) / A.std(axis=0) + 0.35 * rng.standard_normal(A.shape)
    A = np.maximum(A - rng.uniform(-0.2, 1.2, n_columns), 0) ** 1.5
    return (A * np.exp(0.8 * rng.standard_normal(n_columns))).astype(np.float32)


def rows(name: str) -> np.ndarray:
    """Return a data set by its name."""
    if name == "blobs":
        return blobs()
    if name == "convnet":
        return convnet()
    if name == "patches":
        return patches()
    if name == "words":
        return np.load(directory() / "word-vectors" / "vectors.npy").astype(np.float32)
    return images(name)


def centroids(X: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return centroids of the centred rows after ten iterations from random rows, cluster sizes, and the objective."""
    model = KMeans(K, init="random", n_init=1, max_iter=10, random_state=0).fit(X - X.mean(axis=0))
    return model.cluster_centers_, np.bincount(model.labels_, minlength=K), float(model.inertia_)


def near_vectors(n_rows: int) -> np.ndarray:
    """Return rows like the word vectors, as many as wanted: each is moved along the difference of two near ones.

    A row and the two that give the difference are in one cluster of 512, so that the spectrum around a row stays.
    """
    X, rng = rows("words"), np.random.default_rng(0)
    labels = KMeans(512, init="random", n_init=1, max_iter=5, random_state=0).fit(X).labels_
    members = np.argsort(labels, kind="stable")
    size = np.bincount(labels, minlength=512)
    begin = np.cumsum(size) - size
    made = np.empty((n_rows, X.shape[1]), np.float32)
    for part in np.array_split(np.arange(n_rows), -(-n_rows // 40000)):
        cluster = labels[rng.integers(len(X), size=len(part))]
        base, head, foot = (members[begin[cluster] + rng.integers(size[cluster])] for _ in range(3))
        made[part] = X[base] + rng.uniform(0, 0.7, (len(part), 1)) * (X[head] - X[foot])
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def split(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return training rows, test rows and their labels; word vectors and convnet have no labels."""
    if name == "blobs":
        return data.blobs()
    if name == "resampled":
        X = near_vectors(410000)
        return X[10000:], X[:10000], None, None
    if name in ("words", "convnet"):
        X = rows(name)
        chosen = np.random.default_rng(0).permutation(len(X))
        return X[chosen[2000:]], X[chosen[:2000]], None, None
    return data.images(directory() / name)
