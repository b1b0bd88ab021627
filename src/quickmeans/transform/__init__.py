"""The fast transform: matrices that are products of sparse factors."""

from quickmeans.transform.fixed import dct, haar, hadamard
from quickmeans.transform.product import SparseProduct

__all__ = ["SparseProduct", "dct", "haar", "hadamard"]
