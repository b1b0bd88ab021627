"""faiss's lists to a file and back."""

from collections.abc import Callable
from pathlib import Path

from quickmeans.search.lists import Lists, faiss_library

# faiss may spend 2 GB on a table of products between centroids and codes. Without it searches are slower, and the same
# to rounding. Here it may be as large as this, or so many times larger than the file.
_TABLE_BYTES, _TABLE_PER_BYTE = 1 << 27, 16


def write_lists(lists: Lists, write: Callable[[bytes], object]) -> None:
    """Give the bytes of the lists, some at a time, to a function; its errors are passed on."""
    faiss = faiss_library()
    faiss.write_index(lists, faiss.PyCallbackIOWriter(write))


def read_lists(path: Path) -> Lists:
    """The lists in a file that has been checked by :func:`quickmeans.files.indexes.checked_lists`."""
    faiss = faiss_library()
    try:
        lists = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE)
    except RuntimeError as error:
        raise ValueError(f"faiss {faiss.__version__} cannot read its lists: {error}") from None
    if isinstance(lists, faiss.IndexIVFPQ) and lists.by_residual:
        table = 4 * lists.nlist * lists.pq.M * lists.pq.ksub
        if table <= max(_TABLE_BYTES, _TABLE_PER_BYTE * path.stat().st_size):
            lists.precompute_table()
    return lists
