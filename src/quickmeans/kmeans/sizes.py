"""Bounds on the sizes of clusters: what users give, and what it means for the rows at hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.checks import LARGEST_WHOLE, check_whole, is_number

_ROUNDING = 1e-9  # of a size


@dataclass(frozen=True)
class Sizes:
    """The least and the most weight of the rows of a cluster; whole numbers if rows have no weights."""

    least: float
    most: float


@dataclass(frozen=True)
class SizeBounds:
    """The bounds as users give them: weights as whole numbers, or factors of the mean size as fractions, or None."""

    least: float | None
    most: float | None

    @classmethod
    def of(cls, least: Any, most: Any) -> "SizeBounds | None":
        """The bounds, or None if there are none; a ValueError names a wrong one."""
        if least is None and most is None:
            return None
        _check("min_cluster_size", least, "from 0 to 1")
        _check("max_cluster_size", most, "not below 1")
        if _is_factor(least) and not 0 <= least <= 1:
            raise ValueError(_WRONG.format("min_cluster_size", "from 0 to 1", least))
        if _is_factor(most) and not most >= 1:
            raise ValueError(_WRONG.format("max_cluster_size", "not below 1", most))
        return cls(least, most)

    def of_rows(self, total: float, n_clusters: int, weights: NDArray[np.float64] | None) -> Sizes:
        """The sizes for rows of this total weight; a ValueError says which bounds would hold."""
        mean, weighted = total / n_clusters, weights is not None
        least = 0.0 if self.least is None else self.least * mean if _is_factor(self.least) else float(self.least)
        most = total if self.most is None else self.most * mean if _is_factor(self.most) else float(self.most)
        if not weighted:  # whole rows: a factor always leaves room for the mean, rounded
            least = min(np.ceil(least - _ROUNDING), np.floor(mean)) if _is_factor(self.least) else least
            most = max(np.floor(most + _ROUNDING), np.ceil(mean)) if _is_factor(self.most) else most
        rows = "weight" if weighted else "rows"
        if most * n_clusters < total * (1 - _ROUNDING):
            raise ValueError(
                f"max_cluster_size={self.most} leaves room for {most * n_clusters:.15g} of {total:.15g} {rows} in "
                f"{n_clusters} clusters; {int(np.ceil(mean - _ROUNDING))} or more would do."
            )
        if least * n_clusters > total * (1 + _ROUNDING):
            raise ValueError(
                f"min_cluster_size={self.least} needs {least * n_clusters:.15g} {rows} for {n_clusters} clusters, and "
                f"there are {total:.15g}; {int(np.floor(mean + _ROUNDING))} or less would do."
            )
        if weights is not None and weights.max() > most * (1 + _ROUNDING):
            raise ValueError(
                f"max_cluster_size={self.most} allows clusters of weight {most:.15g}, but row {int(weights.argmax())} "
                f"alone has {weights.max():.15g}; that or more would do."
            )
        if least > most:
            raise ValueError(f"min_cluster_size={self.least} must not exceed max_cluster_size={self.most}.")
        return Sizes(float(least), float(min(most, total)))


_WRONG = (
    "{} must be None, a whole number of rows (or of their weight), or, as a float, a factor of the mean size {}, got "
    "{!r}."
)


def _is_factor(value: Any) -> bool:
    return isinstance(value, float | np.floating)


def _check(name: str, value: Any, limits: str) -> None:
    if value is None or (_is_factor(value) and np.isfinite(value)):
        return
    if not is_number(value) or _is_factor(value):
        raise ValueError(_WRONG.format(name, limits, value))
    check_whole(name, value, 1, f", or a factor of the mean size {limits} as a float", most=LARGEST_WHOLE)
