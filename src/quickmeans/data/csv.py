"""Text files with a row in every line: CSV, TSV and others."""

import gzip
import re
from collections.abc import Iterator, Sequence
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.dialect import Dialect, detect, is_number, lines_to_look_at
from quickmeans.data.errors import naming_errors
from quickmeans.data.reading import FILL_IT, Reading
from quickmeans.data.selection import NOTHING, NUMBER, kind_of_name, matching, select, warn_of_ids
from quickmeans.data.source import RowSource
from quickmeans.data.tables import decodes_on_threads, import_pyarrow

_PARSED_BYTES = 1 << 20  # pyarrow's own default for the bytes that a thread parses at a time
_LEAVE_OUT = "mend it, or leave the column out (--exclude)."
_TEXT = "text"
_FIRST_LINES = 10  # that tell how the table is written


class CsvFile(RowSource):
    """Numbers in columns, read as float64.

    For every block of lines, pyarrow needs some 10 to 50 microseconds and 10 kB per column, however few the lines are.
    If all columns are wanted, it gets every separator as the end of a line, and has one column to parse.
    """

    n_rows = None
    dtype = np.dtype(np.float64)

    def __init__(self, path: str, reading: Reading, name: str | None = None) -> None:
        import_pyarrow()
        self.path, self.paths, self.name, self._reading = path, [path], name or path, reading
        with self._open() as file:
            lines = self._first_lines(file, _FIRST_LINES)
            self._dialect = detect("".join(lines), reading, self.name)
            more = lines_to_look_at(len(self._names)) - _FIRST_LINES
            kinds = self._kinds([*lines, *self._first_lines(file, more)])
        self.table = self._names
        self.columns = self._selected = select(kinds, reading, self.name)
        self._takes_all = self._selected == self._names
        self.n_columns = len(self._selected)
        with self._open_rows() as file:
            block = next(self._blocks(file), None)
        if block is None:
            raise ValueError(f"{self.name} has no rows after its first line; there must be one at least.")
        rows = self._rows(block, 0)
        if reading.columns is None:
            warn_of_ids(self._selected, rows, self.name)

    @property
    def _names(self) -> list[str]:
        return self._dialect.names

    def _open(self) -> TextIO:
        """The file from its beginning; every end of line is read as one sign."""
        with open(self.path, "rb") as file:
            start = file.read(2)
        encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        opener = gzip.open if start == b"\x1f\x8b" else open
        return cast(TextIO, opener(self.path, "rt", encoding=encoding, errors="replace"))

    def _open_rows(self) -> TextIO:
        """The file from its first row on."""
        file = self._open()
        if self._dialect.has_names:
            self._first_lines(file, 1)
        return file

    def _first_lines(self, file: TextIO, count: int) -> list[str]:
        """So many lines that are not empty; what is quoted may go over several."""
        lines: list[str] = []
        with naming_errors(self.name, "is damaged, or is cut short"):
            while len(lines) < count and (line := file.readline()):
                if line.strip():
                    lines.append(self._to_the_end_of_a_quote(line, file).rstrip("\n") + "\n")
        return lines

    def _to_the_end_of_a_quote(self, text: str, file: TextIO) -> str:
        """The text and, if it ends within quotes, what comes next of the quoted text."""
        if text.count('"') % 2:
            parts = [text]
            for line in file:
                parts.append(line)
                if line.count('"') % 2:
                    break
            return "".join(parts)
        return text

    def _kinds(self, lines: Sequence[str]) -> dict[str, str]:
        """What the columns hold, as far as these first lines tell: numbers if at least half of their values are."""
        values = self._dialect.values("".join(lines), self.name)[int(self._dialect.has_names) :]
        no_value, kinds = _no_values(), {}
        for j, name in enumerate(self._names):
            column = [row[j].strip() for row in values if j < len(row)]
            held = [value for value in column if value not in no_value]
            n_numbers = sum(is_number(value, self._dialect.decimal) for value in held)
            kind = NUMBER if held and 2 * n_numbers >= len(held) else _TEXT if held else NOTHING
            kinds[name] = kind_of_name(name) or kind if values else NUMBER
        return kinds

    def chunks(self) -> Iterator[NDArray[Any]]:
        first = 0
        with self._open_rows() as file:
            for block in self._blocks(file):
                rows = self._rows(block, first)
                yield rows
                first += len(rows)

    def tables(self, keep: Sequence[str]) -> Iterator[tuple[NDArray[Any], Any]]:
        kept, first = matching(self._names, keep, self.name)[1], 0
        if not kept:
            yield from super().tables(keep)
            return
        with self._open_rows() as file:
            for block in self._blocks(file):
                rows, pa = self._rows(block, first), import_pyarrow()
                table = _parse(block.encode(), self._names, dict.fromkeys(kept, pa.string()), self._dialect)
                yield rows, table
                first += len(rows)

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        """Whole numbers as such, if all values of the column are, written as usual; else texts."""
        parts, pa = [table[name] for _, table in self.tables([name])], import_pyarrow()
        texts = pa.chunked_array([chunk for part in parts for chunk in getattr(part, "chunks", [part])], pa.string())
        try:
            numbers = texts.cast(pa.int64())
        except pa.ArrowInvalid:
            numbers = None
        yield (texts if numbers is None or numbers.cast(pa.string()) != texts else numbers).to_numpy()

    def _blocks(self, file: TextIO) -> Iterator[str]:
        """Blocks of whole lines that are not empty."""
        size = 2 * self.chunk_rows * self.n_columns  # characters of a chunk of numbers of one digit
        with naming_errors(self.name, "is damaged, or is cut short"):
            while block := file.read(size):
                block = self._to_the_end_of_a_quote(block + file.readline(), file) + "\n"
                block = block if '"' in block else re.sub("\n\n+", "\n", block).lstrip("\n")
                if block.strip("\n"):
                    yield block

    def _rows(self, block: str, first: int) -> NDArray[Any]:
        """The rows in these lines, the first of which has this number."""
        text, pa = block.encode(), import_pyarrow()
        number = pa.float64()
        try:
            if self._takes_all and '"' not in block:
                if not self._is_rectangular(text):
                    raise self._error(block, first)
                lines = text.replace(self._dialect.separator.encode(), b"\n")
                table = _parse(lines, ["number"], {"number": number}, self._dialect, one_value=True)
            else:
                table = _parse(text, self._names, dict.fromkeys(self._selected, number), self._dialect)
        except pa.ArrowInvalid:
            raise self._error(block, first) from None
        if self._reading.missing == "error" and any(column.null_count for column in table.columns):
            raise self._error(block, first)
        return np.stack([column.to_numpy() for column in table.columns], axis=1).reshape(-1, self.n_columns)

    def _is_rectangular(self, text: bytes) -> bool:
        """Whether every line has as many values as there are columns."""
        characters, separator = np.frombuffer(text, np.uint8), ord(self._dialect.separator)
        ends = characters[(characters == separator) | (characters == ord("\n"))]
        if len(ends) % self.n_columns:
            return False
        ends = ends.reshape(-1, self.n_columns)
        return bool((ends[:, :-1] == separator).all() and (ends[:, -1] == ord("\n")).all())

    def _error(self, block: str, first: int) -> ValueError:
        """What is wrong with these lines: a slower reading finds the place."""
        rows = self._dialect.values(block, self.name)
        for i, row in enumerate(rows):
            if len(row) != len(self._names):
                where = self.locate(first + i)
                return ValueError(f"{where} has {len(row)} values, but the first line has {len(self._names)}.")
        no_value, positions = _no_values(), {name: j for j, name in enumerate(self._names)}
        for name in self._selected:
            for i, value in enumerate(row[positions[name]].strip() for row in rows):
                where = self.locate(first + i)
                if value not in no_value and not is_number(value, self._dialect.decimal):
                    return ValueError(f"Column {name!r} holds {value!r} ({where}), not a number; {_LEAVE_OUT}")
                if value in no_value and self._reading.missing == "error":
                    return ValueError(f"Input X has no number in column {name!r} ({where}); {FILL_IT}")
        separator = self._dialect.separator
        return ValueError(
            f"{self.name} cannot be read after row {first}; its values must be separated by {separator!r}."
        )


def _no_values() -> set[str]:
    """Texts that stand for a missing value."""
    return set(import_pyarrow().csv.ConvertOptions().null_values)


def _parse(text: bytes, names: list[str], types: dict[str, Any], dialect: Dialect, *, one_value: bool = False) -> Any:
    """A table of columns of these types; with `one_value` a line has one number, and an empty line none."""
    pa = import_pyarrow()
    size = _PARSED_BYTES if one_value else len(text)
    separator = "\x1f" if one_value else dialect.separator  # a sign that no number has
    return pa.csv.read_csv(
        pa.py_buffer(text),
        read_options=pa.csv.ReadOptions(column_names=names, block_size=size, use_threads=decodes_on_threads()),
        parse_options=pa.csv.ParseOptions(
            delimiter=separator, ignore_empty_lines=not one_value, newlines_in_values=not one_value
        ),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            decimal_point=dialect.decimal,
        ),
    )
