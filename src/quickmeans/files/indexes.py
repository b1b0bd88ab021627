r"""Indexes in files: the lists as faiss writes them, and beside them a file with everything else.

The file ``name`` is like that of a model. It names the file of its lists, ``name.<digits>.lists``, and has its
checksum. An index that is there already is replaced when ``name`` is; until then the old pair stays whole.
"""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from quickmeans import atomic
from quickmeans.files import container
from quickmeans.files.lists import Layout, read_layout
from quickmeans.state import UNSIGNED, InvalidModelError, State

_LISTS_NAME = re.compile(r"\.([0-9a-f]{16})\.lists$")
Write = Callable[[bytes], object]


def write(path: str | os.PathLike[str], state: State, write_lists: Callable[[Write], None]) -> None:
    """Write an index to two files; `write_lists` gets a function that takes the bytes of the lists."""
    target = Path(os.fsdecode(path)).resolve()
    before = _lists_of(target)
    lists, digest = _write_lists(target, write_lists)
    state.facts |= {"lists": lists.name, "lists_sha256": digest}
    try:
        container.write(target, state)
    except BaseException:
        if lists != before:
            lists.unlink(missing_ok=True)
        raise
    if before is not None and before != lists:
        before.unlink(missing_ok=True)


def _write_lists(target: Path, write_lists: Callable[[Write], None]) -> tuple[Path, str]:
    """Write the lists to a file whose name is made of that of the index and of their checksum; give both."""
    digest = hashlib.sha256()
    with atomic.temporary_beside(target) as temporary:
        with open(temporary, "xb") as file:

            def write(data: bytes) -> int:
                digest.update(data)
                return file.write(data)

            write_lists(write)
        lists = _own_lists(target, digest.hexdigest()[:16])
        atomic.put(temporary, lists)
    return lists, digest.hexdigest()


def _lists_of(target: Path) -> Path | None:
    """The lists that belong to the index that is there, if one is: not those of a file from which it was copied."""
    try:
        facts = container.read(target).facts
    except (OSError, InvalidModelError):
        return None
    name = _LISTS_NAME.search(str(facts.get("lists")))
    return None if name is None else _own_lists(target, name[1])


def _own_lists(target: Path, digits: str) -> Path:
    return target.with_name(f"{target.name}.{digits}.lists")


def checked_lists(path: str | os.PathLike[str], state: State) -> Path:
    """The file of the lists that belong to a state, in which faiss can find no number that misleads it.

    They are beside the file at `path`, under its name or under the one that the state says (the file may have been
    copied or renamed, with or without its lists).
    """
    target = Path(os.fsdecode(path)).resolve()
    named = state.facts.get("lists")
    name = _LISTS_NAME.search(named) if isinstance(named, str) else None
    if name is None or Path(str(named)).name != named:
        raise ValueError("it does not name the file of its lists.")
    own = _own_lists(target, name[1])
    lists = own if own.exists() else target.with_name(named)
    try:
        with open(lists, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise FileNotFoundError(f"{lists}, the lists of {path}, is missing; keep the two files together.") from None
    if digest != state.facts.get("lists_sha256"):
        raise ValueError(f"its lists in {lists.name} are damaged, or those of another index.")
    try:
        _check_rows(read_layout(np.memmap(lists, np.uint8, mode="r").data), state)
    except ValueError as error:
        raise ValueError(f"its lists in {lists.name} are not valid: {error}") from None
    return lists


def _check_rows(layout: Layout, state: State) -> None:
    """Refuse lists with other rows than the state says: all ids below `n_ids` once, but for those of removed rows."""
    n_ids, removed = state.number("n_ids", int, 0), state.tensor("removed", 1, UNSIGNED)
    if n_ids != len(removed) + int(layout.sizes.sum()) or (removed >= n_ids).any():
        raise ValueError(f"they must have {n_ids} rows less {len(removed)} that were removed.")
    known = np.zeros(n_ids, np.bool_)
    known[removed] = True
    for ids in layout.ids():
        if (ids < 0).any() or (ids >= n_ids).any() or known[ids].any():
            raise ValueError(f"the ids of their rows must be below {n_ids}, and each must occur once.")
        known[ids] = True
    if not known.all():
        raise ValueError(f"the ids of their rows must be below {n_ids}, and each must occur once.")
    if (layout.metric == "euclidean") != (state.facts.get("metric") == "euclidean"):
        raise ValueError(f"their metric must be that of the index, got {layout.metric}.")
