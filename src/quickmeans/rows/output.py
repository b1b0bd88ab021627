"""Labels into a file, chunk by chunk; it appears complete or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray


def write_labels(path: str | os.PathLike[str], labels: Iterator[NDArray[np.int32]]) -> int:
    """Write labels that come in chunks to a file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        Ending in .npy, or in .parquet: then labels are the column "label".
    labels : iterator of int32 arrays
        One after the other.

    Returns
    -------
    int
        How many labels there were.
    """
    target = Path(os.fsdecode(path))
    writers = {".npy": _write_npy, ".parquet": _write_parquet}
    if target.suffix not in writers:
        raise ValueError(f"Labels are written to .npy or .parquet files, got {os.fsdecode(path)!r}.")
    with _complete(target) as temporary:
        return writers[target.suffix](temporary, labels)


@contextmanager
def _complete(target: Path) -> Iterator[Path]:
    """A file beside the target that takes its place at the end."""
    temporary = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write_npy(path: Path, labels: Iterator[NDArray[np.int32]]) -> int:
    """The header, whose length does not depend on the count, is written again at the end."""
    count = 0
    with open(path, "xb") as file:
        _write_header(file, 0)
        for chunk in labels:
            file.write(np.ascontiguousarray(chunk, "<i4").data)
            count += len(chunk)
        file.seek(0)
        _write_header(file, count)
        file.flush()
        os.fsync(file.fileno())
    return count


def _write_header(file: Any, count: int) -> None:
    npy_format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": (count,)})


def _write_parquet(path: Path, labels: Iterator[NDArray[np.int32]]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'quickmeans[files]'.") from None
    schema, count = pa.schema([("label", pa.int32())]), 0
    with pq.ParquetWriter(path, schema) as writer:
        for chunk in labels:
            writer.write_table(pa.table([pa.array(chunk, pa.int32())], schema))
            count += len(chunk)
    return count
