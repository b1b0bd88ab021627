"""PNG images inside a page."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}  # grey, RGB, RGB with opacity
_BELOW, _ABOVE = (49, 104, 205), (230, 97, 1)  # visible on white and on black


def data_uri(pixels: NDArray[np.uint8]) -> str:
    """Return a data URI of an image of shape (h, w), (h, w, 3) or (h, w, 4)."""
    return "data:image/png;base64," + base64.b64encode(encode(pixels)).decode()


def encode(pixels: NDArray[np.uint8]) -> bytes:
    """Return the bytes of a PNG file."""
    height, width, depth = pixels.shape if pixels.ndim == 3 else (*pixels.shape, 1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[depth], 0, 0, 0)
    lines = np.zeros((height, 1 + width * depth), np.uint8)  # each begins with the number of its filter, 0 for none
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def tinted(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return values from -1 to 1 as blue to orange; values near zero are transparent, to suit any background."""
    values = np.clip(values, -1, 1)
    pixels = np.empty((*values.shape, 4), np.uint8)
    pixels[..., :3] = np.where(values[..., None] < 0, _BELOW, _ABOVE)
    pixels[..., 3] = np.rint(255 * np.abs(values))
    return pixels


def shrunk(values: NDArray[Any], most: int, axis: int) -> NDArray[Any]:
    """Return means of neighbours along an axis, at most so many."""
    n = values.shape[axis]
    if n <= most:
        return values
    edges = np.linspace(0, n, most + 1).astype(int)
    counts = np.diff(edges).reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    return np.asarray(np.add.reduceat(values, edges[:-1], axis) / counts)
