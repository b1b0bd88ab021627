r"""A `State` as the bytes of a file, and back. No code runs when a file is read.

A file is a safetensors file: eight bytes with the length of the header, the header in JSON, the arrays. The metadata in
the header has one entry, ``quickmeans``: a JSON object, written as a string, with the facts of the state and

- ``format_version``: the version of this format;
- ``class``: the class of the object;
- ``library_version``: the version of quickmeans that wrote the file;
- ``sha256``: the SHA-256 of the whole file with zeros in place of these 64 digits.

So damage is noticed, but not a forgery. ``docs/file-format.md`` describes what each class stores.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from reprlib import repr as shortened
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from quickmeans import atomic
from quickmeans.state import Facts, InvalidModelError, State

FORMAT_VERSION = 2  # version 1 says "reach" where version 2 says "margin"

_KEY = "quickmeans"
_DIGITS = 64
_CHECKSUM = re.compile(rb'\\"sha256\\":\\"([0-9a-f]{64})\\"')  # JSON within a JSON string
# A header takes up to 30 bytes of memory per byte of its JSON. It may have so many bytes, or a quarter of the file.
_LONGEST_HEADER = 1 << 22
_MOST_TENSORS = 1000  # two products of 64 factors, of three arrays each, and some others


def write(path: str | os.PathLike[str], state: State) -> None:
    """Replace the file at `path` by one with this state, or make it."""
    atomic.write_bytes(path, encode(state))


def read(path: str | os.PathLike[str]) -> State:
    """The state in a file; an InvalidModelError goes on from the name of the file (see `explaining`)."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        raise InvalidModelError("is a pipe; a model must be a file.")
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.read(8)
        _facts(file.read(_header_length(start, size)))  # refuses a foreign file before all of it is read
        file.seek(0)
        return decode(file.read(size))


@contextmanager
def explaining(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn every error about the contents of a file into an InvalidModelError that names the file."""
    name = os.fsdecode(path)
    try:
        yield
    except InvalidModelError as error:
        raise InvalidModelError(f"{name} {error}") from None
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidModelError(f"{name} is not a valid {what}: {error}") from None


def encode(state: State) -> bytes:
    """The contents of a file."""
    state.check_loadable()
    about = state.facts | {
        "format_version": FORMAT_VERSION,
        "sha256": "0" * _DIGITS,
        "class": state.kind,
        "library_version": version("quickmeans"),
    }
    text = json.dumps(about, sort_keys=True, separators=(",", ":"), allow_nan=False)
    data = safetensors.save({name: np.ascontiguousarray(T) for name, T in state.tensors.items()}, {_KEY: text})
    longest = _longest_header(len(data))
    if int.from_bytes(data[:8], "little") > longest:
        raise ValueError(f"The names of the features are too long: the header may have {longest} bytes.")
    return signed(data)


def decode(data: bytes) -> State:
    """The state that `encode` made these bytes of."""
    length = _header_length(data[:8], len(data))
    facts = _facts(data[8 : 8 + length])
    checksum = _CHECKSUM.search(data, 8, 8 + length)
    if checksum is None or checksum[1] != _digest(data, checksum.start(1)):
        raise InvalidModelError("is damaged: its checksum is not that of its contents.")
    try:
        return State(str(facts.get("class")), facts, safetensors.load(data))
    except (ValueError, TypeError, KeyError, SafetensorError) as error:
        raise InvalidModelError(f"is damaged, or is no safetensors file: {error}") from None


def signed(data: bytes) -> bytes:
    """The same bytes with their checksum."""
    checksum = _CHECKSUM.search(data, 8, 8 + int.from_bytes(data[:8], "little"))
    assert checksum is not None
    begin, end = checksum.span(1)
    return data[:begin] + _digest(data, begin) + data[end:]


def _digest(data: bytes, begin: int) -> bytes:
    """SHA-256 of the data with zeros from `begin` on where the checksum is, as hexadecimal digits."""
    digest = hashlib.sha256(memoryview(data)[:begin])
    digest.update(b"0" * _DIGITS)
    digest.update(memoryview(data)[begin + _DIGITS :])
    return digest.hexdigest().encode()


def _longest_header(size: int) -> int:
    return max(_LONGEST_HEADER, size // 4)


def _header_length(start: bytes, size: int) -> int:
    length = int.from_bytes(start, "little")
    if size < 8 or length > min(size - 8, _longest_header(size)):
        raise InvalidModelError("is cut short, or is no safetensors file.")
    return length


def _facts(header: bytes) -> Facts:
    """What the header says, if its format is known."""
    whole = _json(header)
    if whole is None:
        raise InvalidModelError("is damaged, or is no safetensors file: its header is not JSON.")
    metadata = whole.get("__metadata__") if isinstance(whole, dict) else None
    text = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str) or len(whole) > _MOST_TENSORS:
        raise InvalidModelError("is not a model of quickmeans.")
    facts = _json(text)
    format_version = facts.get("format_version") if isinstance(facts, dict) else None
    if type(format_version) is not int or format_version < 1:
        raise InvalidModelError("is damaged: its header does not say which format version it has.")
    if format_version > FORMAT_VERSION:
        raise InvalidModelError(
            f"has format version {shortened(format_version)}, but quickmeans {version('quickmeans')} reads versions up "
            f"to {FORMAT_VERSION}; a newer quickmeans will read it."
        )
    assert isinstance(facts, dict)
    return facts


def _json(text: str | bytes) -> Any:
    """The value, or None if the text is not JSON."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
