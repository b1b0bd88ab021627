"""The data of the experiments: MNIST and Fashion-MNIST from files, Blobs and digits from scikit-learn."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs

from quickmeans.data.idx import read_idx

IMAGES = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion-mnist": "https://github.com/zalandoresearch/fashion-mnist (folder data/fashion)",
}
_FILES = ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
          "t10k-labels-idx1-ubyte.gz")  # fmt: skip
_SMALL: dict[str, Any] = {"digits": (load_digits, 1500), "breast-cancer": (load_breast_cancer, 469)}  # training rows
_QUICK = (6000, 1000)  # training and test images of a quick run


class Split(NamedTuple):
    """Training rows, test rows, and the classes of both."""

    X: NDArray[np.float32]
    test: NDArray[np.float32]
    y: NDArray[Any]
    test_y: NDArray[Any]


def directory(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the directory of the data: the given one, or that of QUICKMEANS_DATA, or None."""
    path = given or os.environ.get("QUICKMEANS_DATA")
    return Path(path) if path else None


def missing(name: str, folder: Path | None) -> str | None:
    """Return which files of a data set are missing, where they are published and where to put them; or None."""
    if name not in IMAGES:
        return None
    absent = [file for file in _FILES if folder is None or not (folder / name / file).exists()]
    if not absent:
        return None
    place = "a directory named by --data or QUICKMEANS_DATA" if folder is None else str(folder)
    return f"{name} needs {', '.join(absent)} from {IMAGES[name]} in the folder {name} of {place}."


def load(name: str, folder: Path | None, *, quick: bool = False) -> Split:
    """Return a data set; a quick run gets a part of it."""
    if name == "blobs":
        return blobs(5800, 200, 500, 200) if quick else blobs()
    if name in _SMALL:
        make, rows = _SMALL[name]
        X, y = make(return_X_y=True)
        return _split(X, y, rows)
    if folder is None or missing(name, folder):
        raise FileNotFoundError(missing(name, folder))
    split = images(folder / name)
    if quick:
        rows, tests = _QUICK
        return Split(split.X[:rows], split.test[:tests], split.y[:rows], split.test_y[:tests])
    return split


def images(folder: Path) -> Split:
    """Return MNIST or Fashion-MNIST with images as rows."""
    X, test, y, test_y = (read_idx(str(folder / file)) for file in _FILES)
    return Split(X.reshape(len(X), -1).astype(np.float32), test.reshape(len(test), -1).astype(np.float32), y, test_y)


def blobs(rows: int = 29000, tests: int = 1000, features: int = 2000, classes: int = 1000) -> Split:
    """Return the paper's Blobs: Gaussian clusters of deviation 12 around centres drawn from a cube of side 20."""
    X, y = make_blobs(rows + tests, features, centers=classes, cluster_std=12, random_state=0)
    return _split(X, y, rows)


def _split(X: NDArray[Any], y: NDArray[Any], rows: int) -> Split:
    X = X.astype(np.float32)
    return Split(X[:rows], X[rows:], y[:rows], y[rows:])
