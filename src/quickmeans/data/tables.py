"""What Parquet, Arrow and CSV files have in common: pyarrow, and columns with names."""

from collections.abc import Sequence
from typing import Any

_KERNEL_CORES = 4  # with so few cores the kernel uses them all, and one thread decodes (benchmarks.scale, Parquet)
_SHOWN = 20  # names of columns in an error message


def import_pyarrow() -> Any:
    """The module pyarrow, which is needed for tables only."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.dataset
    except ImportError:
        raise ImportError("Parquet, Arrow and CSV files need pyarrow: pip install 'quickmeans[files]'.") from None
    return pyarrow


def decodes_on_threads() -> bool:
    """Whether pyarrow should decode on several threads."""
    return int(import_pyarrow().cpu_count()) > _KERNEL_CORES


def choose_columns(names: list[str], columns: Sequence[str] | None, table: str) -> list[str]:
    """The names of the columns to read: the given ones, or all."""
    if not names:
        raise ValueError(f"{table} has no columns, or no files; there must be one at least.")
    for column in columns or ():
        if column not in names:
            shown = ", ".join(map(repr, names[:_SHOWN])) + ", ..." * (len(names) > _SHOWN)
            raise ValueError(f"{table} has no column {column!r}; it has {shown}.")
    if not columns:
        _refuse_index(names, table)
    return list(columns or names)


def _refuse_index(names: list[str], table: str) -> None:
    """Refuse the column that pandas writes for the index of a data frame: it is no feature."""
    for name in names:
        if not name or name.startswith("__index_level_"):
            what = repr(name) if name else "without a name"
            raise ValueError(
                f"Column {what} of {table} looks like an index; choose columns (--columns), or write no index."
            )


def refuse_numbers_as_names(names: list[str], table: str) -> None:
    """Refuse a CSV file without a header, whose first row would be lost; 0, 1, 2, ... can be names."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return
    if numbers and numbers != list(range(len(names))):
        raise ValueError(
            f"The first line of {table} must name the columns, but has the numbers {', '.join(names[:3])}."
        )
