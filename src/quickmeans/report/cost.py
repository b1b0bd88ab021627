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
from quickmeans.timing import alternate

_MACS = 4e9  # of the dense product in one call, at most: the larger K D, the fewer rows
_SECONDS = 2.0  # of all calls together
_BLOCK = 1 << 22  # scores that are held at a time


@dataclass(frozen=True)
class Cost:
    """Pairs of numbers: of the model, and of dense centroids."""

    macs: tuple[float, float]  # multiply-adds per row
    n_bytes: tuple[float, float]  # of the numbers that are needed
    microseconds: tuple[float, float]  # per row
    n_rows: int  # in one call
    n_threads: int
    agreement: float | None  # share of the given rows that get the same label from both


def measure(model: QKMeans, sample: NDArray[Any] | None) -> Cost:
    """Time both on the sample or, without one, on random rows around the centroids."""
    centers = model.cluster_centers_.astype(model.assigner_.geometry.dtype)
    n_rows = min(max(256, int(_MACS / centers.size)), sample_size(centers.shape[1], centers.dtype))
    rows = _random_rows(centers, n_rows) if sample is None else sample[:n_rows]
    n_threads = resolve_threads(model.n_threads)
    dense = _dense_assignment(model, rows)
    with threadpool_limits(n_threads, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the sample has no names of features
        seconds = alternate({"model": lambda: model.predict(rows), "dense": dense}, most=_SECONDS)
        agreement = None if sample is None else float((model.predict(rows) == dense()).mean())
    return Cost(
        macs=(_macs(model), centers.size),
        n_bytes=(_bytes(model), model.cluster_centers_.nbytes),
        microseconds=(1e6 * seconds["model"] / len(rows), 1e6 * seconds["dense"] / len(rows)),
        n_rows=len(rows),
        n_threads=n_threads,
        agreement=agreement,
    )


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
