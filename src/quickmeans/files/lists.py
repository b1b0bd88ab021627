"""The file format of faiss's inverted lists, checked before faiss reads it.

faiss trusts the numbers in its files: a wrong one makes it allocate any amount of memory or read beyond its arrays. So
the layout is read here first. All numbers are little-endian:

- an index: a code of four letters, then a header: int32 width, int64 number of rows, 16 unused bytes, a byte "trained",
  int32 metric (0: inner products, 1: squared distances);
- the lists are an index with ``IwFl`` (rows in float32), ``IwSq`` (a byte per number) or ``IwPQ`` (product quantizer);
  uint64 number of lists, uint64 nprobe, the centroids (an index with ``IxF2`` or ``IxFI`` and a vector of float32),
  no direct map (a zero byte and an empty vector), the numbers of the codes, and then ``ilar``: uint64 number of
  lists, uint64 bytes per row, ``full`` and a vector of list sizes, or ``sprs`` and pairs of list and size; for every
  list that is not empty its rows, and then their ids in int64.

A vector is its length in uint64 and its numbers.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

METRICS = ("inner_product", "euclidean")  # by faiss's number

_ROWS_AT_A_TIME = 1 << 18  # whose ids are read together
# faiss takes over 100 bytes of memory per list. A file has at most so many lists, or one for 16 of its bytes: all have
# that whose rows have at least four numbers.
_MOST_LISTS, _BYTES_PER_LIST = 1 << 20, 16


@dataclass(frozen=True)
class Layout:
    """Where the lists are in a file, which is known to be complete."""

    shape: tuple[int, int]  # of the centroids: lists, features
    metric: str
    sizes: NDArray[np.int64]  # rows of the lists that are not empty
    code_size: int  # bytes per row
    data: memoryview  # the lists

    def ids(self) -> Iterator[NDArray[np.int64]]:
        """The ids of all rows, some at a time."""
        every_byte = np.ndarray((max(len(self.data) - 7, 0),), "<i8", self.data, strides=(1,))
        begins = np.cumsum(self.sizes * (self.code_size + 8)) - 8 * self.sizes  # of the ids of every list
        firsts = np.cumsum(self.sizes) - self.sizes
        n_rows = int(self.sizes.sum())
        for row in range(0, n_rows, _ROWS_AT_A_TIME):
            rows = np.arange(row, min(row + _ROWS_AT_A_TIME, n_rows))
            of_row = np.searchsorted(firsts, rows, side="right") - 1
            yield every_byte[begins[of_row] + 8 * (rows - firsts[of_row])].astype(np.int64)


def read_layout(data: memoryview) -> Layout:
    """The layout of a file of lists; a ValueError says what is wrong with it."""
    reader = _Reader(data)
    kind = reader.letters("IwFl", "IwSq", "IwPQ")
    width, n_rows, metric = reader.index_header()
    n_lists, _ = reader.numbers("QQ")
    if not 1 <= n_lists <= max(_MOST_LISTS, len(data) // _BYTES_PER_LIST):
        raise ValueError(f"it must have one list at least, and not so many more than rows, got {n_lists}.")
    reader.letters("IxF2" if metric else "IxFI")
    if reader.index_header() != (width, n_lists, metric):
        raise ValueError("its centroids must be one per list.")
    reader.vector(4, width * n_lists)
    if reader.numbers("b") != (0,):
        raise ValueError("it must not have a direct map.")
    reader.vector(8, 0)
    code_size = _CODES[kind](reader, width)
    reader.letters("ilar")
    if reader.numbers("QQ") != (n_lists, code_size):
        raise ValueError(f"it must have {n_lists} lists and {code_size} bytes per row.")
    sizes = _list_sizes(reader, n_lists)
    rest = reader.rest()
    # Each size is at most the file's, so that the sum cannot overflow.
    if (sizes > len(rest)).any() or int(sizes.sum()) != n_rows or n_rows * (code_size + 8) != len(rest):
        raise ValueError(f"it must have {n_rows} rows in its lists, and nothing after them.")
    return Layout((n_lists, width), METRICS[metric], sizes.astype(np.int64), code_size, rest)


class _Reader:
    """Reads one field after the other, and never beyond the end."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.position = data, 0

    def take(self, n_bytes: int) -> memoryview:
        begin, end = self.position, self.position + n_bytes
        if end > len(self.data):
            raise ValueError("it is cut short.")
        self.position = end
        return self.data[begin:end]

    def numbers(self, form: str) -> tuple[Any, ...]:
        form = "<" + form
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def letters(self, *options: str) -> str:
        code = bytes(self.take(4)).decode("latin-1")
        if code not in options:
            raise ValueError(f"it must have {' or '.join(options)} where it has {code!r}.")
        return code

    def index_header(self) -> tuple[int, int, int]:
        """Width, number of rows, and metric."""
        width, n_rows, _, _, trained, metric = self.numbers("iqqqbi")
        if width < 1 or n_rows < 0 or trained != 1 or metric not in (0, 1):
            raise ValueError("its width, number of rows, state or metric must be one that there is.")
        return width, n_rows, metric

    def vector(self, item_size: int, length: int) -> memoryview:
        if self.numbers("Q") != (length,):
            raise ValueError(f"it must have a vector of {length} numbers at byte {self.position - 8}.")
        return self.take(item_size * length)

    def rest(self) -> memoryview:
        return self.take(len(self.data) - self.position)


def _flat(reader: _Reader, width: int) -> int:
    return 4 * width


def _scalar_quantizer(reader: _Reader, width: int) -> int:
    """Type, range statistic and its argument, width, bytes per row; smallest values and ranges; and these again."""
    quantizer_type, _, _, *sizes = reader.numbers("iifQQ")
    reader.vector(4, 2 * width)
    *again, by_residual = reader.numbers("Qb")
    if quantizer_type != 0 or sizes != [width, width] or again != [width] or by_residual not in (0, 1):
        raise ValueError("its scalar quantizer must have a byte per number.")
    return width


def _product_quantizer(reader: _Reader, width: int) -> int:
    """Whether codes are relative to the centroids, bytes per row; width, parts, bits; centroids of the parts."""
    by_residual, code_size, own_width, n_parts, n_bits = reader.numbers("bQQQQ")
    if own_width != width or not 1 <= n_parts <= width or width % n_parts or not 1 <= n_bits <= 12:
        raise ValueError("its product quantizer must cut the rows into equal parts of 1 to 12 bits.")
    reader.vector(4, width << n_bits)
    if code_size != (n_parts * n_bits + 7) // 8 or by_residual not in (0, 1):
        raise ValueError(f"its product quantizer must have {n_parts} parts of {n_bits} bits.")
    return int(code_size)


_CODES = {"IwFl": _flat, "IwSq": _scalar_quantizer, "IwPQ": _product_quantizer}


def _list_sizes(reader: _Reader, n_lists: int) -> NDArray[np.uint64]:
    """The numbers of rows of the lists that are not empty."""
    if reader.letters("full", "sprs") == "full":
        sizes = np.frombuffer(reader.vector(8, n_lists), "<u8")
        return sizes[sizes > 0]
    (length,) = reader.numbers("Q")
    pairs = np.frombuffer(reader.take(8 * length), "<u8")
    if length % 2:
        raise ValueError("it must have pairs of a list and its size.")
    lists, sizes = pairs[::2], pairs[1::2]
    if (lists >= n_lists).any() or (lists[1:] <= lists[:-1]).any() or (sizes == 0).any():
        raise ValueError("the lists that are not empty must be named in ascending order.")
    return sizes
