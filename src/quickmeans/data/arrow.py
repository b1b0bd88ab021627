"""Parquet, Arrow and CSV files, single or in a directory, and datasets of pyarrow."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.memory import ChunkMemory
from quickmeans.data.source import RowSource, check_rows_dtype
from quickmeans.data.transposed import transpose

_FEW_THREADS = 4  # with so many the kernel is in need of them all: what decodes ahead then is one thread


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.dataset
    except ImportError:
        raise ImportError("Parquet, Arrow and CSV files need pyarrow: pip install 'quickmeans[files]'.") from None
    return pyarrow


def open_dataset(path: str, kind: str, columns: Sequence[str] | None) -> "ArrowSource":
    """A file, or all files of a directory in the order of their names."""
    pa = _pyarrow()
    if kind == "csv":
        _check_first_line(path)
    try:
        return ArrowSource(pa.dataset.dataset(path, format=kind), columns, path)
    except (pa.ArrowInvalid, pa.ArrowIOError) as error:
        raise ValueError(f"{path} cannot be read as {kind}, or is cut short: {_first_line(error)}") from None


class ArrowSource(RowSource):
    """Numeric columns, each a feature; or one column of lists of equal length, each a row."""

    def __init__(self, dataset: Any, columns: Sequence[str] | None, name: str = "the dataset") -> None:
        self.name, self.dataset = name, dataset
        if "Local" in type(getattr(dataset, "filesystem", None)).__name__:
            self.paths = dataset.files
        names = [field.name for field in dataset.schema]
        self._counted = "Csv" not in type(dataset.format).__name__
        if not self._counted:
            _refuse_numbers_as_names(names, name)
        for column in columns or ():
            if column not in names:
                raise ValueError(f"{name} has no column {column!r}; it has {', '.join(map(repr, names))}.")
        if not columns:
            _refuse_index(names, name)
        self.selected = list(columns) if columns else names
        if not self.selected:
            raise ValueError(f"{name} has no columns, or no files; there must be one at least.")
        types = [dataset.schema.field(column).type for column in self.selected]
        self.is_list = len(types) == 1 and _is_list(types[0])
        if self.is_list:
            self.dtype = check_rows_dtype(np.dtype(types[0].value_type.to_pandas_dtype()), name)
            self.n_columns = self._list_length(types[0])
        else:
            self.dtype = np.dtype(np.result_type(*map(self._number, self.selected, types)))
            self.n_columns, self.columns = len(types), self.selected
        self.n_rows = dataset.count_rows() if self._counted else None

    def _number(self, column: str, kind: Any) -> np.dtype[Any]:
        pa = _pyarrow()
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            held = "no values" if pa.types.is_null(kind) else f"{kind}, not numbers"
            raise TypeError(
                f"Column {column!r} of {self.name} holds {held}; choose columns (--columns) that have numbers."
            )
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype

    def _list_length(self, kind: Any) -> int:
        if hasattr(kind, "list_size"):
            return int(kind.list_size)
        for batch in self._batches(rows=1):
            if len(batch):
                return len(batch.column(0)[0])
        raise ValueError(f"{self.name} has no rows; there must be one at least.")

    def chunks(self) -> Iterator[NDArray[Any]]:
        first, memory = 0, ChunkMemory()
        for batch in self._batches(self.chunk_rows):
            self._refuse_nulls(batch, first)
            yield self._lists(batch.column(0), first) if self.is_list else self._table(batch, memory)
            first += len(batch)

    def _batches(self, rows: int) -> Iterator[Any]:
        pa = _pyarrow()
        try:  # few batches ahead: they are large
            yield from self.dataset.to_batches(
                columns=self.selected, batch_size=rows, batch_readahead=2, fragment_readahead=1,
                use_threads=pa.cpu_count() > _FEW_THREADS,
            )  # fmt: skip
        except (pa.ArrowInvalid, pa.ArrowIOError, OSError) as error:
            raise ValueError(f"{self.name} cannot be read to its end: {_first_line(error)}") from None

    def _table(self, batch: Any, memory: ChunkMemory) -> NDArray[Any]:
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        return transpose(columns, memory.empty((len(batch), self.n_columns), self.dtype))

    def _lists(self, column: Any, first: int) -> NDArray[Any]:
        values = column.flatten()
        if not hasattr(column.type, "list_size"):
            lengths = np.asarray(column.value_lengths())
            wrong = np.flatnonzero(lengths != self.n_columns)
            if len(wrong):
                raise ValueError(
                    f"{self.locate(first + int(wrong[0]))} has {lengths[wrong[0]]} numbers; all rows must have "
                    f"{self.n_columns}, like the first."
                )
        if values.null_count:
            raise ValueError(f"{self.name} has an empty number in {self.selected[0]!r}, after row {first}; fill it.")
        return np.asarray(values.to_numpy(zero_copy_only=False).reshape(-1, self.n_columns), self.dtype)

    def _refuse_nulls(self, batch: Any, first: int) -> None:
        for name, column in zip(self.selected, batch.columns, strict=True):
            if column.null_count:
                row = first + int(np.argmax(np.asarray(column.is_null())))
                raise ValueError(f"Input X has no number in column {name!r} ({self.locate(row)}); fill or drop it.")

    def locate(self, row: int) -> str:
        """Names the file, where the dataset has several."""
        fragments = list(self.dataset.get_fragments()) if self._counted else []
        if len(fragments) < 2:
            return super().locate(row)
        for fragment in fragments:
            n = fragment.count_rows()
            if row < n:
                return f"row {row} of {fragment.path}"
            row -= n
        return super().locate(row)


def _is_list(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _check_first_line(path: str) -> None:
    """Refuse what pyarrow would take for one column, or for two of the same name."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    names = _fields(first, ",")
    for separator, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and len(_fields(first, separator)) > 1:
            raise ValueError(f"{path} has its columns separated by {word}; it must be commas.")
    _refuse_numbers_as_names(names, path)


def _fields(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _refuse_numbers_as_names(names: list[str], file: str) -> None:
    """The first line of a CSV file names the columns (0, 1, 2, ... are names too); a row there would be lost."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return
    if numbers and numbers != list(range(len(names))):
        raise ValueError(f"The first line of {file} must name the columns, but has the numbers {', '.join(names[:3])}.")


def _refuse_index(names: list[str], file: str) -> None:
    """What pandas writes as the index of a data frame is no feature."""
    for name in names:
        if not name or name.startswith("__index_level_"):
            what = repr(name) if name else "without a name"
            raise ValueError(
                f"Column {what} of {file} looks like an index; choose columns (--columns), or write no index."
            )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
