r"""The constraint sets of the paper's experiments, as a preset: ``n_factors="paper"`` or ``n_factors="journal"``.

For a K x D matrix there are :math:`Q = \lfloor \log_2 \min(K, D) \rfloor` factors in the paper, and
:math:`Q = \lfloor \log_2 \max(K, D) \rfloor` in its journal version. The factor with the larger side of the matrix,
:math:`B = \max(K, D)`, has a budget of :math:`\max(s B, K D / 2^{Q-1})` entries for the sparsity level s, shared
equally by its rows and again by its columns. All other factors keep s entries per row and column. The residual of level
l of the hierarchical algorithm has the budget :math:`\max(s B, K D / 2^l)`, so that the last residual is the large
factor.
"""

import math
from typing import Any

from quickmeans.checks import check_whole
from quickmeans.transform.factors import MOST_FACTORS
from quickmeans.transform.projections import Projection, TopByShare, TopPerRowAndColumn

PRESETS = {"paper": min, "journal": max}
_SMALLEST = 4  # side: with less there is one factor only, and nothing to choose


def is_preset(n_factors: Any) -> bool:
    """Whether this is the name of a preset."""
    return isinstance(n_factors, str) and n_factors in PRESETS


def check_n_factors(n_factors: Any, shape: tuple[int, ...]) -> int:
    """Return the number of factors of a K x D matrix, for a whole number, "auto" or the name of a preset."""
    if is_preset(n_factors):
        if min(shape) < _SMALLEST:
            raise ValueError(
                f"n_factors={n_factors!r} is for matrices with at least {_SMALLEST} rows and columns, got {shape}; "
                "give a whole number or 'auto'."
            )
        return min(math.floor(math.log2(PRESETS[n_factors](shape))), MOST_FACTORS)
    if isinstance(n_factors, str) and n_factors == "auto":
        return max(2, round(math.log2(min(shape))))
    return check_whole("n_factors", n_factors, 1, ", 'auto', 'paper' or 'journal'", most=MOST_FACTORS)


def share(shape: tuple[int, ...], sparsity_level: int, n_halvings: int) -> TopByShare:
    """Return the set of the factor with the larger side of the matrix."""
    return TopByShare(max(sparsity_level * max(shape), math.prod(shape) >> n_halvings))


def preset_sets(shape: tuple[int, ...], sparsity_level: int, n_factors: int) -> list[Projection]:
    """Return the sets of all factors."""
    others: list[Projection] = [TopPerRowAndColumn(sparsity_level)] * (n_factors - 1)
    large = share(shape, sparsity_level, n_factors - 1)
    return [*others, large] if shape[0] <= shape[1] else [large, *others]
