"""Columns of equal weight: every one is divided by its standard deviation."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.rows import Rows
from quickmeans.kmeans.settings import Settings
from quickmeans.state import State


def standardized(estimator: Any, rows: Rows, *, reset: bool) -> Rows:
    """The rows as the estimator compares them; with `reset` they decide on its `scale_`, if it standardizes."""
    if reset:
        estimator.__dict__.pop("scale_", None)
        if estimator.standardize:
            deviations = rows.deviations(rows.threads(estimator.n_threads))
            estimator.scale_ = np.where(deviations > 0, deviations, 1.0)
    scale = vars(estimator).get("scale_")
    return rows if scale is None else rows.scaled(scale)


def original_centers(model: Any) -> NDArray[Any]:
    """The centroids of a fitted model in the units of its rows."""
    centers, scale = np.asarray(model.cluster_centers_), vars(model).get("scale_")
    return centers if scale is None else centers * scale


def scaled_centers(centers: NDArray[Any] | None, estimator: Any) -> NDArray[Any] | None:
    """Centroids in the units of the rows, in those that the estimator compares."""
    scale = vars(estimator).get("scale_")
    return centers if centers is None or scale is None or centers.shape[1:] != scale.shape else centers / scale


def in_scale(settings: Settings, estimator: Any) -> Settings:
    """The settings with an array as `init` in the units of the rows that the estimator compares."""
    scale, init = vars(estimator).get("scale_"), settings.init
    if scale is None or isinstance(init, str) or callable(init) or np.shape(init)[-1:] != scale.shape:
        return settings
    return replace(settings, init=np.asarray(init, np.float64) / scale)


def add_scale(state: State, estimator: Any) -> State:
    """The state, with the scale of the estimator if it has one."""
    if hasattr(estimator, "scale_"):
        state.tensors["scale"] = estimator.scale_
    return state


def scale_in(state: State) -> dict[str, Any]:
    """The fitted attribute `scale_`, by name; nothing if the state has none."""
    if "scale" not in state.tensors:
        return {}
    scale, D = state.tensor("scale", 1, ("float64",)), state.number("n_features_in", int, 1)
    if scale.shape != (D,) or not (scale > 0).all():
        raise ValueError(f"scale must be {D} positive numbers, one per feature.")
    return {"scale_": scale}
