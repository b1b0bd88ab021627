"""Parquet and Arrow files, single or in a directory, and datasets of pyarrow."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data.errors import naming_errors
from quickmeans.data.memory import ChunkMemory
from quickmeans.data.parts import Part, record_batches, row_groups
from quickmeans.data.reading import FILL_IT, Reading
from quickmeans.data.selection import LIST, NOTHING, NUMBER, kind_of_name, matching, select, warn_of_ids
from quickmeans.data.source import RowSource, check_rows_dtype
from quickmeans.data.tables import decodes_on_threads, import_pyarrow
from quickmeans.data.transposed import transpose

_NOT_READ = "cannot be read to its end"


def open_dataset(path: str, kind: str, reading: Reading) -> "ArrowSource":
    """A file, or all files of a directory in the order of their names."""
    pa = import_pyarrow()
    with naming_errors(path, f"cannot be read as {kind}, or is cut short"):
        return ArrowSource(pa.dataset.dataset(path, format=kind), reading, path)


def as_dataset(rows: Any) -> Any:
    """A dataset itself, or that of a table in memory."""
    return rows if hasattr(rows, "get_fragments") else import_pyarrow().dataset.dataset(rows)


class ArrowSource(RowSource):
    """Numeric columns, each of which is a feature; or one column of lists of equal length, each of which is a row."""

    def __init__(self, dataset: Any, reading: Reading, name: str = "the dataset") -> None:
        self.name, self.dataset, self._reading = name, dataset, reading
        self.table = dataset.schema.names
        if "Local" in type(getattr(dataset, "filesystem", None)).__name__:
            self.paths = dataset.files
        self.selected = select({field.name: _kind(field) for field in dataset.schema}, reading, name)
        types = [dataset.schema.field(column).type for column in self.selected]
        self.is_list = len(types) == 1 and _is_list(types[0])
        if self.is_list:
            self.dtype = check_rows_dtype(np.dtype(types[0].value_type.to_pandas_dtype()), name)
            self.n_columns = self._list_length(types[0])
        else:
            dtypes = [np.dtype(kind.to_pandas_dtype()) for kind in types]
            if reading.missing != "error":  # whole numbers cannot say that they are missing
                dtypes = [dtype if dtype.kind == "f" else np.dtype(np.float64) for dtype in dtypes]
            self.dtype = np.dtype(np.result_type(*dtypes))
            self.n_columns, self.columns = len(types), self.selected
        self.n_rows = None if self._has_format("Csv") else dataset.count_rows()
        if reading.columns is None and not self.is_list:
            self._warn_of_ids(types)

    def _has_format(self, kind: str) -> bool:
        return type(getattr(self.dataset, "format", None)).__name__.startswith(kind)

    def _warn_of_ids(self, types: Sequence[Any]) -> None:
        if any(import_pyarrow().types.is_integer(kind) for kind in types):
            first = next((batch for batch in self._scan(self.dataset, self.chunk_rows) if len(batch)), None)
            if first is not None and not any(column.null_count for column in first.columns):
                warn_of_ids(self.selected, self._rows(first, 0, ChunkMemory()), self.name)

    def _list_length(self, kind: Any) -> int:
        if hasattr(kind, "list_size"):
            return int(kind.list_size)
        for batch in self._scan(self.dataset, 1):
            if len(batch):
                self._refuse_nulls(batch, 0)
                return int(batch.column(0).value_lengths()[0].as_py())
        raise ValueError(f"{self.name} has no rows; there must be one at least.")

    def chunks(self) -> Iterator[NDArray[Any]]:
        first, memory = 0, ChunkMemory()
        for batch in self._scan(self.dataset, self.chunk_rows):
            yield self._rows(batch, first, memory)
            first += len(batch)

    def tables(self, keep: Sequence[str]) -> Iterator[tuple[NDArray[Any], Any]]:
        kept, first, memory = matching(self.dataset.schema.names, keep, self.name)[1], 0, ChunkMemory()
        columns = list(dict.fromkeys([*self.selected, *kept]))
        for batch in self._scan(self.dataset, self.chunk_rows, columns):
            yield self._rows(batch.select(self.selected), first, memory), batch.select(kept)
            first += len(batch)

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        """Read nothing but this column."""
        for batch in self._scan(self.dataset, self.chunk_rows, [name]):
            yield batch.column(0).to_numpy(zero_copy_only=False)

    def take(self, index: NDArray[np.int64]) -> NDArray[Any]:
        """Read only the row groups of Parquet, or record batches of Arrow, that contain these rows."""
        if not self._parts:
            return super().take(index)
        collector, memory, first = self.collector(index), ChunkMemory(), 0
        for part in self._parts:
            end = first + part.n_rows
            if collector.wants(first, end):
                for batch in self._checked(part.read()):
                    collector.see(first, self._rows(batch, first, memory))
                    first += len(batch)
            first = end
        return collector.rows()

    @cached_property
    def _parts(self) -> list[Part]:
        if self._has_format("Parquet"):
            with naming_errors(self.name, _NOT_READ):
                return list(row_groups(self.dataset, partial(self._scan, batch_rows=self.chunk_rows)))
        if self._has_format("Ipc"):
            with naming_errors(self.name, _NOT_READ):
                return list(record_batches(self.dataset, self.selected, self.chunk_rows))
        return []

    def _scan(self, rows: Any, batch_rows: int, columns: list[str] | None = None) -> Iterator[Any]:
        """The record batches of the dataset or of a fragment of it."""
        batches = rows.to_batches(
            columns=columns or self.selected,
            batch_size=batch_rows,
            batch_readahead=2,  # batches are as large as chunks, and no more are needed to keep the decoder busy
            fragment_readahead=1,
            use_threads=decodes_on_threads(),
        )
        return self._checked(batches)

    def _checked(self, batches: Iterator[Any]) -> Iterator[Any]:
        with naming_errors(self.name, _NOT_READ):
            for batch in batches:
                batch.validate(full=True)  # pyarrow ends the process when it uses lists with wrong offsets
                yield batch

    def _rows(self, batch: Any, first: int, memory: ChunkMemory) -> NDArray[Any]:
        """The rows of a record batch, the first of which has this number."""
        if self.is_list or self._reading.missing == "error":
            self._refuse_nulls(batch, first)
        if self.is_list:
            return self._lists(batch.column(0), first)
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        return transpose(columns, memory.empty((len(batch), self.n_columns), self.dtype))

    def _refuse_nulls(self, batch: Any, first: int) -> None:
        for name, column in zip(self.selected, batch.columns, strict=True):
            if column.null_count:
                row = first + int(np.argmax(np.asarray(column.is_null())))
                raise ValueError(f"Input X has no number in column {name!r} ({self.locate(row)}); {FILL_IT}")

    def _lists(self, column: Any, first: int) -> NDArray[Any]:
        if not hasattr(column.type, "list_size"):
            lengths = np.asarray(column.value_lengths())
            wrong = np.flatnonzero(lengths != self.n_columns)
            if len(wrong):
                raise ValueError(
                    f"{self.locate(first + int(wrong[0]))} has {lengths[wrong[0]]} numbers; all rows must have "
                    f"{self.n_columns}, like the first."
                )
        values = column.flatten()
        if values.null_count:
            raise ValueError(f"{self.name} has an empty number in {self.selected[0]!r}, after row {first}; fill it.")
        return np.asarray(values.to_numpy(zero_copy_only=False).reshape(-1, self.n_columns), self.dtype)

    def locate(self, row: int) -> str:
        """Names the file, where the dataset has several."""
        fragments = [] if self._has_format("Csv") else list(self.dataset.get_fragments())
        if len(fragments) < 2:
            return super().locate(row)
        for fragment in fragments:
            n = fragment.count_rows()
            if row < n:
                return f"row {row} of {fragment.path}"
            row -= n
        return super().locate(row)


def _kind(field: Any) -> str:
    """What a column holds."""
    types = import_pyarrow().types
    if types.is_integer(field.type) or types.is_floating(field.type):
        return kind_of_name(field.name) or NUMBER
    if _is_list(field.type) and (types.is_integer(field.type.value_type) or types.is_floating(field.type.value_type)):
        return LIST
    return NOTHING if types.is_null(field.type) else str(field.type)


def _is_list(kind: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
