r"""Fitted models in files that hold numbers only: no code runs when they are read.

A file is one safetensors file. Its metadata has one entry, ``quickmeans``: a JSON object with the version of the
format, the class and version that wrote it, parameters, fitted numbers, and the SHA-256 of the whole file as it is with
zeros for those 64 digits. So any change is found, though not one by somebody who means to forge a file.

The tensors of format version 1 are ``mean``, ``objective_history``, ``centers`` unless they follow from the product,
``labels`` if asked for, and for factor q from the left ``factors.q``, or its ``.indptr``, ``.indices`` and ``.data``.
"""

import hashlib
import json
import math
import os
import re
import secrets
import stat
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors
from sklearn.utils.validation import check_is_fitted

from quickmeans.cluster import QKMeans
from quickmeans.lloyd.points import Frame
from quickmeans.transform import SparseProduct

FORMAT_VERSION = 1

_KEY = "quickmeans"
_DIGITS = 64
_CHECKSUM = re.compile(rb'\\"sha256\\":\\"([0-9a-f]{64})\\"')  # JSON within a JSON string
_LONGEST_HEADER = 100_000_000  # what safetensors reads
# Centroids that follow from the product are stored all the same if they would be so many times larger than the file:
# no file takes far more memory than its size suggests.
_LARGEST_EXPANSION = 1024
_FLOATS = ("float32", "float64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_NUMBERS: dict[str, type[int] | type[float]] = {
    "inertia": float,
    "reach": float,
    "n_candidates": float,
    "n_iter": int,
    "n_features_in": int,
}
_NOT_STORED = {"n_threads", "callback"}


class InvalidModelError(ValueError):
    """A file is no model, is damaged, or is of a format that this version does not know."""


def save(model: QKMeans, path: str | os.PathLike[str], *, labels: bool = False) -> None:
    """Write a fitted model to a file, to be read by :func:`load`.

    The file appears complete or not at all; one that is there already stays until then. Not stored are `n_threads`,
    `callback`, an `init` that is an array or a callable, and a `random_state` that is a generator: the loaded model has
    their defaults. With ``shortlist=0`` the dense centroids are not stored either, but computed when it is loaded.

    Parameters
    ----------
    model : QKMeans
        Fitted.
    path : str or path
    labels : bool
        Whether to store `labels_`, one number for every row that the model was fitted to.
    """
    if type(model) is not QKMeans:
        raise TypeError(f"model must be a QKMeans, got {type(model).__name__}.")
    check_is_fitted(model)
    if labels and not hasattr(model, "labels_"):
        raise ValueError("The model has no labels_ to store, having been loaded without; save it with labels=False.")
    _write(Path(os.fsdecode(path)), _encode(model, labels))


