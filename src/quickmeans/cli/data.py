"""The rows and models that commands read."""

import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quickmeans.cli.command import option
from quickmeans.cli.values import Name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quickmeans.data import RowSource

Function = Callable[..., Any]
T = TypeVar("T")
SECTION = "Data"
_SIGNS = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet", b"ARROW1": ".arrow"}  # how files begin
STANDARD_INPUT: list[str] = []  # folders that hold a copy of it
MEMORY_LIMIT = 1 << 30  # bytes; a larger file is read again in every pass


def data_argument(function: Function) -> Function:
    """Give a command the argument DATA with the options of tables; it gets ``rows``, an open source."""

    @wraps(function)
    def opened(*args: Any, data: str, key: str | None, **options: Any) -> Any:
        from quickmeans.data import open_rows

        reading = _reading(options)
        if options.get("ids") is not None:  # no feature
            reading["exclude"].append(options["ids"])
        return function(*args, rows=open_rows(_spooled(data), key=key, **reading), **options)

    return _with_data(opened, required=True)


def model_and_data(kind: str, name: str = "model", *, required: bool = True) -> Callable[[Function], Function]:
    """Give a command the file of a fitted object and DATA; it gets both, DATA with the columns of the object.

    `kind` is the class of the object, `name` what the command calls it. Without DATA ``rows`` is None.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def opened(*args: Any, data: str | None, key: str | None, **options: Any) -> Any:
            import quickmeans
            from quickmeans.data.open import open_for
            from quickmeans.data.reading import Reading

            reading, model = Reading(**_reading(options)), load_model(options.pop(name), getattr(quickmeans, kind))
            rows = None if data is None else open_for(model, _spooled(data), key, reading)
            return function(*args, rows=rows, **{name: model}, **options)

        return click.argument(name, type=click.Path())(_with_data(opened, required=required))

    return decorate


def _with_data(function: Function, *, required: bool) -> Function:
    """Give a command the argument DATA and its options."""
    for add in reversed(_TABLE_OPTIONS):
        function = add(function)
    return click.argument("data", type=click.Path(allow_dash=True), required=required)(function)


_data = partial(option, section=SECTION)
_TABLE_OPTIONS = [
    _data(
        "--columns", metavar="A,B,...", multiple=True, help="Columns: names, patterns e*, ranges a:f.  [default: all]"
    ),
    _data("--exclude", metavar="A,B,...", multiple=True, help="Columns that are not read, in the same way."),
    _data(
        "--missing", type=Name("quickmeans.data.reading", "MISSING"), help="Rows with missing values.  [default: error]"
    ),
    _data("--separator", metavar="SIGN", help="Between the columns of a text file; tab for tabs.  [default: found]"),
    _data("--decimal", metavar="SIGN", help="Decimal point of a text file: . or ,  [default: found]"),
    _data("--header/--no-header", default=None, help="Whether a text file begins with names.  [default: found]"),
    _data("--key", metavar="NAME", help="Name of an array in an .npz or HDF5 file."),
]


def names_in(values: tuple[str, ...]) -> list[str]:
    """Return the names in the values of an option: separated by commas, in quotes if they contain commas."""
    return [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row]


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options that say how a table is read."""
    columns, exclude, missing = (
        names_in(options.pop("columns")),
        names_in(options.pop("exclude")),
        options.pop("missing"),
    )
    separator, decimal, header = (options.pop(name) for name in ("separator", "decimal", "header"))
    separator = "\t" if separator in ("tab", "\\t") else separator
    reading = {"columns": columns or None, "exclude": exclude, "missing": missing or "error"}
    return reading | {"separator": separator, "decimal": decimal, "header": header}


def _spooled(data: str) -> str:
    """Return the path or, for "-", that of a copy of standard input: a fit reads its rows several times."""
    if data != "-":
        return data
    folder = tempfile.TemporaryDirectory(prefix="quickmeans-")
    click.get_current_context().call_on_close(folder.cleanup)
    STANDARD_INPUT.append(folder.name)
    path = os.path.join(folder.name, "standard-input")
    with open(path, "wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    with open(path, "rb") as file:
        start = file.read(8)
    ending = next((ending for sign, ending in _SIGNS.items() if start.startswith(sign)), ".csv")
    os.rename(path, path + ending)
    return path + ending


def blocks(rows: "RowSource") -> Iterator["NDArray[Any]"]:
    """Return the rows block by block; NaN and infinity are refused with the name of the file, row and column."""
    from quickmeans.data.stream import StreamRows
    from quickmeans.kmeans.rows import refuse_not_finite

    stream = StreamRows(rows)
    for part, block in stream.blocks():
        refuse_not_finite(stream.locate, part.start, block)
        yield block


def blocks_for(model: Any, rows: "RowSource") -> Iterator["NDArray[Any]"]:
    """Return the rows block by block for a fitted model, whose columns they must have."""
    from quickmeans.data.features import check_features

    check_features(model, rows, reset=False)
    model.__dict__.pop("feature_names_in_", None)  # arrays have no names, and scikit-learn would warn
    return blocks(rows)


def kept_blocks(model: Any, rows: "RowSource", keep: list[str]) -> Iterator[tuple[Any, "NDArray[Any]"]]:
    """Return the kept columns of a table, or None, with the rows block by block, as `blocks_for` does."""
    from quickmeans.data.features import check_features
    from quickmeans.kmeans.rows import refuse_not_finite

    check_features(model, rows, reset=False)
    model.__dict__.pop("feature_names_in_", None)  # as in blocks_for
    first = 0
    for block, kept in rows.tables(keep):
        if len(block):
            refuse_not_finite(rows.locate, first, block)
            yield kept, block
        first += len(block)


def read_if_small(rows: "RowSource", limit: int | None = None) -> "NDArray[Any] | None":
    """Return all rows in the type that models compute in, or None if they take more bytes than the limit (1 GiB)."""
    import numpy as np

    from quickmeans.kmeans.rows import exact_dtype

    limit, dtype = MEMORY_LIMIT if limit is None else limit, exact_dtype(rows.dtype)
    if rows.n_rows is not None and rows.n_rows * rows.n_columns * dtype.itemsize > limit:
        return None
    parts, total = [], 0
    for block in blocks(rows):
        part = block.astype(dtype, copy=False)
        total += part.nbytes
        if total > limit:
            return None
        parts.append(part)
    return np.concatenate(parts)


def read_all(rows: "RowSource") -> "NDArray[Any]":
    """Return all rows, or refuse them if they take more than half of the memory."""
    from quickmeans.kmeans.rows import exact_dtype

    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    X = read_if_small(rows, limit)
    if X is None:
        raise ValueError(
            f"{rows.name} takes more than {limit / 1e9:.0f} GB as {exact_dtype(rows.dtype)}, half of the memory; give "
            "fewer rows."
        )
    return X


def check_enough_rows(rows: "RowSource", k: int, n_rows: int | None = None) -> None:
    """Refuse a -k that exceeds the number of rows, if that is known."""
    n_rows = rows.n_rows if n_rows is None else n_rows
    if n_rows is not None and n_rows < k:
        raise ValueError(f"-k must not exceed the {n_rows} rows of {rows.name}, got {k}.")


def load_model(path: str, kind: type[T]) -> T:
    """Return the fitted object of that class from a file."""
    import quickmeans

    model = quickmeans.load(path)
    if not isinstance(model, kind):
        raise ValueError(
            f"{path} contains a {type(model).__name__}, but this command needs a {kind.__name__}; 'quickmeans info' "
            "shows what a file contains."
        )
    return model
