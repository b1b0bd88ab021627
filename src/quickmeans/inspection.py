"""What users ask of fitted clusters beside labels: nearest centroids, examples, a summary."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quickmeans.checks import check_whole
from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.kmeans.inspection import BorderSums, Examples, Summary, nearest_rows
from quickmeans.kmeans.rows import Rows
from quickmeans.threads import resolve_threads
from quickmeans.validation import check_sample_weight


class InspectionMixin:
    """Methods of a fitted estimator that take rows of any kind and go over them block by block."""

    n_threads: int | None
    cluster_centers_: Any

    @property
    def _fitted(self) -> FittedClusters:
        raise NotImplementedError

    def _check_new_rows(self, X: Any) -> Rows:
        raise NotImplementedError

    def nearest(self, X: Any, m: int = 2) -> tuple[Any, Any]:
        """The m nearest centroids of every row, exactly, without the distances to all others.

        Parameters
        ----------
        X : as for `fit`
            If it is a Dask array, both results are lazy Dask arrays.
        m : int, default=2
            At most the number of clusters.

        Returns
        -------
        distances : array of shape (n_samples, m)
            In ascending order; float32 if X is, else float64.
        labels : array of int32, shape (n_samples, m)
            The clusters. Of equal distances the lower number comes first.
        """
        rows, K = self._check_new_rows(X), len(self.cluster_centers_)
        if check_whole("m", m, 1) > K:
            raise ValueError(f"m must be a whole number from 1 to n_clusters={K}, got {m}.")
        found = rows.map(self._fitted.nearest_function(m, rows.threads(self.n_threads)), np.float64, 2 * m)
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        return found[:, :m].astype(dtype), found[:, m:].astype(np.int32)

    def examples(self, X: Any, per_cluster: int = 5) -> Examples:
        """The rows of X that are nearest to their centroids, to show what a cluster is about.

        Parameters
        ----------
        X : as for `fit`
            Read once, block by block.
        per_cluster : int, default=5
            How many rows of each cluster.

        Returns
        -------
        examples : named tuple
            ``indices`` and ``distances``, both of shape (n_clusters, per_cluster), the nearest row first. A cluster
            with fewer rows has -1 and infinity there.
        """
        check_whole("per_cluster", per_cluster, 1)
        rows = self._check_new_rows(X)
        function = self._fitted.labels_and_distances_function(resolve_threads(self.n_threads))
        return nearest_rows(rows.each(function), len(self.cluster_centers_), min(per_cluster, rows.shape[0]))

    def summary(self, X: Any, sample_weight: ArrayLike | None = None) -> Summary:
        """Size, spread, nearest other cluster and share of rows near the border, for every cluster.

        Parameters
        ----------
        X : as for `fit`
            Read once, block by block.
        sample_weight : array of shape (n_samples,), default=None
            The weight of each row; not negative.

        Returns
        -------
        summary : Summary
            ``size``, ``spread``, ``nearest``, ``nearest_distance`` and ``border``, one number per cluster each; as a
            string, a table. See :class:`quickmeans.kmeans.inspection.Summary`.
        """
        rows, K, first = self._check_new_rows(X), len(self.cluster_centers_), 0
        weights = None if sample_weight is None else check_sample_weight(sample_weight, rows.shape[0])
        sums = BorderSums(K)
        for block in rows.each(self._fitted.nearest_function(min(2, K), resolve_threads(self.n_threads))):
            sums.add(block, None if weights is None else weights[first : first + len(block)])
            first += len(block)
        return sums.summary(self._fitted.centers)