def load(path: str | os.PathLike[str]) -> QKMeans:
    """Read a model that :func:`save` has written.

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
            return _read(file)
        except InvalidModelError as error:
            raise InvalidModelError(f"{name} {error}") from None


# ---- writing ------------------------------------------------------------------------------------------------------


def _encode(model: QKMeans, labels: bool) -> bytes:
    """The contents of the file."""
    K = len(model.cluster_centers_)
    tensors = {"mean": model.mean_, "objective_history": model.objective_history_}
    factors = () if model.product_ is None else model.product_.factors
    for q, S in enumerate(factors):
        tensors |= _factor_tensors(f"factors.{q}", S)
    if labels:
        tensors["labels"] = _narrow(model.labels_, K - 1)
    follow = factors and model._fitted_shortlist == 0
    if not follow or _is_too_large(model.cluster_centers_.shape, sum(tensor.nbytes for tensor in tensors.values())):
        tensors["centers"] = model.cluster_centers_
    about = {
        "format_version": FORMAT_VERSION,
        "sha256": "0" * _DIGITS,
        "class": type(model).__name__,
        "library_version": version("quickmeans"),
        "parameters": _storable_parameters(model),
        "shortlist": _plain(model._fitted_shortlist),
        "spherical": model._frame.spherical,
        "working_dtype": model._frame.dtype.name,
        "centers_dtype": model.cluster_centers_.dtype.name,
        "n_factors": len(factors),
        "feature_names_in": [str(name) for name in getattr(model, "feature_names_in_", ())],
    }
    about |= {name: kind(getattr(model, name + "_")) for name, kind in _NUMBERS.items()}
    text = json.dumps(about, sort_keys=True, separators=(",", ":"), allow_nan=False)
    data = safetensors.save({name: np.ascontiguousarray(T) for name, T in tensors.items()}, {_KEY: text})
    if _header_length(data) > _LONGEST_HEADER:
        raise ValueError(f"The names of the features are too long: a header has at most {_LONGEST_HEADER} bytes.")
    return _signed(data)


def _factor_tensors(name: str, S: Any) -> dict[str, NDArray[Any]]:
    if not sp.issparse(S):
        return {name: S}
    return {
        f"{name}.indptr": _narrow(S.indptr, S.nnz),
        f"{name}.indices": _narrow(S.indices, S.shape[1] - 1),
        f"{name}.data": S.data,
    }


def _narrow(indices: NDArray[Any], largest: int) -> NDArray[Any]:
    """Indices in the smallest type that has room."""
    return indices.astype(np.min_scalar_type(largest))


def _storable_parameters(model: QKMeans) -> dict[str, Any]:
    model._check_parameters()
    given = model.get_params(deep=False)
    parameters = {name: _plain(value) for name, value in given.items() if name not in _NOT_STORED}
    if not isinstance(parameters["init"], str):
        del parameters["init"]
    if not isinstance(parameters["random_state"], int | None):
        del parameters["random_state"]
    for name, value in parameters.items():
        if not _is_storable(value):
            raise ValueError(f"{name} must be a finite number, a string or None to be stored, got {value!r}.")
    return parameters


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_storable(value: Any) -> bool:
    if isinstance(value, int | float):
        return abs(value) < (2**63 if isinstance(value, int) else math.inf)
    return value is None or isinstance(value, str)


def _write(path: Path, data: bytes) -> None:
    """Replace the file, or make it, at once; its permissions are those that writing to it would give."""
    target = path.resolve()
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    with open(temporary, "xb") as file:
        try:
            file.write(data)
            file.flush()
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


# ---- the checksum -------------------------------------------------------------------------------------------------


def _header_length(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _signed(data: bytes) -> bytes:
    """The same bytes with their checksum."""
    found = _CHECKSUM.search(data, 8, 8 + _header_length(data))
    assert found is not None
    begin, end = found.span(1)
    return data[:begin] + _digest(data, begin) + data[end:]


def _digest(data: bytes, begin: int) -> bytes:
    """SHA-256 of the data with zeros from `begin` on where the checksum is, as hexadecimal digits."""
    digest = hashlib.sha256(memoryview(data)[:begin])
    digest.update(b"0" * _DIGITS)
    digest.update(memoryview(data)[begin + _DIGITS :])
    return digest.hexdigest().encode()


# ---- reading ------------------------------------------------------------------------------------------------------


def _read(file: BinaryIO) -> QKMeans:
    """The model in a file; errors are InvalidModelErrors, with what comes after the name of the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    prefix = file.read(8)
    length = _header_length(prefix)
    if size < 8 or length > min(size - 8, _LONGEST_HEADER):
        raise InvalidModelError("is cut short, or is no safetensors file.")
    header = file.read(length)
    about = _about(header)
    data = prefix + header + file.read()
    found = _CHECKSUM.search(data, 8, 8 + length)
    if found is None or found[1] != _digest(data, found.start(1)):
        raise InvalidModelError("is damaged: its checksum is not that of its contents.")
    try:
        return _model(about, safetensors.load(data), len(data))
    except (ValueError, TypeError, KeyError, SafetensorError) as error:
        raise InvalidModelError(f"is not a valid model: {error}") from None


def _about(header: bytes) -> dict[str, Any]:
    """What the header says about the model, if it is one and of a format that is known."""
    try:
        whole = json.loads(header.decode())
    except (ValueError, RecursionError):
        raise InvalidModelError("is damaged, or is no safetensors file: its header is not JSON.") from None
    metadata = whole.get("__metadata__") if isinstance(whole, dict) else None
    text = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise InvalidModelError("is not a model of quickmeans.")
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or type(about.get("format_version")) is not int:
        raise InvalidModelError("is damaged: its header does not say of which format it is.")
    if about["format_version"] > FORMAT_VERSION:
        raise InvalidModelError(
            f"has format version {about['format_version']}, but quickmeans {version('quickmeans')} reads versions up "
            f"to {FORMAT_VERSION}; a newer quickmeans will read it."
        )
    return about


def _model(about: dict[str, Any], tensors: dict[str, NDArray[Any]], size: int) -> QKMeans:
    """The model; a ValueError or TypeError says what is wrong with the contents."""
    if about["format_version"] != 1 or about.get("class") != QKMeans.__name__:
        raise ValueError("the header must have format version 1 and class QKMeans.")
    fitted = {name + "_": _number(about, name, kind) for name, kind in _NUMBERS.items()}
    if not 0 <= fitted["reach_"] <= 1:
        raise ValueError("reach must be between 0 and 1.")
    model = QKMeans(**_parameters(about))
    model._check_parameters()
    mean = _tensor(tensors, "mean", 1, ("float64",))
    if fitted["n_features_in_"] != len(mean):
        raise ValueError("n_features_in must be the length of the mean.")
    frame, shortlist = Frame(mean, _dtype(about, "working_dtype"), _spherical(about)), _shortlist(about)
    product = _product(about, tensors, len(mean), frame.dtype)
    if "centers" in tensors:
        centers = _tensor(tensors, "centers", 2, (_dtype(about, "centers_dtype").name,))
    else:
        centers = _rows(product if shortlist == 0 else None, mean, _dtype(about, "centers_dtype"), size)
    _check_centers(centers, product, frame)
    if "labels" in tensors:
        fitted["labels_"] = _labels(tensors, len(centers))
    if names := _feature_names(about, len(mean)):
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    fitted["objective_history_"] = _tensor(tensors, "objective_history", 1, ("float64",))
    if tensors:
        raise ValueError(f"it must not have a tensor {min(tensors)!r}.")
    fitted |= {"mean_": mean, "product_": product, "cluster_centers_": centers}
    fitted |= {"_n_features_out": len(centers), "_frame": frame, "_fitted_shortlist": shortlist}
    model.__dict__.update(fitted)
    model._make_screen()
    return model


