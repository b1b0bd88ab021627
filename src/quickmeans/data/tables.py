"""What Parquet, Arrow and CSV files have in common: pyarrow."""

from typing import Any

_KERNEL_CORES = 4  # with so few cores the kernel uses them all, and one thread decodes (benchmarks.scale, Parquet)


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
