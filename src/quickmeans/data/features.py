"""Whether the columns of a source are those that a model was fitted to."""

from typing import Any

import numpy as np


def check_features(model: Any, source: Any, *, reset: bool) -> None:
    """Set `n_features_in_` and `feature_names_in_`, or compare with them."""
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
