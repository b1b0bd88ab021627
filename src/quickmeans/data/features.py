"""The columns of X, and whether a model was fitted to them."""

from typing import Any, Protocol

import numpy as np

_SHOWN = 20  # names of columns in a message


class Columns(Protocol):
    """A source of rows with a number of columns, which may have names."""

    name: str
    n_columns: int
    columns: Any


def with_columns(X: Any) -> Any:
    """X, or a 2-D array if X is a column of lists of pandas, polars or pyarrow, or a frame with no other column.

    scikit-learn finds the number of features in the shape of X, and finds none in such a shape.
    """
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and shape[1] == 1 and hasattr(X, "columns"):
        column = with_columns(X[X.columns[0]])
        return column if getattr(column, "ndim", 0) == 2 else X
    if hasattr(X, "flatten") and hasattr(X, "combine_chunks"):  # a chunked array of pyarrow
        return _lists(X)
    if isinstance(shape, tuple) and len(shape) == 1 and hasattr(X, "__array__"):
        array = np.asarray(X)
        if array.dtype == object and len(array) and np.ndim(array[0]) == 1 and not isinstance(array[0], str):
            return _stacked(array)
        return array if array.ndim == 2 else X
    return X


def refuse_no_numbers(X: Any) -> None:
    """Name the columns of a data frame that hold no numbers, if there are any."""
    names = list(getattr(X, "columns", [])) if hasattr(X, "__getitem__") else []
    wrong = [name for name in names if not _holds_numbers(X[name])]
    if not wrong:
        return
    some = ", ".join(map(repr, wrong[:_SHOWN])) + ", ..." * (len(wrong) > _SHOWN)
    rows = next((name for name in wrong if getattr(with_columns(X[name]), "ndim", 0) == 2), None)
    hint = "select those that do" if rows is None else f"the lists in {rows!r} can be the rows, X[{rows!r}]"
    raise ValueError(f"X has columns that hold no numbers: {some}; {hint}.")


def _holds_numbers(column: Any) -> bool:
    try:
        np.asarray(column).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _lists(X: Any) -> Any:
    """The lists of a chunked array of pyarrow as rows; X itself if it has numbers."""
    if not hasattr(X.type, "value_type"):
        return X
    if X.null_count:
        raise ValueError(f"X has {X.null_count} empty values; every value must be a list of numbers.")
    lists = X.combine_chunks()
    if not hasattr(X.type, "list_size"):
        _check_lengths(np.unique(lists.value_lengths()))
    return lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1)


def _stacked(lists: Any) -> Any:
    """Lists of equal length as the rows of an array."""
    try:
        sizes = np.unique([len(row) for row in lists])
    except TypeError:
        raise ValueError("X has values that are no lists; every value must be a list of numbers.") from None
    _check_lengths(sizes)
    return np.stack(lists.tolist())


def _check_lengths(sizes: Any) -> None:
    if len(sizes) != 1:
        raise ValueError(f"X has lists of {sizes[0]} and of {sizes[-1]} numbers; all must have the same length.")


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