def _number(about: dict[str, Any], name: str, kind: type[int] | type[float]) -> Any:
    value = about.get(name)
    if type(value) is not kind or not _is_storable(value):
        raise ValueError(f"{name} must be a finite {kind.__name__}.")
    return value


def _parameters(about: dict[str, Any]) -> dict[str, Any]:
    parameters = about.get("parameters")
    if not isinstance(parameters, dict) or not all(map(_is_storable, parameters.values())):
        raise ValueError("parameters must be finite numbers, strings or null.")
    unknown = parameters.keys() - (QKMeans().get_params().keys() - _NOT_STORED)
    if unknown:
        raise ValueError(
            f"quickmeans {version('quickmeans')} knows no parameter {min(unknown)!r}; "
            f"the file says that it is from version {about.get('library_version')!r}."
        )
    if not isinstance(parameters.get("init", ""), str):
        raise ValueError("init must be a string.")
    return parameters


def _shortlist(about: dict[str, Any]) -> int | str:
    value = about.get("shortlist")
    if value == "auto" or (type(value) is int and 0 <= value < 2**63):
        return value
    raise ValueError("shortlist must be a whole number or 'auto'.")


def _spherical(about: dict[str, Any]) -> bool:
    value = about.get("spherical")
    if not isinstance(value, bool):
        raise ValueError("spherical must be true or false.")
    return value


def _dtype(about: dict[str, Any], name: str) -> np.dtype[Any]:
    value = about.get(name)
    if value not in _FLOATS:
        raise ValueError(f"{name} must be float32 or float64.")
    return np.dtype(str(value))


def _feature_names(about: dict[str, Any], n_features: int) -> list[str]:
    names = about.get("feature_names_in")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature_names_in must be a list of strings.")
    if len(names) not in (0, n_features):
        raise ValueError(f"there must be {n_features} feature names, or none.")
    return names


def _tensor(tensors: dict[str, NDArray[Any]], name: str, n_axes: int, dtypes: tuple[str, ...]) -> NDArray[Any]:
    """The tensor, taken out: a copy, checked to have finite numbers."""
    if name not in tensors:
        raise ValueError(f"it must have a tensor {name!r}.")
    tensor = tensors.pop(name)
    if tensor.dtype.name not in dtypes or tensor.ndim != n_axes:
        raise ValueError(f"{name} must have {n_axes} axes and dtype {' or '.join(dtypes)}.")
    if not np.isfinite(tensor).all():
        raise ValueError(f"{name} must be finite.")
    return tensor.copy()


def _product(
    about: dict[str, Any], tensors: dict[str, NDArray[Any]], n_features: int, dtype: np.dtype[Any]
) -> SparseProduct | None:
    """The product, from right to left: the rows of a factor are the columns of the one before it."""
    factors: list[Any] = []
    n_columns = n_features
    for q in reversed(range(_number(about, "n_factors", int))):
        factors.insert(0, _factor(tensors, f"factors.{q}", n_columns, dtype))
        n_columns = factors[0].shape[0]
    if not factors:
        return None
    product = SparseProduct(factors)
    if product.shape[1] != n_features:
        raise ValueError(f"its product must have {n_features} columns.")
    return product


def _factor(tensors: dict[str, NDArray[Any]], name: str, n_columns: int, dtype: np.dtype[Any]) -> Any:
    if name in tensors:
        return _tensor(tensors, name, 2, (dtype.name,))
    indptr, indices = (_tensor(tensors, f"{name}.{part}", 1, _UNSIGNED) for part in ("indptr", "indices"))
    data = _tensor(tensors, f"{name}.data", 1, (dtype.name,))
    if len(indptr) < 2 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] != len(data):
        raise ValueError(f"{name}.indptr must ascend from 0 to the number of coefficients.")
    if len(indices) != len(data) or (indices >= n_columns).any():
        raise ValueError(f"{name}.indices must have one column below {n_columns} per coefficient.")
    return sp.csr_array((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=(len(indptr) - 1, n_columns))


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


def _labels(tensors: dict[str, NDArray[Any]], n_clusters: int) -> NDArray[np.int32]:
    labels = _tensor(tensors, "labels", 1, _UNSIGNED)
    if (labels >= n_clusters).any():
        raise ValueError(f"labels must be below {n_clusters}.")
    return labels.astype(np.int32)
