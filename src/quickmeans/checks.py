"""What the parameters of QKMeans, and weights, may be."""

import os
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

SOLVERS = ("als", "palm4msa", "hierarchical")


def check_parameters(model: Any) -> None:
    """Refuse parameters that make no sense."""
    check_whole("n_clusters", model.n_clusters, 1)
    check_whole("max_iter", model.max_iter, 1)
    if model.n_init != "auto":
        check_whole("n_init", model.n_init, 1)
    if model.shortlist != "auto":
        check_whole("shortlist", model.shortlist, 0, " or 'auto'")
    if model.spherical and model.shortlist == 0:
        raise ValueError("spherical k-means needs a shortlist: rows of a product do not have length one.")
    if model.solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {model.solver!r}.")
    if isinstance(model.init, str) and model.init not in ("k-means++", "random"):
        raise ValueError(f"init must be 'k-means++', 'random', an array or a callable, got {model.init!r}.")
    if model.compression != "auto" and not (is_number(model.compression) and float(model.compression) >= 1):
        raise ValueError(f"compression must be a number not below 1, or 'auto', got {model.compression!r}.")
    check_whole("sparsity_level", model.sparsity_level, 1)
    if model.n_factors != "auto":
        check_whole("n_factors", model.n_factors, 1, " or 'auto'")
    if model.callback is not None and not callable(model.callback):
        raise TypeError(f"callback must be callable as callback(iteration, objective), got {model.callback!r}.")
    if not is_number(model.tol) or not 0 <= model.tol < np.inf:
        raise ValueError(f"tol must be a finite number not below 0, got {model.tol!r}.")
    if model.batch_size is not None:
        check_whole("batch_size", model.batch_size, 1, " or None")
    if model.checkpoint is not None:
        _check_checkpoint(model)


def _check_checkpoint(model: Any) -> None:
    if not isinstance(model.checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path or None, got {model.checkpoint!r}.")
    if not Path(os.fsdecode(model.checkpoint)).resolve().parent.is_dir():
        raise FileNotFoundError(f"checkpoint={os.fsdecode(model.checkpoint)!r} is in a directory that does not exist.")
    if n_runs(model) != 1:
        raise ValueError("A checkpoint is of one run; set n_init=1.")


def n_runs(model: Any) -> int:
    """From how many starts."""
    if model.n_init != "auto":
        return int(model.n_init)
    return 10 if callable(model.init) or (isinstance(model.init, str) and model.init == "random") else 1


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a real number, and no truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int, more: str = "") -> None:
    """Refuse what is not a whole number, or too small."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number not below {least}{more}, got {value!r}.")


def check_sample_weight(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """One weight per row, or None for equal ones."""
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


def check_flag(name: str, value: Any) -> None:
    """Refuse what is not a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
