"""Which columns of a table are features: by name, by pattern, or all that hold numbers."""

import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.callers import warn
from quickmeans.data.reading import Note, Reading

NUMBER, LIST, INDEX, NOTHING = (
    "numbers",
    "lists of numbers",
    "an index",
    "no values",
)  # what a column holds; others are named by their type
_SHOWN = 20  # names of columns in a message
_WILD = "*?["
_LEAST_IDS, _MOST_IDS = 20, 1000  # rows in which an id must be different, and rows that are looked at


def select(kinds: Mapping[str, str], reading: Reading, table: str) -> list[str]:
    """The columns to read, of all columns with what they hold: numbers, or one column of lists of numbers.

    Columns that are named must hold numbers. Others that do not are left out, with a note.
    """
    if not kinds:
        raise ValueError(f"{table} has no columns, or no files; there must be one at least.")
    named, found = matching(list(kinds), reading.columns, table)
    excluded = set(matching(list(kinds), reading.exclude, table)[1]) if reading.exclude else set()
    found = [name for name in found if name not in excluded]
    if_named = {INDEX} if reading.missing == "error" else {INDEX, NOTHING}
    for name in found:
        if name in named and kinds[name] not in {NUMBER, LIST} | if_named:
            raise ValueError(
                f"Column {name!r} of {table} holds {kinds[name]}, not numbers; choose columns (--columns) of numbers."
            )
    held = [name for name in found if kinds[name] == NUMBER or (name in named and kinds[name] in if_named)]
    lists = [name for name in found if kinds[name] == LIST]
    if len(lists) > 1:
        raise ValueError(
            f"{table} has rows in each of the columns {_listed(lists)}; choose one of them (--columns), and no others."
        )
    if lists and named and held:
        raise ValueError(
            f"The lists in {lists[0]!r} of {table} are whole rows; choose that column (--columns) without "
            f"{_listed(held)}."
        )
    chosen = lists or held
    if not chosen:
        what = ", ".join(f"{name!r} ({kinds[name]})" for name in found[:_SHOWN]) or "no others"
        raise ValueError(f"{table} has no column of numbers to read; it has {what}.")
    taken = set(chosen)
    if left_out := [name for name in found if name not in taken]:
        reason = f"the lists in {chosen[0]!r} are the rows" if lists else "they are no numbers"
        warn(f"{table}: columns left out, because {reason}: {_listed(left_out)}.", Note)
    return chosen


def kind_of_name(name: str) -> str | None:
    """What the name says: the index of a data frame, as pandas writes it, is no feature."""
    return INDEX if not name or name.startswith(("__index_level_", "Unnamed: ")) else None


def matching(names: list[str], patterns: Sequence[str] | None, table: str) -> tuple[set[str], list[str]]:
    """The columns that are named exactly, and all that match, each once; all columns if there are no patterns.

    A pattern is a name, or has the signs ``*``, ``?`` and ``[...]`` of a shell, or is a range like ``first:last``.
    """
    if patterns is None:
        return set(), names
    named, found, known = set(), dict[str, None](), set(names)
    for pattern in patterns:
        if pattern in known:
            named.add(pattern)
            found[pattern] = None
            continue
        matches = _range(names, pattern) or [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise ValueError(f"{table} has no column {pattern!r}; {_suggestion(names, pattern)}")
        found.update(dict.fromkeys(matches))
    return named, list(found)


def _range(names: list[str], pattern: str) -> list[str]:
    """The columns from one to another, if the pattern is two names with a colon between."""
    for i, sign in enumerate(pattern):
        first, last = pattern[:i], pattern[i + 1 :]
        if sign == ":" and first in names and last in names:
            return names[names.index(first) : names.index(last) + 1]
    return []


def _suggestion(names: list[str], pattern: str) -> str:
    lower = {name.lower(): name for name in names}
    near = [lower[match] for match in get_close_matches(pattern.lower(), lower, 3)]
    if any(sign in pattern for sign in _WILD) or not near:
        return f"it has {_listed(names)}."
    return f"did you mean {' or '.join(map(repr, near))}?"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_SHOWN])) + ", ..." * (len(names) > _SHOWN)


def warn_of_ids(names: Sequence[str], rows: NDArray[Any], table: str) -> None:
    """Warn of columns that look like ids, whole numbers that are all different, unless all columns do."""
    some = rows[:_MOST_IDS]
    if len(some) < _LEAST_IDS:
        return
    in_order = np.sort(some, axis=0)
    with np.errstate(invalid="ignore"):
        ids = (in_order[1:] > in_order[:-1]).all(axis=0) & (some == np.floor(some)).all(axis=0)
    if ids.any() and not ids.all():
        found = [name for name, is_id in zip(names, ids, strict=True) if is_id]
        what, them = ("Column", "it") if len(found) == 1 else ("Columns", "them")
        verb = "looks like an id" if len(found) == 1 else "look like ids"
        warn(
            f"{what} {_listed(found)} of {table} {verb}: whole numbers, all different. To leave {them} out: "
            f"--exclude {_option(found)}, or exclude=[{_listed(found)}] in open_rows."
        )


def _option(names: Sequence[str]) -> str:
    """The names as the value of an option of the command."""
    in_quotes = [f'"{name}"' if "," in name else name for name in names[:_SHOWN]]
    return shlex.quote(",".join(in_quotes) + ",..." * (len(names) > _SHOWN))
