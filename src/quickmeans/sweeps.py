"""Choosing the number of clusters: fits for several numbers, each from the one before it."""

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quickmeans.checks import check_whole
from quickmeans.cluster import QKMeans
from quickmeans.kmeans.indices import calinski_harabasz, davies_bouldin, simplified_silhouette
from quickmeans.validation import check_rows, random_seeds

_SAMPLE, _SAMPLE_PER_CLUSTER = 5000, 16  # rows that the silhouette and the index of Davies and Bouldin are taken from
_SEPARATE = 0.5  # a silhouette from which on clusters are called separate: second centroids are twice as far away
_BENT = 0.02  # by how much the logarithm of the inertia must lie below its chord
_AFTER_GROWTH = 10  # iterations of a fit that begins with the one before it: they bring nearly all of the gain
_CLEAR = 0.02  # or by how much the best one must exceed those of the smallest and the largest number


@dataclass(frozen=True)
class Sweep:
    """Fits for several numbers of clusters, and what tells them apart; the arrays have one number for each.

    Attributes
    ----------
    ks : array of int64
        The numbers of clusters, ascending.
    inertia : array of float64
        The objective.
    silhouette : array of float64
        The mean of 1 - d1 / d2 over a sample of rows, with their distances from the nearest two centroids; larger is
        better. NaN for one cluster.
    calinski_harabasz : array of float64
        Scatter between clusters over that within, both by degree of freedom; larger is better.
    davies_bouldin : array of float64
        How wide clusters are for the distance of their centroids, on the same sample; smaller is better.
    seconds : array of float64
        The time of the fit.
    models : list of QKMeans
        The fits.
    suggestion : int
        The number of clusters that the indices speak for.
    reason : str
        Why.
    """

    ks: NDArray[np.int64]
    inertia: NDArray[np.float64]
    silhouette: NDArray[np.float64]
    calinski_harabasz: NDArray[np.float64]
    davies_bouldin: NDArray[np.float64]
    seconds: NDArray[np.float64]
    models: list[QKMeans] = field(repr=False)
    suggestion: int
    reason: str

    @property
    def model(self) -> QKMeans:
        """The fit with the suggested number of clusters."""
        return self.models[int(np.flatnonzero(self.ks == self.suggestion)[0])]

    def records(self) -> list[dict[str, Any]]:
        """One dictionary per number of clusters."""
        names = ("inertia", "silhouette", "calinski_harabasz", "davies_bouldin", "seconds")
        return [
            {"n_clusters": int(k)} | {name: float(getattr(self, name)[i]) for name in names}
            for i, k in enumerate(self.ks)
        ]

    def __str__(self) -> str:
        lines = ["       K      inertia  silhouette  Calinski-H.  Davies-B.  seconds"]
        row = (
            "{n_clusters:8d}  {inertia:11.5g}  {silhouette:10.3f}  {calinski_harabasz:11.5g}  {davies_bouldin:9.3f}  "
            "{seconds:7.3f}"
        )
        lines += [row.format(**record).replace("nan", "  -") for record in self.records()]
        return "\n".join([*lines, f"K = {self.suggestion}: {self.reason}"])

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw inertia and the three indices against the number of clusters; matplotlib must be installed.

        Parameters
        ----------
        path : str or path
            An image file; its ending names the format.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("A plot needs matplotlib; install quickmeans[plots].") from None
        figure = Figure(figsize=(8, 6), layout="constrained")
        panels: Any = figure.subplots(2, 2, sharex=True)
        titles = {
            "inertia": "inertia",
            "silhouette": "simplified silhouette (larger is better)",
            "calinski_harabasz": "Calinski-Harabasz (larger is better)",
            "davies_bouldin": "Davies-Bouldin (smaller is better)",
        }
        for axes, (name, title) in zip(panels.ravel(), titles.items(), strict=True):
            axes.plot(self.ks, getattr(self, name), "o-", color="#3d7ea6")
            axes.axvline(self.suggestion, color="#c8102e", linestyle="--", linewidth=1)
            axes.set_title(title, fontsize=10)
            axes.set_xscale("log")
            axes.set_xticks(self.ks, [str(k) for k in self.ks])
            axes.minorticks_off()
            axes.spines[["top", "right"]].set_visible(False)
        panels[0, 0].set_yscale("log")
        for axes in panels[1]:
            axes.set_xlabel("number of clusters")
        figure.suptitle(f"{self.suggestion} clusters are suggested", fontsize=11)
        figure.savefig(path, dpi=150)


