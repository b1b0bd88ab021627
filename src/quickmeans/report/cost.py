"""The cost of finding the nearest centroid of a row: with the model, and with a dense matrix product."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from quickmeans.cluster import QKMeans
from quickmeans.report.survey import sample_size
from quickmeans.state import product_tensors
from quickmeans.threads import resolve_threads
from quickmeans.timing import by_turns

_MACS = 4e9  # of the dense product in one call, at most: the larger K D, the fewer rows
_ROUNDS, _ROUND, _SECONDS = 9, 0.04, 6.0  # rounds; seconds of a candidate in a round, at least; of all, at most
_BLOCK = 1 << 22  # scores that are held at a time


@dataclass(frozen=True)
class Cost:
    """Pairs of numbers: of the model, and of dense centroids.

    `speed` is the time of dense centroids over that of the model: the lowest, the middle and the highest of several
    rounds, without one outlier on either side.
    """

    macs: tuple[float, float]  # multiply-adds per row
    n_bytes: tuple[float, float]  # of the numbers that are needed
    microseconds: tuple[float, float]  # per row; the best of all rounds
    speed: tuple[float, float, float]
    n_rows: int  # in one call
    n_threads: int
    agreement: float | None  # share of the given rows that get the same label from both

    @property
    def is_certain(self) -> bool:
        """Whether one of the two was faster in all rounds that count."""
        low, _, high = self.speed
        return low > 1 or high < 1


def measure(model: QKMeans, sample: NDArray[Any] | None) -> Cost:
    """Time both on the sample or, without one, on random rows around the centroids."""
    centers = model.cluster_centers_.astype(model.assigner_.geometry.dtype)
    n_rows = min(max(256, int(_MACS / centers.size)), sample_size(centers.shape[1], centers.dtype))
    rows = _random_rows(centers, n_rows) if sample is None else sample[:n_rows]
    given = rows * model.scale_.astype(rows.dtype) if hasattr(model, "scale_") else rows
    n_threads = resolve_threads(model.n_threads)
    dense = _dense_assignment(model, rows)
    with threadpool_limits(n_threads, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the sample has no names of features
        times = by_turns({"model": lambda: model.predict(given), "dense": dense}, _ROUNDS, _ROUND, _SECONDS)
        agreement = None if sample is None else float((model.predict(given) == dense()).mean())
    return Cost(
        macs=(_macs(model), centers.size),
        n_bytes=(_bytes(model), model.cluster_centers_.nbytes),
        microseconds=(1e6 * min(times["model"]) / len(rows), 1e6 * min(times["dense"]) / len(rows)),
        speed=speed_range(times["model"], times["dense"]),
        n_rows=len(rows),
        n_threads=n_threads,
        agreement=agreement,
    )


def speed_range(ours: list[float], dense: list[float]) -> tuple[float, float, float]:
    """Return the ratios of the times in the same round: lowest, median and highest.

    The first call, and one outlier on either side, are left out where there are enough rounds.
    """
    ratios = np.sort(np.divide(dense, ours)[1:] if len(ours) > 1 else np.divide(dense, ours))
    middle = ratios[1:-1] if len(ratios) > 4 else ratios
    return float(middle[0]), float(np.median(middle)), float(middle[-1])


def n_numbers(model: QKMeans) -> int:
    """Return how many numbers are stored for the centroids."""
    if model.product_ is None or model.assigner_.centers_are_means:
        return int(model.cluster_centers_.size)
    return int(model.product_.nnz)


def _macs(model: QKMeans) -> float:
    if model.product_ is None:
        return float(model.cluster_centers_.size)
    return float(model.product_.macs + model.n_candidates_ * model.n_features_in_)


def _bytes(model: QKMeans) -> int:
    """Return the bytes of the factors and of the centroids, unless these are the rows of the product."""
    are_stored = model.product_ is None or model.assigner_.centers_are_means
    factors = sum(tensor.nbytes for tensor in product_tensors(model.product_).values())
    return int(factors + (model.cluster_centers_.nbytes if are_stored else model.mean_.nbytes))


def _random_rows(centers: NDArray[Any], n_rows: int) -> NDArray[Any]:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((n_rows, centers.shape[1]), centers.dtype) * centers.std(axis=0)
    return np.asarray(centers[rng.integers(len(centers), size=n_rows)] + noise)


def _dense_assignment(model: QKMeans, rows: NDArray[Any]) -> Callable[[], NDArray[np.intp]]:
    r"""Return a function that finds :math:`\arg\max_k \langle x - m, c_k\rangle - \|c_k\|^2 / 2` by BLAS."""
    offsets = model.cluster_centers_ - model.mean_
    half_norms = (offsets @ model.mean_ + np.einsum("kd,kd->k", offsets, offsets) / 2).astype(rows.dtype)
    centers = offsets.astype(rows.dtype)
    step = max(1, _BLOCK // len(centers))

    def labels() -> NDArray[np.intp]:
        blocks = (rows[i : i + step] @ centers.T - half_norms for i in range(0, len(rows), step))
        return np.concatenate([scores.argmax(axis=1) for scores in blocks])

    return labels
