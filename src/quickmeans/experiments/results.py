"""The measurements of an experiment: rows of a CSV file that is written after every case."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quickmeans.atomic import replacing

Row = dict[str, Any]


class Spread(NamedTuple):
    """Mean and deviation over the seeds."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} ± {self.deviation:.1g}" if self.deviation else f"{self.mean:.3g}"


class Results:
    """The rows of one experiment. The columns that name the case, such as `data` and `K`, come first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]

    def has(self, case: Row) -> bool:
        """Return whether this case has been measured."""
        return bool(self.select(**case))

    def put(self, case: Row, rows: Iterable[Row]) -> None:
        """Replace the rows of one case, and write the file, which is complete at all times."""
        self.rows = [row for row in self.rows if not _matches(row, case)] + [{**case, **row} for row in rows]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as temporary, temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in self.rows for key in row)))
            writer.writeheader()
            writer.writerows(self.rows)

    def select(self, **where: Any) -> list[Row]:
        """Return the rows with these values."""
        return [row for row in self.rows if _matches(row, where)]

    def values(self, column: str, **where: Any) -> list[Any]:
        """Return the distinct values of a column in the order of their first rows."""
        return list(dict.fromkeys(row[column] for row in self.select(**where)))

    def spread(self, column: str, **where: Any) -> Spread | None:
        """Return mean and deviation of a column over the rows with these values; None without rows."""
        values = [row[column] for row in self.select(**where) if row.get(column) not in (None, "")]
        return Spread(float(np.mean(values)), float(np.std(values))) if values else None

    def ratio(self, column: str, method: str, other: str, **where: Any) -> float | None:
        """Return the mean of a column for one method over that for another; None if either is missing."""
        above, below = (self.spread(column, method=name, **where) for name in (method, other))
        return above.mean / below.mean if above and below else None


def _matches(row: Row, where: Row) -> bool:
    return all(row.get(key) == value for key, value in where.items())


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
