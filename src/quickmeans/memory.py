"""How much memory there is, so that what cannot fit is refused before it begins."""

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """The bytes that can be had without swapping; None where the system does not say."""
    try:
        lines = _MEMINFO.read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def refuse_too_large(what: str, needed: int) -> None:
    """Raise a MemoryError that says how much memory is needed, if there is less."""
    available = available_bytes()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} takes about {needed / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are available."
        )
