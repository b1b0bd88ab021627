"""The methods of an estimator that give its clusters to other programs."""

from abc import ABC, abstractmethod
from os import PathLike

from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from quickmeans.atomic import write_bytes
from quickmeans.export.onnx_graph import DEFAULT_OPSET, onnx_bytes
from quickmeans.export.scikit import as_kmeans
from quickmeans.kmeans.fitted import FittedClusters


class Exports(ABC):
    """scikit-learn's KMeans, and ONNX."""

    @property
    @abstractmethod
    def _fitted(self) -> FittedClusters:
        """The clusters, when fitted."""

    def _check_exportable(self) -> None:
        check_is_fitted(self)
        if hasattr(self, "scale_"):
            raise ValueError("A model with standardize=True cannot be exported; fit one to X / X.std(axis=0).")

    def to_sklearn(self) -> KMeans | Pipeline:
        """Copy the clusters to a fitted scikit-learn ``KMeans``, for programs without this library.

        Returns
        -------
        KMeans or Pipeline
            If the model is spherical, a pipeline of a ``Normalizer`` and a ``KMeans``.
        """
        self._check_exportable()
        names = ("n_features_in_", "feature_names_in_")
        return as_kmeans(self._fitted, {name: vars(self)[name] for name in names if name in vars(self)})

    def to_onnx(self, path: str | PathLike[str], *, opset: int = DEFAULT_OPSET) -> None:
        """Write the assignment of rows to clusters as an ONNX file. Needs onnx.

        The graph takes rows `X` in float32 (float64 if the model computes in float64), and gives `labels`, int64, and
        `distances` from the centroids. All centroids are compared: labels are those of ``predict(X, exact=True)`` but
        for rows whose nearest centroids are equally far to rounding. With ``shortlist=0`` the file holds the sparse
        factors. The file is complete or absent, whatever happens.

        Parameters
        ----------
        path : str or path
            Replaced if it is there.
        opset : int, default=17
            The version of ONNX's operators; at least 13.
        """
        self._check_exportable()
        write_bytes(path, onnx_bytes(self._fitted, opset))
