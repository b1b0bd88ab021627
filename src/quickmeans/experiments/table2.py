"""Table 2: the data sets."""

from collections.abc import Iterator

from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run

COLUMNS = ("dimension", "classes", "training rows", "test rows")
PAPER = {
    "mnist": (784, 10, 60000, 10000),
    "fashion-mnist": (784, 10, 60000, 10000),
    "blobs": (2000, 1000, 29000, 1000),
}


def cases(run: Run) -> list[Row]:
    """Return one case per data set."""
    return [{"data": name} for name in (*run.images(), "blobs")]


def measure(run: Run, data: str) -> Iterator[Row]:
    """Measure the shapes of the data that were loaded."""
    X, test, y, _ = run.split(data)
    yield dict(zip(COLUMNS, (X.shape[1], len(set(y.tolist())), len(X), len(test)), strict=True))


def compare(results: Results) -> list[Line]:
    """Set the shapes beside those of the paper."""
    lines = []
    for row in results.rows:
        for column, paper in zip(COLUMNS, PAPER.get(row["data"], ("-",) * 4), strict=True):
            lines += line(f"{row['data']}, {column}", paper, str(row[column]))
    return lines


ABOUT = "Blobs are drawn by scikit-learn's `make_blobs` with deviation 12, seed 0 and otherwise default parameters."
EXPERIMENT = Experiment("Table 2: the data sets", ABOUT, cases, measure, compare)
