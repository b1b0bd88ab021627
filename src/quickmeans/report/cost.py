"""What it takes to find the nearest centroid of a row: by the model, and by a dense matrix product."""

import time
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

_MACS = 4e9  # of the dense product, per repeat
_REPEATS, _SECONDS = 7, 2.0  # the most, of both together
_BLOCK = 1 << 22  # scores at a time


@dataclass(frozen=True)
class Cost:
    """Of the model first, of dense centroids second."""

    macs: tuple[float, float]  # multiply-adds per row
    n_bytes: tuple[float, float]  # of the numbers that are needed
    microseconds: tuple[float, float]  # per row
    n_rows: int  # timed together
    n_threads: int
    agreement: float | None  # share of given rows that get the same label


def measure(model: QKMeans, sample: NDArray[Any] | None) -> Cost:
    """Time both on the sample or, without one, on rows scattered about the centroids."""
    centers = model.cluster_centers_.astype(model._frame.dtype)
    n_rows = min(max(256, int(_MACS / centers.size)), sample_size(centers.shape[1], centers.dtype))
    rows = _made_up(centers, n_rows) if sample is None else sample[:n_rows]
    n_threads = resolve_threads(model.n_threads)
    dense_labels = _dense(model, rows)
    with threadpool_limits(n_threads, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the sample has no names of features
        ours, dense = _best_times(lambda: model.predict(rows), dense_labels)
        same = None if sample is None else float((model.predict(rows) == dense_labels()).mean())
    per_row = 1e6 / len(rows)
    return Cost(
        (_macs(model), centers.size), (_bytes(model), model.cluster_centers_.nbytes), (per_row * ours, per_row * dense),
        len(rows), n_threads, same,
    )  # fmt: skip


def _macs(model: QKMeans) -> float:
    if model.product_ is None:
        return float(model.cluster_centers_.size)
    return float(model.product_.macs + model.n_candidates_ * model.n_features_in_)


def _bytes(model: QKMeans) -> int:
    """The factors, and the centroids unless they follow from these."""
    follow = model.product_ is not None and model._fitted_shortlist == 0
    factors = sum(tensor.nbytes for tensor in product_tensors(model.product_).values())
    return int(factors + (model.mean_.nbytes if follow else model.cluster_centers_.nbytes))


def _made_up(centers: NDArray[Any], n_rows: int) -> NDArray[Any]:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((n_rows, centers.shape[1]), centers.dtype) * centers.std(axis=0)
    return np.asarray(centers[rng.integers(len(centers), size=n_rows)] + noise)


def _dense(model: QKMeans, rows: NDArray[Any]) -> Callable[[], NDArray[np.intp]]:
    r"""The nearest centroid m + c_k by BLAS: :math:`\arg\max_k \langle x - m, c_k\rangle - \|c_k\|^2 / 2`."""
    about_mean = model.cluster_centers_ - model.mean_
    half = (about_mean @ model.mean_ + np.einsum("kd,kd->k", about_mean, about_mean) / 2).astype(rows.dtype)
    centers = about_mean.astype(rows.dtype)
    step = max(1, _BLOCK // len(centers))

    def labels() -> NDArray[np.intp]:
        blocks = (rows[i : i + step] @ centers.T - half for i in range(0, len(rows), step))
        return np.concatenate([scores.argmax(axis=1) for scores in blocks])

    return labels


def _best_times(*calls: Callable[[], Any]) -> list[float]:
    """The shortest of several runs each, taking turns."""
    best, end = [float("inf")] * len(calls), time.perf_counter() + _SECONDS
    for repeat in range(_REPEATS):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
        if repeat and time.perf_counter() > end:
            break
    return best
