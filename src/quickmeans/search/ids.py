"""Ids of rows: row numbers in the order in which rows were added, or whole numbers or strings of the user's own."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quickmeans.state import UNSIGNED, State, Tensors, narrow


@dataclass(frozen=True)
class RowIds:
    """The ids of all rows that were ever added, by row number.

    A row number is never used again after a removal. An id of one's own is free again when its row is removed.

    Attributes
    ----------
    removed : array of bool
        Which rows were removed.
    own : array or None
        Ids of one's own, int64 or objects that are str; None if row numbers are the ids.
    """

    removed: NDArray[np.bool_]
    own: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.removed)

    def extended(self, n_rows: int, ids: Any) -> "RowIds":
        """The same with so many rows more, which have these ids."""
        removed = np.concatenate([self.removed, np.zeros(n_rows, np.bool_)])
        if ids is None and self.own is None:
            return RowIds(removed)
        if ids is None or (self.own is None and len(self)):
            has = "row numbers as ids; give none" if ids is not None else "ids of your own; give one for each row"
            raise ValueError(f"This index has {has}.")
        new = _as_ids(ids, n_rows)
        if self.own is not None and self.own.dtype != new.dtype:
            kinds = {"i": "whole numbers", "O": "strings"}
            raise TypeError(f"The ids of this index are {kinds[self.own.dtype.kind]}, got {kinds[new.dtype.kind]}.")
        result = RowIds(removed, new if self.own is None else np.concatenate([self.own, new]))
        result.refuse_repeated()
        return result

    def refuse_repeated(self) -> None:
        """Refuse ids that two rows have."""
        ids, rows = self._sorted
        same = np.flatnonzero(ids[1:] == ids[:-1])
        if len(same):
            first, second = sorted(rows[same[0] : same[0] + 2])
            raise ValueError(f"ids must differ, but rows {first} and {second} both have {ids[same[0]]!r}.")

    def without(self, rows: NDArray[np.int64]) -> "RowIds":
        """The same with these rows removed."""
        removed = self.removed.copy()
        removed[rows] = True
        return replace(self, removed=removed)

    def of(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of these rows."""
        return rows if self.own is None else self.own[rows]

    def rows(self, ids: ArrayLike) -> NDArray[np.int64]:
        """The different rows with these ids, in order; an id that no row has is refused."""
        if self.own is None:
            return _known_numbers(ids, self.removed)
        given = _as_ids(ids, None) if np.size(ids) else self.own[:0]
        if given.dtype != self.own.dtype:
            raise TypeError(f"ids must be {'strings' if self.own.dtype == object else 'whole numbers'}, got {ids!r}.")
        given = np.unique(given)
        known, rows = self._sorted
        at = np.minimum(np.searchsorted(known, given), max(len(known) - 1, 0))
        missing = given if not len(known) else given[known[at] != given]
        _refuse_missing(missing, len(given))
        return np.sort(rows[at])

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The ids of the rows that are there in ascending order, and their rows."""
        assert self.own is not None
        rows = np.flatnonzero(~self.removed)
        order = np.argsort(self.own[rows], kind="stable")
        return self.own[rows][order], rows[order]

    # ---- files ----------------------------------------------------------------------------------------------------

    def tensors(self) -> Tensors:
        """The arrays of a file."""
        tensors: Tensors = {"removed": narrow(np.flatnonzero(self.removed), len(self))}
        if self.own is None:
            return tensors
        if self.own.dtype != object:
            return tensors | {"ids": self.own}
        texts = [text.encode() for text in self.own]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return tensors | {
            "ids.text": np.frombuffer(b"".join(texts), np.uint8),
            "ids.ends": narrow(ends, int(ends[-1]) if len(ends) else 0),
        }

    @classmethod
    def from_state(cls, state: State) -> "RowIds":
        """The ids that a file holds; a ValueError says what is wrong with them."""
        removed = np.zeros(state.number("n_ids", int, 0), np.bool_)
        removed[state.tensor("removed", 1, UNSIGNED)] = True
        own = _stored(state)
        if own is None:
            return cls(removed)
        if len(own) != len(removed):
            raise ValueError(f"there must be {len(removed)} ids, got {len(own)}.")
        result = cls(removed, own)
        result.refuse_repeated()
        return result


def _stored(state: State) -> NDArray[Any] | None:
    if "ids" in state.tensors:
        return state.tensor("ids", 1, ("int64",))
    if "ids.ends" not in state.tensors:
        return None
    data, ends = state.tensor("ids.text", 1, ("uint8",)).tobytes(), state.tensor("ids.ends", 1, UNSIGNED)
    if (ends[1:] < ends[:-1]).any() or (int(ends[-1]) if len(ends) else 0) != len(data):
        raise ValueError("ids.ends must ascend to the length of ids.text.")
    begins = [0, *ends.tolist()]
    texts = [data[begin:end].decode() for begin, end in pairwise(begins)]
    return _objects(texts)


def _objects(values: list[str]) -> NDArray[Any]:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _as_ids(ids: Any, n_rows: int | None) -> NDArray[Any]:
    """Ids of the user's own as an array: int64, or objects that are str."""
    has_text = isinstance(ids, list | tuple) and any(isinstance(value, str) for value in ids)
    given = np.asarray(ids, object if has_text else None)  # arrays of str lose zeros at the end
    given = given[None] if n_rows is None and given.ndim == 0 else given
    if given.ndim != 1 or (n_rows is not None and len(given) != n_rows):
        wanted = "a list" if n_rows is None else f"{n_rows}, one for each row"
        raise ValueError(f"ids must be {wanted}, got {len(given) if given.ndim == 1 else f'shape {given.shape}'}.")
    if given.dtype.kind in "iu":
        if (given > np.iinfo(np.int64).max).any():
            raise ValueError(f"ids must be below 2**63, got {given.max()}.")
        return given.astype(np.int64)
    values = given.tolist()
    if not all(isinstance(value, str) for value in values):
        other = next(value for value in values if not isinstance(value, str))
        raise TypeError(f"ids must be whole numbers or strings, got {other!r}.")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        raise ValueError("ids must be text that UTF-8 can write; one of them has half of a surrogate pair.") from None
    return _objects(values)


def _known_numbers(ids: ArrayLike, removed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The different ids, in order; every one must be the number of a row that is not `removed`."""
    given = np.asarray(ids)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"ids must be whole numbers, got an array of {given.dtype}.")
    given = np.unique(given)
    unknown = given[(given < 0) | (given >= len(removed))]
    _refuse_missing(unknown if len(unknown) else given[removed[given.astype(np.int64)]], len(given))
    return given.astype(np.int64)


def _refuse_missing(missing: NDArray[Any], n_given: int) -> None:
    if len(missing):
        raise ValueError(f"The index has no row with id {missing[0]}; {len(missing)} of the {n_given} ids are unknown.")
