"""The one door to the native module.

Every array gets the layout, the type and the byte order that native code reads, and is copied only if it has another.
Results come in fresh arrays, except where a docstring says that an argument is changed. Native code checks sizes and
indices itself: arrays that do not fit are a ValueError.
"""

from quickmeans import _native
from quickmeans.kernels.arrays import readable
from quickmeans.kernels.balance import Balanced, CandidateLists, balance
from quickmeans.kernels.csr import CsrCenters, CsrClusters, CsrRows
from quickmeans.kernels.distances import Distances, squared_differences
from quickmeans.kernels.groups import Groups
from quickmeans.kernels.near import NearCenters
from quickmeans.kernels.palm import FactorSet, Palm, PalmOptions
from quickmeans.kernels.product import Product
from quickmeans.kernels.scan import Coarse, RowLists
from quickmeans.kernels.screen import Assignment, Screen, bind_assignment, make_assignment
from quickmeans.kernels.search import Clusters, LocalSearch, Search
from quickmeans.kernels.selection import mark_largest, match_largest
from quickmeans.kernels.solvers import fit_supports, masked_product
from quickmeans.kernels.sums import add_members, center_rows, group_by_label, moments, seed

__all__ = [
    "Assignment",
    "Balanced",
    "CandidateLists",
    "Clusters",
    "Coarse",
    "CsrCenters",
    "CsrClusters",
    "CsrRows",
    "Distances",
    "FactorSet",
    "Groups",
    "LocalSearch",
    "NearCenters",
    "Palm",
    "PalmOptions",
    "Product",
    "RowLists",
    "Screen",
    "Search",
    "add_members",
    "balance",
    "bind_assignment",
    "center_rows",
    "fit_supports",
    "group_by_label",
    "instruction_sets",
    "make_assignment",
    "mark_largest",
    "masked_product",
    "match_largest",
    "moments",
    "readable",
    "seed",
    "squared_differences",
]


def instruction_sets() -> list[str]:
    """The instruction sets that this build has and this machine can run, best first."""
    return _native.instruction_sets()
