"""The parts of a file that can be read alone: row groups of Parquet, record batches of Arrow."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from quickmeans.data.tables import import_pyarrow


class Part(NamedTuple):
    """Consecutive rows of a file, and a function that reads them as record batches."""

    n_rows: int
    read: Callable[[], Iterator[Any]]


def row_groups(dataset: Any, read: Callable[[Any], Iterator[Any]]) -> Iterator[Part]:
    """The row groups of Parquet files; `read` reads a fragment of the dataset."""
    for fragment in dataset.get_fragments():
        for group in fragment.split_by_row_group():
            yield Part(group.row_groups[0].num_rows, partial(read, group))


def record_batches(dataset: Any, columns: Sequence[str], batch_rows: int) -> Iterator[Part]:
    """The record batches of Arrow files, of which only the given columns are read.

    The length of a record batch is known only when a column of it has been read; the column of the fewest bytes is.
    """
    for fragment in dataset.get_fragments():
        schema = fragment.physical_schema
        narrowest = min(range(len(schema)), key=lambda i: _width(schema.field(i).type))
        with fragment.filesystem.open_input_file(fragment.path) as file:
            reader = _reader(file, [narrowest])
            lengths = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        for i, length in enumerate(lengths):
            yield Part(length, partial(_record_batch, fragment, i, columns, batch_rows))


def _record_batch(fragment: Any, i: int, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
    """One record batch, in pieces of so many rows."""
    names = fragment.physical_schema.names
    with fragment.filesystem.open_input_file(fragment.path) as file:
        batch = _reader(file, [names.index(column) for column in columns]).get_batch(i).select(columns)
    for begin in range(0, batch.num_rows, batch_rows):
        yield batch.slice(begin, batch_rows)


def _reader(file: Any, fields: list[int]) -> Any:
    pa = import_pyarrow()
    return pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False))


def _width(kind: Any) -> float:
    """The bits of a value; infinity for lists and text, which have no such number."""
    try:
        return float(kind.bit_width)
    except ValueError:
        return float("inf")
