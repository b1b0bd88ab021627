"""Errors of decompression, as errors that name the file."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

_ERRORS = (EOFError, KeyError, OSError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


@contextmanager
def naming_damage(name: str, kind: str = "") -> Iterator[None]:
    """Raise errors of gzip and zip files as a ValueError with the file's name and what the file should be."""
    try:
        yield
    except _ERRORS as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # the file cannot be opened, and the error names it
        what = f"is no {kind}" if kind else "is damaged"
        raise ValueError(f"{name} {what}, or is cut short: {error}.") from None
