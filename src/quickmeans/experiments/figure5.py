"""Figure 5: error of the Nyström approximation, and the time of its features."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sklearn.kernel_approximation import Nystroem

from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.landmarks import nystroem
from quickmeans.experiments.models import OURS, PAPER
from quickmeans.experiments.plots import panels, spread_lines
from quickmeans.experiments.results import Results, Row
from quickmeans.experiments.run import Run
from quickmeans.timing import alternate

LANDMARKS = ["uniform", "K-means", PAPER, OURS]
DENSE = "K-means (scikit-learn)"
TIMED = [DENSE, "K-means", PAPER, OURS]
_ROWS = 1000  # test rows whose kernel matrix is approximated


def cases(run: Run) -> list[Row]:
    """Return all data sets with every number of clusters and every seed."""
    return run.blob_cases() + run.image_cases()


def measure(run: Run, data: str, K: int, seed: int) -> Iterator[Row]:
    """Measure the relative error of the kernel matrix of test rows, and microseconds per row of features."""
    test = run.split(data).test
    models = {method: nystroem(run, data, K, seed, method) for method in LANDMARKS}
    calls: dict[str, Callable[[], Any]] = {key: partial(models[key].transform, test) for key in TIMED[1:]}
    plain = models["K-means"]
    peer = Nystroem(gamma=plain.gamma_, n_components=K).fit(plain.components_)
    seconds = alternate(calls | {DENSE: partial(peer.transform, test)}, rounds=3, most=3)
    for method in (DENSE, *LANDMARKS):
        row: Row = {"method": method}
        if method in models:
            row |= {"error": models[method].approximation_error(test[:_ROWS])}
        if method in seconds:
            row |= {"microseconds": 1e6 * seconds[method] / len(test)}
        yield row


def compare(results: Results) -> list[Line]:
    """Set ratios of errors and times beside the statements of the paper."""
    lines = []
    for data, K in dict.fromkeys((row["data"], row["K"]) for row in results.rows):
        case = {"data": data, "K": K}
        for method, paper in (("uniform", "above 1"), (PAPER, "slightly above 1"), (OURS, "-")):
            ratio = results.ratio("error", method, "K-means", **case)
            lines += line(f"{data}, K = {K}, error of {method} over that of K-means", paper, ratio)
        for method, paper in ((PAPER, "clearly" if data == "blobs" else "somewhat"), (OURS, "-")):
            gain = results.ratio("microseconds", DENSE, method, **case)
            lines += line(f"{data}, K = {K}, {method}: times faster than {DENSE}", paper, gain)
    return lines


def draw(run: Run, results: Results) -> Any:
    """Draw errors on the left and times on the right, one row per data set."""
    names = results.values("data")
    figure, axes = panels(len(names), 2, title=EXPERIMENT.title)
    for row, data in zip(axes, names, strict=True):
        spread_lines(row[0], results, "K", "error", LANDMARKS, data=data)
        spread_lines(row[1], results, "K", "microseconds", TIMED, data=data)
        row[0].set(title=f"{data}: relative error")
        row[1].set(title=f"{data}: time of a row of features")
        row[0].legend(fontsize=7)
        row[1].legend(fontsize=7)
    return figure


ABOUT = """\
The error is that of the kernel matrix of 1000 test rows; the kernel is Gaussian with gamma one over the mean squared
distance of two rows. The time is that of one row of features (kernel values with all landmarks, times W^(-1/2)), with
all test rows in one batch. Uniform landmarks take as long as K-means landmarks."""
EXPERIMENT = Experiment("Figure 5: error and time of the Nyström approximation", ABOUT, cases, measure, compare, draw)
