"""A comparison of k-means libraries on the user's rows: time, objective, memory, size of the model."""

from quickmeans.comparison.methods import METHODS
from quickmeans.comparison.runner import Comparison, Result, compare

__all__ = ["METHODS", "Comparison", "Result", "compare"]
