"""The columns of X, and whether a model was fitted to them."""

from typing import Any, Protocol

import numpy as np


class Columns(Protocol):
    """A source of rows with a number of columns, which may have names."""

    name: str
    n_columns: int
    columns: list[str] | None


def with_columns(X: Any) -> Any:
    """X, or a NumPy array of it if X has one axis and the array has two, as with a polars series of arrays.

    scikit-learn finds the number of features in the shape of X, and finds none in such a shape.
    """
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 1 and hasattr(X, "__array__"):
        array = np.asarray(X)
        return array if array.ndim == 2 else X
    return X


def check_features(model: Any, source: Columns, *, reset: bool) -> None:
    """Set `n_features_in_` and `feature_names_in_` of an estimator, or compare the columns of a source with them."""
    if reset:
        model.n_features_in_ = source.n_columns
        model.__dict__.pop("feature_names_in_", None)
        if source.columns is not None:
            model.feature_names_in_ = np.array(source.columns, dtype=object)
        return
    if source.n_columns != model.n_features_in_:
        raise ValueError(
            f"{source.name} has {source.n_columns} columns, but the model was fitted to {model.n_features_in_}."
        )
    names = getattr(model, "feature_names_in_", None)
    if names is not None and source.columns is not None and source.columns != list(names):
        raise ValueError(
            f"{source.name} must have the columns that the model was fitted to, in their order: {', '.join(names)}."
        )
