r"""Fitted models in files that hold numbers only; see :mod:`quickmeans.files.container` for what all such files share.

The tensors of a QKMeans are ``mean``, ``objective_history``, ``centers`` unless they follow from the product,
``labels`` if asked for, and the factors of the product; those of a QKNystroem ``mean``, ``normalization``,
``component_indices`` if the landmarks are rows of X, and the factors.
"""

import math
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from quickmeans.cluster import QKMeans
from quickmeans.files.container import (
    UNSIGNED,
    About,
    InvalidModelError,
    Tensors,
    encode,
    feature_names,
    floating,
    is_storable,
    narrow,
    number,
    plain,
    product_tensors,
    read,
    take,
    take_product,
    write,
)
from quickmeans.kernel_approximation import QKNystroem
from quickmeans.kmeans.geometry import Geometry as Frame
from quickmeans.nystroem.kernels import NAMES, Landmarks
from quickmeans.transform import SparseProduct

# Centroids that follow from the product are stored all the same if they would be so many times larger than the file:
# no file takes far more memory than its size suggests.
_LARGEST_EXPANSION = 1024
_NUMBERS: dict[str, type[int] | type[float]] = {
    "inertia": float,
    "reach": float,
    "n_candidates": float,
    "n_iter": int,
    "n_features_in": int,
}
_NOT_STORED = {"n_threads", "callback", "checkpoint"}


