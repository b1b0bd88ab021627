r"""Indexes in files: the lists as faiss writes them, and beside them what faiss does not know.

``save(index, "name")`` writes ``name``, a file like those of models, and ``name.<digits>.lists``, which the former
names together with its checksum. An index that is there already is replaced at once, when the former is; until then
the old pair stays whole.
"""

import hashlib
import io
import os
import re
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from quickmeans.files.container import (
    UNSIGNED,
    About,
    InvalidModelError,
    Tensors,
    encode,
    feature_names,
    is_storable,
    narrow,
    number,
    plain,
    read,
    take,
    write,
)
from quickmeans.files.models import encode_model, read_model
from quickmeans.neighbors import QKNeighbors
from quickmeans.neighbors_transformer import QKNeighborsTransformer
from quickmeans.search.lists import check_payload, faiss_library
from quickmeans.search.metrics import METRICS

KINDS = {kind.__name__: kind for kind in (QKNeighbors, QKNeighborsTransformer)}
_NOT_STORED = {"n_threads", "quantizer"}
_LISTS_NAME = re.compile(r"\.([0-9a-f]{16})\.lists$")


def save(index: QKNeighbors, path: str | os.PathLike[str]) -> None:
    """Write a fitted index to two files; `n_threads` and a `random_state` that is a generator are not stored."""
    index._check_parameters()
    target = Path(os.fsdecode(path)).resolve()
    before = _lists_of(target)
    lists, digest = _write_lists(index, target)
    removed = np.flatnonzero(index._removed)
    tensors = {
        "quantizer": np.frombuffer(encode_model(index.quantizer_, labels=False), np.uint8),
        "removed": narrow(removed, len(index._removed)),
    }
    about = {
        "parameters": _parameters(index),
        "metric": index._fitted_metric,
        "nprobe": index.nprobe_,
        "n_features_in": index.n_features_in_,
        "n_ids": len(index._removed),
        "faiss_version": faiss_library().__version__,
        "lists": lists.name,
        "lists_sha256": digest,
        "feature_names_in": [str(name) for name in getattr(index, "feature_names_in_", ())],
    }
    try:
        write(target, encode(type(index).__name__, about, tensors))
    except BaseException:
        if lists != before:
            lists.unlink(missing_ok=True)
        raise
    if before is not None and before != lists:
        before.unlink(missing_ok=True)


def _parameters(index: QKNeighbors) -> dict[str, Any]:
    given = {name: plain(value) for name, value in index.get_params(deep=False).items() if name not in _NOT_STORED}
    if not isinstance(given["random_state"], int | None):
        del given["random_state"]
    return given


def _write_lists(index: QKNeighbors, target: Path) -> tuple[Path, str]:
    """The lists, under a name made of that of the index and of their checksum."""
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        faiss_library().write_index(index._lists, str(temporary))
        with open(temporary, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        lists = _own_lists(target, digest[:16])
        os.replace(temporary, lists)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return lists, digest


def _lists_of(target: Path) -> Path | None:
    """The lists of the index that is there, if one is: by its own name, for others may be those of a file it was copied
    from."""
    try:
        with open(target, "rb") as file:
            about, _, _ = read(file)
    except (OSError, InvalidModelError):
        return None
    found = _LISTS_NAME.search(str(about.get("lists"))) if about.get("class") in KINDS else None
    return None if found is None else _own_lists(target, found[1])


def _own_lists(target: Path, digits: str) -> Path:
    return target.with_name(f"{target.name}.{digits}.lists")


def _lists_path(target: Path, about: About) -> Path | None:
    """Beside the file, by a name that belongs to it (the file may have been renamed, together with its lists)."""
    name = about.get("lists")
    found = _LISTS_NAME.search(name) if isinstance(name, str) else None
    if found is None or Path(str(name)).name != name:
        return None
    own = _own_lists(target, found[1])
    return own if own.exists() else target.with_name(str(name))


def read_index(about: About, tensors: Tensors, path: Path) -> QKNeighbors:
    """The index that a file describes; a ValueError or TypeError says what is wrong with the contents."""
    lists = _read_lists(about, path)
    index = KINDS[about["class"]](**_known(about))
    try:
        quantizer = read_model(io.BytesIO(take(tensors, "quantizer", 1, ("uint8",)).tobytes()))
    except InvalidModelError as error:
        raise ValueError(f"its quantizer {error}") from None
    n_ids, nprobe = number(about, "n_ids", int), number(about, "nprobe", int)
    removed = take(tensors, "removed", 1, UNSIGNED)
    K, D = quantizer.cluster_centers_.shape
    if (lists.nlist, lists.d) != (K, D) or number(about, "n_features_in", int) != D:
        raise ValueError("its lists must be those of its quantizer.")
    if n_ids - len(removed) != lists.ntotal or len(removed) > n_ids or (removed >= n_ids).any():
        raise ValueError("its ids must be those of its lists.")
    if about.get("metric") not in METRICS or not 1 <= nprobe <= K:
        raise ValueError("its metric or nprobe must be one that there is.")
    if tensors:
        raise ValueError(f"it must not have a tensor {min(tensors)!r}.")
    index.__dict__.update(feature_names(about, D))
    index.quantizer_, index._lists, index.nprobe_, index.n_features_in_ = quantizer, lists, nprobe, D
    index._fitted_metric, index._removed = about["metric"], np.zeros(n_ids, np.bool_)
    index._removed[removed.astype(np.int64)] = True
    return index


def _known(about: About) -> dict[str, Any]:
    """The parameters, checked to be such as the class has."""
    parameters = about.get("parameters")
    if not isinstance(parameters, dict) or not all(map(is_storable, parameters.values())):
        raise ValueError("parameters must be finite numbers, strings or null.")
    unknown = parameters.keys() - (KINDS[about["class"]]().get_params().keys() - _NOT_STORED)
    if unknown:
        raise ValueError(f"it has a parameter {min(unknown)!r}, which this version does not know.")
    check_payload(parameters.get("payload", "flat"))
    return parameters


def _read_lists(about: About, path: Path) -> Any:
    """The lists, once their checksum is found to be right: faiss does not look closely at what it reads."""
    lists = _lists_path(path, about)
    if lists is None:
        raise ValueError("it does not name the file of its lists.")
    try:
        with open(lists, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise FileNotFoundError(f"{lists}, the lists of {path}, is missing; keep the two files together.") from None
    if digest != about.get("lists_sha256"):
        raise ValueError(f"its lists in {lists.name} are damaged, or those of another index.")
    try:
        return faiss_library().read_index(str(lists))
    except RuntimeError as error:
        raise ValueError(f"faiss {faiss_library().__version__} cannot read its lists: {error}") from None
