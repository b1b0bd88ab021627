"""A start for many clusters: groups of rows, then clusters inside each group."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quickmeans import kernels
from quickmeans.kmeans.dense import DenseRows
from quickmeans.threads import run_in_threads

_GROUP_ROWS = 64  # the groups are found in so many rows per group

# Finds so many centroids among some rows.
Cluster = Callable[[DenseRows, int, np.random.Generator], NDArray[np.float64]]


def by_levels(rows: DenseRows, n_clusters: int, rng: np.random.Generator, cluster: Cluster) -> NDArray[np.float64]:
    """Centroids of about sqrt(K) groups of the rows, each with a share of the centroids in proportion to its weight.

    The cost is that of sqrt(K) centroids, twice, and not of K.
    """
    n_groups = int(np.ceil(np.sqrt(n_clusters)))
    groups = cluster(rows.sample(_GROUP_ROWS * n_groups, rng), n_groups, rng)
    search = rows.search(groups, kernels.Search)
    search.iterate(1)
    order, begins = kernels.group_by_label(search.labels(), n_groups)
    shares = quotas(search.cluster_weights(), np.diff(begins), n_clusters)
    ends = np.cumsum(shares)
    centers, seeds = np.empty((n_clusters, rows.n_columns)), rng.spawn(n_groups)

    def fill(g: int) -> None:
        members = replace(rows.take(order[begins[g] : begins[g + 1]]), n_threads=1)
        centers[ends[g] - shares[g] : ends[g]] = cluster(members, int(shares[g]), seeds[g])

    run_in_threads(lambda: fill, np.flatnonzero(shares).tolist(), rows.n_threads)
    return centers


def quotas(weights: NDArray[np.float64], sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Whole numbers in proportion to the weights that add up to the total, none above its size.

    Of the largest remainders, the first get one more. If the sizes do not suffice, the first groups get more than that.
    """
    shares = np.zeros(len(weights), np.int64)
    while (left := total - int(shares.sum())) > 0:
        open_ = shares < sizes
        if not open_.any():
            shares[0] += left
            break
        wanted = np.where(open_, weights, 0)
        wanted = wanted if wanted.sum() > 0 else open_.astype(np.float64)
        exact = left * wanted / wanted.sum()
        whole = np.floor(exact).astype(np.int64)
        extra = np.argsort(-(exact - whole), kind="stable")[: left - int(whole.sum())]
        whole[extra] += 1
        shares = np.minimum(shares + whole, np.where(open_, sizes, shares))
    return shares
