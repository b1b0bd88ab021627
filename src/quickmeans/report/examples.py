"""The rows that show what a cluster is about: their texts, their images, or their numbers."""

import base64
import warnings
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.data import RowSource
from quickmeans.data.open import as_source, open_rows
from quickmeans.data.reading import Note
from quickmeans.data.values import check_column, column_values
from quickmeans.report.centroids import Shape, pictures
from quickmeans.report.png import data_uri

_LONGEST, _NAME = 160, 40  # letters of a text in the table, and in a name
_MOST_BYTES = 300_000  # of an image
_FORMATS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


class Examples:
    """The values of some rows, by row number, and how a page shows them."""

    def __init__(self, texts: Mapping[int, Any], images: Mapping[int, str]) -> None:
        self.texts, self.images = texts, images

    def html(self, rows: Iterable[int]) -> str:
        """Return the examples of a cell."""
        return "".join(f"<li>{self._item(row)}</li>" for row in rows)

    def name(self, row: int) -> str | None:
        """Return a short text, if there are texts."""
        return _shortened(self.texts[row], _NAME) if row in self.texts else None

    def _item(self, row: int) -> str:
        picture, words = self.images.get(row), ""
        if row in self.texts:
            words = f'<span title="row {row}">{escape(_shortened(self.texts[row], _LONGEST))}</span>'
        if picture is not None:
            alt = escape(_shortened(self.texts[row], _NAME)) if row in self.texts else f"row {row}"
            return f'<img src="{picture}" alt="{alt}" title="row {row}">{words}'
        return words or f"row {row}"


def find_examples(
    rows: Any, index: NDArray[np.int64], n_rows: int, text: Any, images: Any, shape: Shape | None
) -> Examples:
    """Return the values of the rows `index`, which ascend: of columns, or drawn by the shape of an image."""
    numbers = index.tolist()
    texts = {} if text is None else dict(zip(numbers, _values(rows, text, index, n_rows, "text"), strict=True))
    if images is not None:
        values = _values(rows, images, index, n_rows, "images")
        shown = {row: _address(value, row) for row, value in zip(numbers, values, strict=True)}
    else:
        shown = _drawn(rows, index, shape)
    return Examples(texts, shown)


def check_values(rows: Any, given: Any, name: str) -> None:
    """Refuse the name of a column that there is not."""
    if isinstance(given, str):
        check_column(_table(rows, given, name), given)


def _values(rows: Any, given: Any, index: NDArray[np.int64], n_rows: int, name: str) -> list[Any]:
    if isinstance(given, str):
        return list(column_values(_table(rows, given, name), given, index))
    if len(given) != n_rows:
        raise ValueError(f"{name} must have one value for each of the {n_rows} rows, got {len(given)}.")
    values = given.to_numpy() if hasattr(given, "to_numpy") else given
    return [values[row] for row in index.tolist()]


def _table(rows: Any, column: str, name: str) -> RowSource:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)  # the pass over the rows says the same
        warnings.filterwarnings("ignore", "Column", UserWarning)
        source = as_source(rows)
    if source is None or (source.table is None and not source.paths):
        raise ValueError(f"{name}={column!r} names a column of a file, but rows is not one; give a value for each row.")
    return source


def _address(value: Any, row: int) -> str:
    """Return the data URI of an encoded image or of pixels."""
    if isinstance(value, Mapping):  # as in data sets of Hugging Face
        value = value.get("bytes")
    if isinstance(value, bytes):
        kind = next((kind for start, kind in _FORMATS.items() if value.startswith(start)), None)
        if kind is not None and len(value) <= _MOST_BYTES:
            return f"data:image/{kind};base64,{base64.b64encode(value).decode()}"
        problem = "is not a PNG, JPEG, GIF or WebP" if kind is None else f"has {len(value)} bytes, over {_MOST_BYTES}"
        raise ValueError(f"The image of row {row} {problem}; write smaller ones, or leave images out.")
    pixels = np.asarray(value)
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise ValueError(
            f"The image of row {row} must be the bytes of a file, or pixels in uint8 of shape (height, width) or "
            f"(height, width, 3), got {type(value).__name__}."
        )
    return data_uri(pixels)


def _drawn(rows: Any, index: NDArray[np.int64], shape: Shape | None) -> dict[int, str]:
    """Return pictures of the rows themselves, if they are images that can be taken out of their source."""
    if shape is None or not len(index):
        return {}
    try:
        values = open_rows(rows).take(index)
    except (TypeError, ValueError):  # sparse rows, Dask
        return {}
    return dict(zip(index.tolist(), pictures(values, shape), strict=True))


def _shortened(value: Any, most: int) -> str:
    words = " ".join(str(value).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"
