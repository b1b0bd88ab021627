"""How a text file writes a table: what separates its columns, its decimal point, and whether it begins with names."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from quickmeans.callers import warn
from quickmeans.data.reading import Note, Reading

# If several of them divide all lines into equally many values, the first one does it: a comma may be a decimal point.
_SEPARATORS = ("\t", ";", "|", ",", " ")
_ENTRIES, _LEAST_LINES, _MOST_LINES = 200_000, 10, 1000  # that are looked at


def is_number(value: str, decimal: str = ".") -> bool:
    """Whether the text is a number; NaN stands for a missing value."""
    if decimal == ",":
        if "." in value:
            return False
        value = value.replace(",", ".")
    try:
        number = float(value)
    except ValueError:
        return False
    return number == number and "_" not in value


@dataclass(frozen=True)
class Dialect:
    """How a table is written, and the names of its columns."""

    separator: str
    decimal: str
    has_names: bool  # in the first line
    names: list[str]

    def values(self, text: str, table: str) -> list[list[str]]:
        """The values in the lines of this text that are not empty."""
        return _values(text, self.separator, table)


def detect(text: str, reading: Reading, table: str) -> Dialect:
    """The dialect of a table that begins with this text, as far as the reading does not say."""
    if not text.strip():
        raise ValueError(f"{table} is empty; it must have a line of names and lines of numbers.")
    separator = reading.separator or _separator(text, table)
    first, *rows = _values(text, separator, table)
    decimal = reading.decimal or _decimal([first, *rows], separator)
    has_names = _has_names(first, decimal) if reading.header is None else reading.header
    if has_names:
        for name, count in Counter(first).most_common(1):
            if count > 1 and name:
                raise ValueError(f"{table} has {count} columns {name!r}; their names must differ.")
        return Dialect(separator, decimal, True, first)
    names = [f"column_{i}" for i in range(1, len(first) + 1)]
    if reading.header is None:
        shown = ", ".join(names[:2]) + ", ..." * (len(names) > 2)
        warn(f"{table} has no line of names; its columns are called {shown}.", Note)
    return Dialect(separator, decimal, False, names)


def lines_to_look_at(n_columns: int) -> int:
    """How many lines tell what the columns of a table hold."""
    return min(max(_ENTRIES // max(n_columns, 1), _LEAST_LINES), _MOST_LINES)


def _values(text: str, separator: str, table: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    except csv.Error as error:
        raise ValueError(f"{table} cannot be read as a table: {error}.") from None


def _separator(text: str, table: str) -> str:
    counts = {",": 1}
    for separator in _SEPARATORS:
        try:
            lengths = [len(row) for row in _values(text, separator, table)]
        except ValueError:  # without a separator, a line is a value that is too long
            continue
        if min(lengths) == max(lengths) > 1:
            return separator
        counts[separator] = lengths[0]
    return max(counts, key=lambda separator: counts[separator])


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """A comma if some numbers are written with one, and none with a point."""
    if separator == ",":
        return "."
    values = [value for row in rows for value in row if "," in value or "." in value]
    with_comma = any("," in value and is_number(value, ",") for value in values)
    return "," if with_comma and not any("." in value and is_number(value) for value in values) else "."


def _has_names(first: Sequence[str], decimal: str) -> bool:
    """Whether the values of a first line are names: not if all are numbers but 0, 1, 2, ..., or one is a fraction."""
    numbers = [value for value in first if is_number(value, decimal)]
    if any(not value.strip().lstrip("+-").isdecimal() for value in numbers):
        return False
    return len(numbers) < len(first) or [int(value) for value in numbers] == list(range(len(first)))
