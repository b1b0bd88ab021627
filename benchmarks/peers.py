"""Factorizations by pyfaust: each returns the product as a dense matrix, and its number of non-zeros."""

import warnings
from itertools import pairwise

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about optional packages
    from pyfaust import fact
    from pyfaust.factparams import ConstraintInt, ParamsPalm4MSA, StoppingCriterion


def palm4msa(A, n_factors, sparsity_level, n_sweeps):
    """Factor with so many non-zeros per row and column of a factor."""
    K, D = A.shape
    dims = [K, *[min(K, D)] * (n_factors - 1), D]
    constraints = [ConstraintInt("splincol", n, m, sparsity_level) for n, m in pairwise(dims)]
    return _dense(fact.palm4msa(A, ParamsPalm4MSA(constraints, StoppingCriterion(num_its=n_sweeps)), backend=2020))


def hierarchical(A, n_factors, sparsity_level):
    """Factor with the setting for wide matrices, a tall one as its transpose; the residual stays dense."""
    if A.shape[0] > A.shape[1]:
        V, nnz = hierarchical(np.ascontiguousarray(A.T), n_factors, sparsity_level)
        return V.T, nnz
    return _dense(fact.hierarchical(A, ["rectmat", n_factors, sparsity_level, sparsity_level], backend=2020))


def fdb(A, rank):
    """Return four butterfly factors with blocks of the given rank."""
    return _dense(fact.fdb(A, n_factors=4, rank=rank))


def _dense(faust):
    return faust.toarray(), int(faust.nnz_sum())
