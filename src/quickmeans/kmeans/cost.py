"""What an assignment costs per row, in multiply-adds of a dense product.

The constants were fitted to timings of the kernel on one core with AVX2. `python -m benchmarks.cost_model` measures
them again: 950, 6 and 1000. About three candidates are listed for each one settled, and then both give the same cost.
"""

from quickmeans.kmeans.assignment import Assignment
from quickmeans.kmeans.screen import Screen

_SETTLE = 3000.0  # an exact score: the row of its centroid is seldom in the cache
_SETTLE_ENTRY = 8.0  # each entry of that row
_LIST = 300.0  # putting a candidate on the list


def cost_per_row(screen: Screen, assignment: Assignment) -> float:
    """The multiply-adds of the screen, and the worth of listing and settling the candidates that it let through."""
    settle, listed = _SETTLE + _SETTLE_ENTRY * screen.centers.shape[1], _LIST * assignment.n_listed
    compared = 0 if screen.groups is None else screen.n_coordinates * assignment.n_compared
    return float(screen.macs + (settle * assignment.n_settled + listed + compared) / len(assignment.labels))