def sweep(
    X: Any,
    ks: Iterable[int],
    *,
    sample_weight: ArrayLike | None = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
    **parameters: Any,
) -> Sweep:
    """Fit with several numbers of clusters, and suggest one.

    The smallest number is fitted as usual, with its search. Every other fit begins with the clusters of the one before
    it, some of which are split, and makes at most ten iterations unless `max_iter` is given, so that all fits together
    take little longer than the largest alone.

    Parameters
    ----------
    X : as for :meth:`QKMeans.fit`
    ks : iterable of int
        Numbers of clusters, in any order, none twice.
    sample_weight : array of shape (n_samples,), default=None
        The weight of each row; not negative.
    callback : callable, default=None
        Called after every fit with its record, a dictionary.
    **parameters
        Of :class:`QKMeans`, but `n_clusters`, `init`, `warm_start` and `checkpoint`.

    Returns
    -------
    sweep : Sweep
        Indices, fits and a suggestion; see :class:`quickmeans.sweeps.Sweep`. As a string, a table.

    Examples
    --------
    >>> import numpy as np
    >>> from quickmeans import sweep
    >>> rng = np.random.default_rng(0)
    >>> X = 30 * rng.standard_normal((5, 3))[rng.integers(5, size=500)] + rng.standard_normal((500, 3))
    >>> sweep(X, [2, 3, 4, 5, 6, 8], random_state=0).suggestion
    5
    """
    numbers = _check(ks, parameters)
    sample, weights = _sampled(X, sample_weight, numbers, parameters)
    records, models = list[dict[str, Any]](), list[QKMeans]()
    for k in numbers:
        init = {"max_iter": _AFTER_GROWTH} | parameters | {"init": models[-1]} if models else parameters
        start = time.perf_counter()
        model = QKMeans(k, **init).fit(X, sample_weight=sample_weight)
        elapsed = time.perf_counter() - start
        model.set_params(init="k-means++")  # a chain of models would keep all of them alive
        record = {"n_clusters": k, "inertia": model.inertia_, "seconds": elapsed} | _indices(model, sample, weights)
        models.append(model)
        records.append(record)
        if callback is not None:
            callback(record)
    columns = {name: np.array([record[name] for record in records]) for name in records[0]}
    ks_, rest = columns.pop("n_clusters").astype(np.int64), columns
    suggestion, reason = suggested(ks_, rest["inertia"], rest["silhouette"], rest["davies_bouldin"])
    return Sweep(ks_, models=models, suggestion=suggestion, reason=reason, **rest)


def _check(ks: Iterable[int], parameters: dict[str, Any]) -> list[int]:
    for name in ("n_clusters", "init", "warm_start", "checkpoint"):
        if name in parameters:
            raise ValueError(f"{name} is not a parameter of a sweep, which sets it itself; leave it out.")
    if not isinstance(ks, Iterable):
        raise ValueError(f"ks must be one or more different numbers of clusters, got {ks!r}.")
    numbers = sorted(check_whole("every number of clusters", k, 1) for k in ks)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"ks must be one or more different numbers of clusters, got {numbers}.")
    return numbers


