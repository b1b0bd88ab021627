"""What a start may use, and what it gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.dense import DenseSearch
from quickmeans.kmeans.settings import Settings


class Start(NamedTuple):
    """Where iterations begin.

    Attributes
    ----------
    centers : array of shape (n_clusters, n_features)
        Centered centroids.
    counts : array of shape (n_clusters,) or None
        The weight of each, if they are means of sampled rows.
    search : DenseSearch or None
        The search that found them, if it was among all rows.
    objective : float
        That of the rows that the search looked at; zero without a search.
    history : list of float
        The objective of all rows after every move of the search.
    ended : bool
        Whether no iterations are wanted after the search.
    interrupted : bool
        Whether that is so because of Ctrl-C.
    """

    centers: NDArray[np.float64]
    counts: NDArray[np.float64] | None = None
    search: DenseSearch[kernels.Search] | None = None
    objective: float = 0.0
    history: Sequence[float] = ()
    ended: bool = False
    interrupted: bool = False


@dataclass(frozen=True)
class Context:
    """What a start may use beside the points: settings, a seed, and ways to report.

    `observe` gets every move of a search among all rows and the objective after it; a true result ends the run.
    """

    settings: Settings
    seed: int
    say: Callable[[str], None]
    observe: Callable[[str, float], bool]

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random numbers of the start; a start from given centroids needs none."""
        return start_generator(self.seed)

    def unobserved(self) -> "Context":
        """The same, with the same random numbers, but nobody looks on."""
        other = replace(self, observe=lambda move, objective: False)
        other.__dict__["rng"] = self.rng
        return other


def start_generator(seed: int) -> np.random.Generator:
    """The random numbers of a run for its start."""
    return np.random.default_rng((seed, 0))
