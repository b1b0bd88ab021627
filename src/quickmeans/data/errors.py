"""Errors that name the file."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def naming_errors(name: str, problem: str) -> Iterator[None]:
    """Raise any error that a library raises for a damaged file as a ValueError with the name and the problem.

    Errors that name the file already are raised as they are.
    """
    try:
        yield
    except Exception as error:  # libraries raise errors of many classes
        is_ours = type(error) is ValueError and name in str(error)
        if is_ours or (isinstance(error, OSError) and error.filename is not None):
            raise
        first_line = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ValueError(f"{name} {problem}: {first_line}") from None
