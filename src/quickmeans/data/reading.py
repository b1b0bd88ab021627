"""How a table is read: which of its columns, how its text is written, and what stands for missing values."""

from collections.abc import Sequence
from dataclasses import dataclass

MISSING = ("error", "drop", "mean")
FILL_IT = "fill it, or choose what to do with missing values (--missing drop or mean; missing= in open_rows)."


class Note(UserWarning):
    """Something that a user should know of the rows, and that is no sign of a mistake."""


@dataclass(frozen=True)
class Reading:
    """The parameters of :func:`quickmeans.open_rows` that concern tables."""

    columns: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    missing: str = "error"
    separator: str | None = None
    decimal: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        for name in ("columns", "exclude"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a list of names or patterns, got the string {getattr(self, name)!r}.")
        if self.missing not in MISSING:
            raise ValueError(f"missing must be one of {', '.join(map(repr, MISSING))}, got {self.missing!r}.")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\n\r'):
            raise ValueError(f"separator must be one character, and no quote, got {self.separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.decimal is not None and self.decimal == self.separator:
            raise ValueError(f"decimal and separator must differ, got {self.decimal!r} for both.")

    @property
    def selects(self) -> bool:
        """Whether columns are named."""
        return self.columns is not None or bool(self.exclude)

    @property
    def describes_text(self) -> bool:
        """Whether it says how a text file is written."""
        return (self.separator, self.decimal, self.header) != (None, None, None)
