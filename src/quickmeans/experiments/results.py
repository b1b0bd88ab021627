"""What an experiment has measured: rows of a CSV file that grows by one case at a time."""

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
    """Rows of one experiment. Columns that name the case, `data` and `K` or the like, come first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]

    def has(self, case: Row) -> bool:
        """Whether this case has been measured."""
        return bool(self.select(**case))

    def put(self, case: Row, rows: Iterable[Row]) -> None:
        """The rows of one case, in the place of earlier ones; on disk at once, all or none."""
        self.rows = [row for row in self.rows if not _matches(row, case)] + [{**case, **row} for row in rows]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as temporary, temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in self.rows for key in row)))
            writer.writeheader()
            writer.writerows(self.rows)

    def select(self, **where: Any) -> list[Row]:
        """The rows with these values."""
        return [row for row in self.rows if _matches(row, where)]

    def values(self, column: str, **where: Any) -> list[Any]:
        """The different values of a column, in their order."""
        return list(dict.fromkeys(row[column] for row in self.select(**where)))

    def spread(self, column: str, **where: Any) -> Spread | None:
        """Mean and deviation of a column over the rows with these values; None if there are none."""
        found = [row[column] for row in self.select(**where) if row.get(column) not in (None, "")]
        return Spread(float(np.mean(found)), float(np.std(found))) if found else None

    def ratio(self, column: str, method: str, other: str, **where: Any) -> float | None:
        """The mean of a column for one method over that for another; None if either is missing."""
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