def _sampled(X: Any, sample_weight: Any, numbers: list[int], parameters: dict[str, Any]) -> tuple[Any, Any]:
    """Rows to take the indices from, and their weights; too few rows for the largest number are a ValueError."""
    rows = check_rows(QKMeans(), X, reset=True)
    n = rows.shape[0]
    if n < numbers[-1]:
        raise ValueError(f"n_samples={n} should be >= the largest number of clusters, {numbers[-1]}.")
    size = min(n, max(_SAMPLE, _SAMPLE_PER_CLUSTER * numbers[-1]))
    rng = np.random.default_rng(random_seeds(parameters.get("random_state"), 1)[0])
    index = np.sort(rng.choice(n, size, replace=False)) if size < n else np.arange(n)
    weights = np.ones(size) if sample_weight is None else np.asarray(sample_weight, np.float64)[index]
    return rows.take(index), weights


def _indices(model: QKMeans, sample: NDArray[Any], weights: NDArray[np.float64]) -> dict[str, float]:
    """The three indices of a fit."""
    names = ("silhouette", "calinski_harabasz", "davies_bouldin")
    if len(model.cluster_centers_) < 2:
        return dict.fromkeys(names, float("nan"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)  # the sample has none
        distances, labels = model.nearest(sample, 2)
    distances, centers = distances.astype(np.float64), model.cluster_centers_.astype(np.float64)
    between = calinski_harabasz(centers, model.weight_in_clusters_, _mean(model), model.inertia_)
    values = (
        simplified_silhouette(distances, weights),
        between,
        davies_bouldin(centers, labels[:, 0], distances[:, 0], weights),
    )
    return dict(zip(names, values, strict=True))


def _mean(model: QKMeans) -> NDArray[np.float64]:
    """The mean of all rows, from those of the clusters; of directions it is not the model's."""
    sizes = model.weight_in_clusters_
    return np.asarray(sizes @ model.cluster_centers_.astype(np.float64) / sizes.sum())


def suggested(
    ks: NDArray[np.int64],
    inertia: NDArray[np.float64],
    silhouette: NDArray[np.float64],
    davies_bouldin: NDArray[np.float64],
) -> tuple[int, str]:
    """A number of clusters, and why: the most separate clusters, or else the bend of the inertia."""
    if inertia[0] == 0:
        return int(ks[0]), "every row is equal to its centroid, so that there is nothing more to tell apart."
    several = np.flatnonzero(np.isfinite(silhouette))
    if len(several) < 2:
        return int(ks[-1]), "there is nothing to compare it with."
    best = several[int(np.argmax(silhouette[several]))]
    ends = max(silhouette[several[0]], silhouette[several[-1]])
    if silhouette[best] >= _SEPARATE or silhouette[best] > ends + _CLEAR:
        next_best = max(silhouette[i] for i in several if i != best)
        agrees = several[int(np.argmin(davies_bouldin[several]))] == best
        reason = f"its clusters are the most separate (silhouette {silhouette[best]:.3f}, the next {next_best:.3f})"
        return int(ks[best]), reason + ("; the Davies-Bouldin index agrees." if agrees else ".")
    if len(ks) < 3 or not (inertia > 0).all():
        return int(
            ks[best]
        ), f"its silhouette is the largest, but clusters run into each other ({silhouette[best]:.3f})."
    x, y = np.log(ks), np.log(inertia)
    chord = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    bend = int(np.argmax(chord - y))
    if chord[bend] - y[bend] < _BENT:
        return int(ks[best]), (
            f"no number stands out: clusters run into each other (the largest silhouette is {silhouette[best]:.3f}, "
            "for this one), and the inertia falls evenly. Take what your purpose asks for."
        )
    before, after = (1 - 2 ** float((y[j] - y[i]) / (x[j] - x[i])) for i, j in ((0, bend), (bend, len(ks) - 1)))
    return int(ks[bend]), (
        f"clusters run into each other (no silhouette stands out, the largest is {silhouette[best]:.3f}), so this is "
        f"the bend of the inertia: a doubling of K lowers it by {before:.1%} up to there, and by {after:.1%} beyond."
    )