def save(model: QKMeans | QKNystroem, path: str | os.PathLike[str], *, labels: bool = False) -> None:
    """Write a fitted model to a file, to be read by :func:`load`.

    The file appears complete or not at all; one that is there already stays until then. Not stored are `n_threads`,
    `callback`, an `init` that is an array or a callable, and a `random_state` that is a generator: the loaded model has
    their defaults. With ``shortlist=0`` the dense centroids are not stored either, but computed when it is loaded. Nor
    are `landmarks` of a QKNystroem that are no string, and one whose kernel is a pair of functions cannot be stored.

    Parameters
    ----------
    model : QKMeans or QKNystroem
        Fitted.
    path : str or path
    labels : bool
        Whether to store `labels_` of a QKMeans, one number for every row that the model was fitted to.
    """
    if type(model) not in (QKMeans, QKNystroem):
        raise TypeError(f"model must be a QKMeans or a QKNystroem, got {type(model).__name__}.")
    check_is_fitted(model)
    if isinstance(model, QKNystroem):
        write(path, _encode_nystroem(model))
        return
    if labels and not hasattr(model, "labels_"):
        raise ValueError("The model has no labels_ to store, having been loaded without; save it with labels=False.")
    write(path, encode_model(model, labels))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model or an index that its ``save`` has written.

    Parameters
    ----------
    path : str or path
        The file; an index has a second one beside it.

    Returns
    -------
    QKMeans, QKNystroem, QKNeighbors or QKNeighborsTransformer
        As it was saved.

    Raises
    ------
    InvalidModelError
        If the file is anything else, or was changed since, or is of a newer format; a :class:`ValueError`.
    OSError
        If it cannot be read; :class:`FileNotFoundError` if there is none.
    """
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        try:
            return read_object(file, Path(name).resolve())
        except InvalidModelError as error:
            raise InvalidModelError(f"{name} {error}") from None


# ---- writing ------------------------------------------------------------------------------------------------------


def encode_model(model: QKMeans, labels: bool) -> bytes:
    """The contents of the file."""
    K = len(model.cluster_centers_)
    factors = () if model.product_ is None else model.product_.factors
    tensors = {"mean": model.mean_, "objective_history": model.objective_history_} | product_tensors(model.product_)
    if labels:
        tensors["labels"] = narrow(model.labels_, K - 1)
    follow = factors and model._fitted_shortlist == 0
    if not follow or _is_too_large(model.cluster_centers_.shape, sum(tensor.nbytes for tensor in tensors.values())):
        tensors["centers"] = model.cluster_centers_
    about = {
        "parameters": _storable_parameters(model),
        "shortlist": plain(model._fitted_shortlist),
        "spherical": model._frame.spherical,
        "working_dtype": model._frame.dtype.name,
        "centers_dtype": model.cluster_centers_.dtype.name,
        "n_factors": len(factors),
        "feature_names_in": [str(name) for name in getattr(model, "feature_names_in_", ())],
    }
    about |= {name: kind(getattr(model, name + "_")) for name, kind in _NUMBERS.items()}
    return encode(type(model).__name__, about, tensors)


def _encode_nystroem(model: QKNystroem) -> bytes:
    kernel, degree, coef0 = model._fitted_kernel
    if not isinstance(kernel, str):
        raise ValueError("A kernel that is a pair of functions cannot be stored; save models with a kernel by name.")
    tensors = {"mean": model.mean_, "normalization": model.normalization_} | product_tensors(model.product_)
    if model.component_indices_ is not None:
        tensors["component_indices"] = model.component_indices_.astype(np.uint64)
    about = {
        "parameters": _storable_parameters(model),
        "fitted_kernel": kernel,
        "fitted_degree": plain(degree),
        "fitted_coef0": float(coef0),
        "gamma": float(model.gamma_),
        "n_factors": len(model.product_.factors),
        "working_dtype": model.product_.dtype.name,
        "feature_names_in": [str(name) for name in getattr(model, "feature_names_in_", ())],
    }
    return encode(type(model).__name__, about, tensors)


def _storable_parameters(model: QKMeans | QKNystroem) -> dict[str, Any]:
    check_parameters(model) if isinstance(model, QKMeans) else model._check_parameters()
    given = model.get_params(deep=False)
    parameters = {name: plain(value) for name, value in given.items() if name not in _NOT_STORED}
    for name in parameters.keys() & {"init", "landmarks", "kernel"}:
        if not isinstance(parameters[name], str):
            del parameters[name]
    if not isinstance(parameters["random_state"], int | None):
        del parameters["random_state"]
    for name, value in parameters.items():
        if not is_storable(value):
            raise ValueError(f"{name} must be a finite number, a string or None to be stored, got {value!r}.")
    return parameters


# ---- reading ------------------------------------------------------------------------------------------------------


def read_object(file: BinaryIO, path: Path) -> Any:
    """What is in a file; errors are InvalidModelErrors, with what comes after the name of the file."""
    about, tensors, size = read(file)
    try:
        if about.get("class") in ("QKNeighbors", "QKNeighborsTransformer"):
            from quickmeans.files.indexes import read_index  # which imports this module

            return read_index(about, tensors, path)
        if about.get("class") == QKNystroem.__name__:
            return _nystroem(about, tensors)
        return _model(about, tensors, size)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidModelError(f"is not a valid model: {error}") from None


def read_model(file: BinaryIO) -> QKMeans:
    """The model in a file that has nothing else."""
    about, tensors, size = read(file)
    try:
        return _model(about, tensors, size)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidModelError(f"is not a valid model: {error}") from None


def _model(about: About, tensors: Tensors, size: int) -> QKMeans:
    """The model; a ValueError or TypeError says what is wrong with the contents."""
    if about["format_version"] != 1 or about.get("class") != QKMeans.__name__:
        raise ValueError("the header must have format version 1 and class QKMeans.")
    fitted = {name + "_": number(about, name, kind) for name, kind in _NUMBERS.items()}
    if not 0 <= fitted["reach_"] <= 1:
        raise ValueError("reach must be between 0 and 1.")
    model = QKMeans(**_parameters(about, QKMeans))
    check_parameters(model)
    mean = take(tensors, "mean", 1, ("float64",))
    if fitted["n_features_in_"] != len(mean):
        raise ValueError("n_features_in must be the length of the mean.")
    frame, shortlist = Frame(mean, floating(about, "working_dtype"), _spherical(about)), _shortlist(about)
    product = take_product(number(about, "n_factors", int), tensors, len(mean), frame.dtype)
    if "centers" in tensors:
        centers = take(tensors, "centers", 2, (floating(about, "centers_dtype").name,))
    else:
        centers = _rows(product if shortlist == 0 else None, mean, floating(about, "centers_dtype"), size)
    _check_centers(centers, product, frame)
    if "labels" in tensors:
        fitted["labels_"] = _labels(tensors, len(centers))
    fitted |= feature_names(about, len(mean))
    fitted["objective_history_"] = take(tensors, "objective_history", 1, ("float64",))
    if tensors:
        raise ValueError(f"it must not have a tensor {min(tensors)!r}.")
    fitted |= {"mean_": mean, "product_": product, "cluster_centers_": centers}
    fitted |= {"_n_features_out": len(centers), "_frame": frame, "_fitted_shortlist": shortlist}
    model.__dict__.update(fitted)
    model._make_screen()
    return model


def _nystroem(about: About, tensors: Tensors) -> QKNystroem:
    """The same for a QKNystroem."""
    if about["format_version"] != 1:
        raise ValueError("the header must have format version 1.")
    model = QKNystroem(**_parameters(about, QKNystroem))
    model._check_parameters()
    kernel, degree, coef0 = about.get("fitted_kernel"), about.get("fitted_degree"), about.get("fitted_coef0")
    powers = isinstance(degree, int | float) and is_storable(degree) and degree >= 1
    if kernel not in NAMES or not powers or type(coef0) is not float or not is_storable(coef0):
        raise ValueError("fitted_kernel, fitted_degree and fitted_coef0 must be those of a kernel.")
    fitted: dict[str, Any] = {"gamma_": number(about, "gamma", float), "_fitted_kernel": (kernel, degree, coef0)}
    if not fitted["gamma_"] > 0:
        raise ValueError("gamma must be positive.")
    dtype, mean = floating(about, "working_dtype"), take(tensors, "mean", 1, ("float64",))
    product = take_product(number(about, "n_factors", int), tensors, len(mean), dtype)
    normalization = take(tensors, "normalization", 2, (dtype.name,))
    if product is None or normalization.shape != (product.shape[0], product.shape[0]):
        raise ValueError("normalization must be square, with one row per landmark, and there must be factors.")
    indices = (
        take(tensors, "component_indices", 1, UNSIGNED).astype(np.int64) if "component_indices" in tensors else None
    )
    if indices is not None and (len(indices) != len(normalization) or (indices < 0).any()):
        raise ValueError("component_indices must have one row per landmark.")
    if tensors:
        raise ValueError(f"it must not have a tensor {min(tensors)!r}.")
    fitted |= {"normalization_": normalization, "component_indices_": indices, "n_features_in_": len(mean)}
    model.__dict__.update(fitted | feature_names(about, len(mean)))
    model._set_landmarks(Landmarks(product, mean))
    model._values.values(mean[None].astype(dtype), 1)  # refuses landmarks too large to compare
    return model


def _parameters(about: About, kind: type[QKMeans] | type[QKNystroem]) -> dict[str, Any]:
    parameters = about.get("parameters")
    if not isinstance(parameters, dict) or not all(map(is_storable, parameters.values())):
        raise ValueError("parameters must be finite numbers, strings or null.")
    unknown = parameters.keys() - (kind().get_params().keys() - _NOT_STORED)
    if unknown:
        raise ValueError(
            f"quickmeans {version('quickmeans')} knows no parameter {min(unknown)!r}; "
            f"the file says that it is from version {about.get('library_version')!r}."
        )
    for name in parameters.keys() & {"init", "landmarks", "kernel"}:
        if not isinstance(parameters[name], str):
            raise ValueError(f"{name} must be a string.")
    return parameters


def _shortlist(about: About) -> int | str:
    value = about.get("shortlist")
    if value == "auto" or (type(value) is int and 0 <= value < 2**63):
        return value
    raise ValueError("shortlist must be a whole number or 'auto'.")


def _spherical(about: About) -> bool:
    value = about.get("spherical")
    if not isinstance(value, bool):
        raise ValueError("spherical must be true or false.")
    return value


def _rows(product: SparseProduct | None, mean: NDArray[np.float64], dtype: np.dtype[Any], size: int) -> NDArray[Any]:
    """The centroids where they are the rows of the product."""
    if product is None:
        raise ValueError("it must have a tensor 'centers'.")
    if _is_too_large(product.shape, size):
        raise ValueError(f"its product of shape {product.shape} must not be so much larger than the file.")
    with np.errstate(all="ignore"):
        return (product.toarray().astype(np.float64) + mean).astype(dtype)


def _is_too_large(shape: tuple[int, ...], n_bytes: int) -> bool:
    return 8 * math.prod(shape) > _LARGEST_EXPANSION * n_bytes


def _check_centers(centers: NDArray[Any], product: SparseProduct | None, frame: Frame) -> None:
    if 0 in centers.shape or centers.shape[1] != len(frame.mean):
        raise ValueError("centers must have at least one row, and one column per feature.")
    if product is not None and product.shape != centers.shape:
        raise ValueError(f"its product must have shape {centers.shape}.")
    with np.errstate(all="ignore"):
        scale = Frame(frame.mean, frame.dtype)
        sizes = [frame.mean, scale.offset(centers - frame.mean)]
        if product is not None:
            sizes.append(scale.offset(product.toarray().astype(np.float64)))
        if not all(np.isfinite(size.astype(frame.dtype)).all() for size in sizes):
            raise ValueError(f"the squared norms of its mean and centroids must be finite in {frame.dtype}.")


def _labels(tensors: Tensors, n_clusters: int) -> NDArray[np.int32]:
    labels = take(tensors, "labels", 1, UNSIGNED)
    if (labels >= n_clusters).any():
        raise ValueError(f"labels must be below {n_clusters}.")
    return labels.astype(np.int32)
