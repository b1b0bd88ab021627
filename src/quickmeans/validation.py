"""What comes in at the door of the estimators: rows of any kind, weights, names of features."""

from functools import cache
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from quickmeans.checks import is_number
from quickmeans.data.features import check_features, refuse_no_numbers, with_columns
from quickmeans.data.memory_rows import ArrayRows
from quickmeans.data.open import as_source, is_dask
from quickmeans.data.rows import as_rows
from quickmeans.data.stream import StreamRows
from quickmeans.data.widened_rows import WidenedRows, is_bfloat16
from quickmeans.kmeans.rows import Rows, Weights
from quickmeans.scaling import original_centers

_READ_AS_THEY_ARE = (np.float32, np.float64)


def check_rows(estimator: BaseEstimator, X: Any, sample_weight: Any = None, *, reset: bool) -> Rows:
    """X and its weights as rows; X is not copied if the kernels can read it.

    With `reset` the estimator gets `n_features_in_` and `feature_names_in_`, else X is compared with them. NaN and
    infinity in arrays and files are found by the kernels.
    """
    if _is_plain(estimator, X, reset=reset):
        estimator.n_features_in_ = X.shape[1]
        return ArrayRows(X, check_sample_weight(sample_weight, X.shape[0]))
    if is_dask(X):
        from quickmeans.distributed.rows import DaskRows  # Dask is optional

        rows = DaskRows(X, sample_weight)
        check_features(estimator, rows, reset=reset)
        return rows
    source = as_source(X, names=None if reset else getattr(estimator, "feature_names_in_", None))
    if source is not None:
        check_features(estimator, source, reset=reset)
        n_rows = 0 if sample_weight is None else StreamRows(source).shape[0]
        return StreamRows(source, check_sample_weight(sample_weight, n_rows))
    X = with_columns(X)
    if is_bfloat16(X):
        widened = WidenedRows(X, check_sample_weight(sample_weight, X.shape[0]))
        check_features(estimator, widened, reset=reset)
        return widened
    try:
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    except (TypeError, ValueError):
        refuse_no_numbers(X)
        raise
    if X.dtype.kind not in "fiu" or X.dtype.itemsize > 8:
        X = X.astype(np.float64)
    return as_rows(X, check_sample_weight(sample_weight, X.shape[0]))


def _is_plain(estimator: BaseEstimator, X: Any, *, reset: bool) -> bool:
    """Whether X is an array that the kernels read as it is, with the right width and no names to compare.

    To find that out takes a microsecond; scikit-learn's validation, which would find nothing more, a hundred.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.type not in _READ_AS_THEY_ARE or not X.size:
        return False
    fitted = vars(estimator)
    width = X.shape[1] if reset else fitted.get("n_features_in_")
    return (
        X.flags.c_contiguous
        and X.flags.aligned
        and X.dtype.isnative
        and width == X.shape[1]
        and "feature_names_in_" not in fitted
    )


def parameters_of(estimator: BaseEstimator) -> dict[str, Any]:
    """The parameters by their names, as ``get_params(deep=False)`` returns them."""
    cls: Any = type(estimator)
    return {name: getattr(estimator, name) for name in _parameter_names(cls)}


@cache
def _parameter_names(cls: Any) -> list[str]:
    """The names of the parameters; scikit-learn takes a tenth of a millisecond to find them."""
    return list(cls._get_param_names())


def centers_of_model(init: Any) -> Any:
    """The centroids of a fitted model that is given as `init`; None if it is something else.

    A model that is not fitted is a ValueError.
    """
    if not (hasattr(init, "fit") and hasattr(init, "get_params")) or isinstance(init, type):
        return None
    if not hasattr(init, "cluster_centers_"):
        name = type(init).__name__
        raise ValueError(
            f"init is a {name} without cluster_centers_; fit it first, or give a name, an array or a callable."
        )
    return original_centers(init)


def random_seeds(random_state: Any, count: int) -> list[int]:
    """So many seeds from whatever scikit-learn takes for `random_state`."""
    if (
        isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32
    ):  # RandomState takes a third of a millisecond
        return [int(seed) for seed in np.random.default_rng(int(random_state)).integers(2**31, size=count)]
    return [int(seed) for seed in check_random_state(random_state).randint(2**31, size=count)]


def check_sample_weight(sample_weight: Any, n_rows: int) -> Weights:
    """Return one float64 weight per row, or None if all rows count the same."""

    if sample_weight is None:
        return None
    if is_number(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    weights = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_all_finite=True, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one weight per row, got {weights.shape}.")
    if (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must not be negative, and not all zero.")
    return np.ascontiguousarray(weights, np.float64)
