"""Patches of the two photographs that come with scikit-learn."""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_images
from sklearn.feature_extraction.image import extract_patches_2d


def patches(shape: tuple[int, int] = (32, 32), n_patches: int = 20_000, *, colour: bool = False) -> NDArray[np.float32]:
    """Return patches of this height and width as rows in random order."""
    try:
        photographs = load_sample_images().images
    except ImportError:
        raise ImportError("The sample photographs need Pillow: pip install 'quickmeans[plots]'.") from None
    images = [image.astype(np.float32) if colour else image.mean(axis=2, dtype=np.float32) for image in photographs]
    rows = [extract_patches_2d(image, shape, max_patches=n_patches // 2, random_state=0) for image in images]
    X: NDArray[np.float32] = np.concatenate(rows).reshape(n_patches, -1)
    return np.ascontiguousarray(np.random.default_rng(0).permutation(X))
