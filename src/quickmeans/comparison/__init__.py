"""A comparison of k-means libraries on the same rows: time, objective, memory, size of the model."""

from quickmeans.comparison.methods import METHODS
from quickmeans.comparison.runner import Result, compare

__all__ = ["METHODS", "Result", "compare"]
