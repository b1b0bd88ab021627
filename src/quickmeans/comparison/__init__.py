"""K-means libraries side by side on the same rows: time, objective, memory, size."""

from quickmeans.comparison.contest import Result, compare
from quickmeans.comparison.methods import METHODS

__all__ = ["METHODS", "Result", "compare"]
