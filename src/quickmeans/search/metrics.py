"""The metrics: how rows are prepared, what faiss compares, and which distances users get.

faiss compares squared distances, smallest first, or inner products, largest first. Its radius search leaves out rows
that are exactly at the limit; so a limit is moved outwards by one unit of rounding.
"""

import numpy as np
from numpy.typing import NDArray

from quickmeans.search.rows import unit_rows


class Euclidean:
    r"""The distance :math:`\|x - y\|`; faiss compares its square."""

    similarity = False  # whether faiss compares inner products
    is_distance = True  # whether small values are near

    def prepare(self, rows: NDArray[np.float32], name: str, first: int = 0) -> NDArray[np.float32]:
        """The rows as they are indexed and searched for; `first` is the number of the first, for messages."""
        return rows

    def distances(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What users get, from the values that faiss compares."""
        return np.sqrt(np.maximum(values, 0))

    def limit(self, radius: float) -> float:
        """The value that faiss compares with, for rows within the radius."""
        with np.errstate(over="ignore"):
            return float(np.nextafter(np.float32(radius) ** 2, np.float32(np.inf)))


class InnerProduct:
    r"""The similarity :math:`\langle x, y\rangle`: rows within a radius have at least this product."""

    similarity = True
    is_distance = False

    def prepare(self, rows: NDArray[np.float32], name: str, first: int = 0) -> NDArray[np.float32]:
        return rows

    def distances(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        return values

    def limit(self, radius: float) -> float:
        return float(np.nextafter(np.float32(radius), np.float32(-np.inf)))


class Cosine(InnerProduct):
    r"""The distance :math:`1 - \cos(x, y)`; faiss compares inner products of rows of length one."""

    is_distance = True

    def prepare(self, rows: NDArray[np.float32], name: str, first: int = 0) -> NDArray[np.float32]:
        return unit_rows(rows, name, first)

    def distances(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.maximum(1 - values, 0)

    def limit(self, radius: float) -> float:
        return super().limit(1 - radius)


Metric = Euclidean | InnerProduct

METRICS: dict[str, Metric] = {"euclidean": Euclidean(), "inner_product": InnerProduct(), "cosine": Cosine()}
