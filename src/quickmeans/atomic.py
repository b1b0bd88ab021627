"""Files that are replaced as a whole: a reader sees the old contents or the new ones, never a part.

The new contents go to a temporary file beside the target, which takes the target's name at the end. The name of a
temporary file tells which process of which machine writes it::

    .<name of the target>.<machine>-<process id>-<random digits>.tmp<ending of the target>

so that the next write to the same target can remove those that a killed process has left.
"""

import errno
import hashlib
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_LONGEST_PREFIX, _LONGEST_ENDING = 160, 16  # bytes and letters in a temporary name; file systems allow 255 bytes
_STALE_AFTER = 86400.0  # seconds without a change after which a temporary file of another machine is removed
_MARK = re.compile(r"([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.tmp(\..*)?")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a temporary file, which the caller writes; it replaces the file at `path` at the end.

    If the block fails, the temporary file is removed and the target stays as it was. Symbolic links are followed. The
    file gets the permissions that writing to `path` would give it.

    Raises
    ------
    OSError
        If `path` is a device, a pipe or a socket, which must not be replaced by a file.
    """
    with temporary_beside(path) as temporary:
        yield temporary
        put(temporary, path)


@contextmanager
def temporary_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a temporary file in the directory of `path`; if it is there at the end, it is removed."""
    given = Path(os.fsdecode(path))
    target = given.resolve()
    _mode(target)  # refuses before the work, not after it
    prefix = os.fsdecode(b"." + os.fsencode(target.name)[:_LONGEST_PREFIX] + b".")
    _remove_stale(target.parent, prefix)
    mark = f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f"{prefix}{mark}.tmp{given.suffix[:_LONGEST_ENDING]}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def put(temporary: Path, path: str | os.PathLike[str]) -> None:
    """Let a temporary file, which must be complete, take the place of the file at `path`."""
    target = Path(os.fsdecode(path)).resolve()
    mode = _mode(target)
    with open(temporary, "rb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    os.replace(temporary, target)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file at `path` by one with these contents, or make it."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _mode(target: Path) -> int | None:
    """The permissions of the target, or None if there is no such file; refuse what is not a file."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file, so it must not be replaced by one", str(target))
    return stat.S_IMODE(mode)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove the temporary files that dead processes have left for this target."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                mark = _MARK.fullmatch(entry.name, len(prefix))
                if mark is not None and _is_stale(entry, mark[1], int(mark[2])):
                    with suppress(OSError):
                        os.unlink(entry)


def _is_stale(entry: os.DirEntry[str], machine: str, process: int) -> bool:
    """Whether the process that wrote the file has ended; of other machines' processes only the file's age is known."""
    if machine == _machine():
        return not _is_alive(process)
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_AFTER


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


@cache
def _machine() -> str:
    """Digits for the space in which process ids are unique: a boot of a machine, or a container on it."""
    known = socket.gethostname()
    with suppress(OSError):
        known += Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(known.encode()).hexdigest()[:8]
