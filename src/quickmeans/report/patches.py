"""Rows that are always at hand: patches of the two photographs that scikit-learn carries."""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_images
from sklearn.feature_extraction.image import extract_patches_2d

N_PATCHES = 20_000


def patches(side: int = 32, *, colour: bool = False) -> NDArray[np.float32]:
    """Patches of the photographs, so many pixels wide and high, as rows in random order."""
    try:
        photographs = load_sample_images().images
    except ImportError:
        raise ImportError("The sample photographs need Pillow: pip install 'quickmeans[plots]'.") from None
    images = [image.astype(np.float32) if colour else image.mean(axis=2, dtype=np.float32) for image in photographs]
    rows = [extract_patches_2d(image, (side, side), max_patches=N_PATCHES // 2, random_state=0) for image in images]
    X: NDArray[np.float32] = np.concatenate(rows).reshape(N_PATCHES, -1)
    return np.ascontiguousarray(np.random.default_rng(0).permutation(X))
