"""CSV files whose first line names the columns."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.source import RowSource
from quickmeans.data.tables import choose_columns, decodes_on_threads, import_pyarrow, refuse_numbers_as_names

_PARSED_BYTES = 1 << 20  # pyarrow's own default for the bytes that a thread parses at a time
_CHOOSE = "choose columns (--columns) that have numbers."
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?inf(inity)?", re.IGNORECASE)


class CsvFile(RowSource):
    """Numbers separated by commas, read as float64.

    For every block of lines, pyarrow needs some 10 to 50 microseconds and 10 kB per column, however few the lines are.
    If all columns are wanted, it gets every comma as the end of a line, and has one column to parse.
    """

    n_rows = None
    dtype = np.dtype(np.float64)

    def __init__(self, path: str, columns: Sequence[str] | None) -> None:
        import_pyarrow()
        self.name, self.paths = path, [path]
        with self._open() as file:
            self._names = self._read_names(file)
            self.columns = self._selected = choose_columns(self._names, columns, path)
            self._takes_all = columns is None
            self.n_columns = len(self._selected)
            block = next(self._blocks(file), None)
        if block is None:
            raise ValueError(f"{path} has no rows after its first line; there must be one at least.")
        self._rows(block, 0)

    def chunks(self) -> Iterator[NDArray[Any]]:
        first = 0
        with self._open() as file:
            self._read_names(file)
            for block in self._blocks(file):
                rows = self._rows(block, first)
                yield rows
                first += len(rows)

    def _open(self) -> TextIO:
        return open(self.name, encoding="utf-8-sig", errors="replace")  # every end of line is read as \n

    def _read_names(self, file: TextIO) -> list[str]:
        """The names of the columns, which may be quoted; the file is then at the first row."""
        first = next((line for line in file if line.strip()), "")
        names = self._first_values(chain([first], file), ",")
        for separator, word in ((";", "semicolons"), ("\t", "tabs")):
            if len(names) == 1 and len(self._first_values([first], separator)) > 1:
                raise ValueError(f"{self.name} has its columns separated by {word}; it must be commas.")
        refuse_numbers_as_names(names, self.name)
        for name, count in Counter(names).most_common(1):
            if count > 1:
                raise ValueError(f"{self.name} has {count} columns {name!r}; their names must differ.")
        return names

    def _first_values(self, lines: Iterable[str], separator: str) -> list[str]:
        try:
            return next(csv.reader(lines, delimiter=separator), [])
        except csv.Error as error:
            raise ValueError(f"The first line of {self.name} must name the columns: {error}.") from None

    def _blocks(self, file: TextIO) -> Iterator[str]:
        """Blocks of lines that are not empty."""
        size = 2 * self.chunk_rows * self.n_columns  # characters of a chunk of numbers of one digit
        while block := file.read(size):
            block = re.sub("\n\n+", "\n", block + file.readline() + "\n").lstrip("\n")
            if block:
                yield block

    def _rows(self, block: str, first: int) -> NDArray[Any]:
        """The rows in these lines, the first of which has this number."""
        text = block.encode()
        if self._takes_all and not self._is_rectangular(text):
            raise self._error(block, first)
        try:
            if self._takes_all:
                table = _parse(text.replace(b",", b"\n"), ["number"], ["number"], _PARSED_BYTES)
            else:
                table = _parse(text, self._names, self._selected, len(text))
        except import_pyarrow().ArrowInvalid:
            raise self._error(block, first) from None
        if any(column.null_count for column in table.columns):
            raise self._error(block, first)
        return np.stack([column.to_numpy() for column in table.columns], axis=1).reshape(-1, self.n_columns)

    def _is_rectangular(self, text: bytes) -> bool:
        """Whether every line has as many values as there are columns."""
        characters = np.frombuffer(text, np.uint8)
        ends = characters[(characters == ord(",")) | (characters == ord("\n"))]
        if len(ends) % self.n_columns:
            return False
        ends = ends.reshape(-1, self.n_columns)
        return bool((ends[:, :-1] == ord(",")).all() and (ends[:, -1] == ord("\n")).all())

    def _error(self, block: str, first: int) -> ValueError:
        """What is wrong with these lines: a slower reading finds the place."""
        try:
            rows = list(csv.reader(io.StringIO(block)))
        except csv.Error as error:
            return ValueError(f"{self.name} cannot be read after row {first}: {error}.")
        for i, row in enumerate(rows):
            if len(row) != len(self._names):
                where = self.locate(first + i)
                return ValueError(f"{where} has {len(row)} values, but the first line has {len(self._names)}.")
        no_value = import_pyarrow().csv.ConvertOptions().null_values
        positions = {name: j for j, name in enumerate(self._names)}
        for name in self._selected:
            values = [row[positions[name]].strip() for row in rows]
            if not first and all(value in no_value for value in values):
                return ValueError(f"Column {name!r} of {self.name} holds no values; {_CHOOSE}")
            for i, value in enumerate(values):
                where = self.locate(first + i)
                if value in no_value:
                    return ValueError(f"Input X has no number in column {name!r} ({where}); fill or drop it.")
                if not _NUMBER.fullmatch(value):
                    return ValueError(f"Column {name!r} holds {value!r} ({where}), not a number; {_CHOOSE}")
        return ValueError(f"{self.name} cannot be read after row {first}; it must have numbers separated by commas.")


def _parse(text: bytes, names: list[str], selected: list[str], block_size: int) -> Any:
    """A table of float64 columns."""
    pa = import_pyarrow()
    return pa.csv.read_csv(
        pa.py_buffer(text),
        read_options=pa.csv.ReadOptions(column_names=names, block_size=block_size, use_threads=decodes_on_threads()),
        parse_options=pa.csv.ParseOptions(ignore_empty_lines=False),
        convert_options=pa.csv.ConvertOptions(
            include_columns=selected, column_types=dict.fromkeys(selected, pa.float64())
        ),
    )
