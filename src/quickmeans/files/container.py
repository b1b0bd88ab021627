r"""Files that hold numbers only: no code runs when they are read.

A file is one safetensors file. Its metadata has one entry, ``quickmeans``: a JSON object with the version of the
format, the class and version that wrote it, whatever else that class says of itself, and the SHA-256 of the whole file
as it is with zeros for those 64 digits. So any change is found, though not one by somebody who means to forge a file.

A product has for factor q from the left the tensor ``factors.q``, or its ``.indptr``, ``.indices`` and ``.data``.
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

from quickmeans.transform import SparseProduct

FORMAT_VERSION = 1
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
About = dict[str, Any]
Tensors = dict[str, NDArray[Any]]

_KEY = "quickmeans"
_DIGITS = 64
_CHECKSUM = re.compile(rb'\\"sha256\\":\\"([0-9a-f]{64})\\"')  # JSON within a JSON string
_LONGEST_HEADER = 100_000_000  # what safetensors reads


class InvalidModelError(ValueError):
    """A file is no model, is damaged, or is of a format that this version does not know."""


# ---- writing ------------------------------------------------------------------------------------------------------


def encode(kind: str, about: About, tensors: Tensors) -> bytes:
    """The contents of a file for an object of the class `kind`."""
    about = about | {
        "format_version": FORMAT_VERSION,
        "sha256": "0" * _DIGITS,
        "class": kind,
        "library_version": version("quickmeans"),
    }
    text = json.dumps(about, sort_keys=True, separators=(",", ":"), allow_nan=False)
    data = safetensors.save({name: np.ascontiguousarray(T) for name, T in tensors.items()}, {_KEY: text})
    if _header_length(data) > _LONGEST_HEADER:
        raise ValueError(f"The names of the features are too long: a header has at most {_LONGEST_HEADER} bytes.")
    return signed(data)


def product_tensors(product: SparseProduct | None, prefix: str = "factors") -> Tensors:
    """The factors, by name."""
    tensors: Tensors = {}
    for q, S in enumerate(() if product is None else product.factors):
        name = f"{prefix}.{q}"
        if sp.issparse(S):
            tensors[f"{name}.indptr"] = narrow(S.indptr, S.nnz)
            tensors[f"{name}.indices"] = narrow(S.indices, S.shape[1] - 1)
            tensors[f"{name}.data"] = S.data
        else:
            tensors[name] = S
    return tensors


def narrow(indices: NDArray[Any], largest: int) -> NDArray[Any]:
    """Indices in the smallest type that has room."""
    return indices.astype(np.min_scalar_type(largest))


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def is_storable(value: Any) -> bool:
    """Whether it is a finite number, a string or None."""
    if isinstance(value, int | float):
        return abs(value) < (2**63 if isinstance(value, int) else math.inf)
    return value is None or isinstance(value, str)


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file, or make it, at once; its permissions are those that writing to it would give."""
    target = Path(os.fsdecode(path)).resolve()
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


def signed(data: bytes) -> bytes:
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


def read(file: BinaryIO) -> tuple[About, Tensors, int]:
    """What a file says of itself, its tensors, and its size.

    Errors are InvalidModelErrors, with what comes after the name of the file.
    """
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
        return about, safetensors.load(data), len(data)
    except (ValueError, TypeError, KeyError, SafetensorError) as error:
        raise InvalidModelError(f"is not a valid model: {error}") from None


def _about(header: bytes) -> About:
    """What the header says, if it is of a format that is known."""
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


def number(about: About, name: str, kind: type[int] | type[float]) -> Any:
    """A number of that kind that the header must have."""
    value = about.get(name)
    if type(value) is not kind or not is_storable(value):
        raise ValueError(f"{name} must be a finite {kind.__name__}.")
    return value


def floating(about: About, name: str) -> np.dtype[Any]:
    """A floating type that the header must name."""
    value = about.get(name)
    if value not in ("float32", "float64"):
        raise ValueError(f"{name} must be float32 or float64.")
    return np.dtype(str(value))


def feature_names(about: About, n_features: int) -> dict[str, NDArray[Any]]:
    """`feature_names_in_` as it is set, if the header has names."""
    names = about.get("feature_names_in")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("feature_names_in must be a list of strings.")
    if len(names) not in (0, n_features):
        raise ValueError(f"there must be {n_features} feature names, or none.")
    return {"feature_names_in_": np.array(names, dtype=object)} if names else {}


def take(tensors: Tensors, name: str, n_axes: int, dtypes: tuple[str, ...]) -> NDArray[Any]:
    """The tensor, taken out: a copy, checked to have finite numbers."""
    if name not in tensors:
        raise ValueError(f"it must have a tensor {name!r}.")
    tensor = tensors.pop(name)
    if tensor.dtype.name not in dtypes or tensor.ndim != n_axes:
        raise ValueError(f"{name} must have {n_axes} axes and dtype {' or '.join(dtypes)}.")
    if not np.isfinite(tensor).all():
        raise ValueError(f"{name} must be finite.")
    return tensor.copy()


def take_product(
    n_factors: int, tensors: Tensors, n_columns: int, dtype: np.dtype[Any], prefix: str = "factors"
) -> SparseProduct | None:
    """The product, from right to left: the rows of a factor are the columns of the one before it."""
    factors: list[Any] = []
    width = n_columns
    for q in reversed(range(n_factors)):
        factors.insert(0, _factor(tensors, f"{prefix}.{q}", width, dtype))
        width = factors[0].shape[0]
    if not factors:
        return None
    product = SparseProduct(factors)
    if product.shape[1] != n_columns:
        raise ValueError(f"its product must have {n_columns} columns.")
    return product


def _factor(tensors: Tensors, name: str, n_columns: int, dtype: np.dtype[Any]) -> Any:
    if name in tensors:
        return take(tensors, name, 2, (dtype.name,))
    indptr, indices = (take(tensors, f"{name}.{part}", 1, UNSIGNED) for part in ("indptr", "indices"))
    data = take(tensors, f"{name}.data", 1, (dtype.name,))
    if len(indptr) < 2 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] != len(data):
        raise ValueError(f"{name}.indptr must ascend from 0 to the number of coefficients.")
    if len(indices) != len(data) or (indices >= n_columns).any():
        raise ValueError(f"{name}.indices must have one column below {n_columns} per coefficient.")
    return sp.csr_array((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=(len(indptr) - 1, n_columns))
