"""The fast transform: matrices that are products of sparse factors, fixed or learned."""

from quickmeans.transform.als import sparse_als
from quickmeans.transform.factorization import Factorization
from quickmeans.transform.factorize import factorize
from quickmeans.transform.fixed import dct, haar, hadamard
from quickmeans.transform.hierarchical import hierarchical_palm4msa
from quickmeans.transform.palm import palm4msa
from quickmeans.transform.product import SparseProduct
from quickmeans.transform.solvers import SolverSettings

__all__ = [
    "Factorization",
    "SolverSettings",
    "SparseProduct",
    "dct",
    "factorize",
    "haar",
    "hadamard",
    "hierarchical_palm4msa",
    "palm4msa",
    "sparse_als",
]
