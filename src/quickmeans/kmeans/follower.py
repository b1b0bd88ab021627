"""A product that follows means that move."""

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.algorithm1 import Factor
from quickmeans.kmeans.points import Frame
from quickmeans.kmeans.screen import ProductRows


class ProductFollower:
    """Learns the factors anew whenever it is asked, from where they were the last time."""

    patience = 64.0  # rows per centroid that may pass before the next time

    def __init__(self, factor: Factor, frame: Frame, last: ProductRows | None) -> None:
        self.factor, self.frame, self.last = factor, frame, last

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64]) -> ProductRows:
        """A product near these means, each of which stands for so much weight."""
        previous = None if self.last is None else self.last.product
        self.last = ProductRows(self.factor(centers, np.maximum(counts, 1.0), previous), self.frame)
        return self.last

    def look_again(self) -> None:
        """There is nothing to choose."""
