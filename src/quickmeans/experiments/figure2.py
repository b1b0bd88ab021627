"""Figure 2: the objective over the iterations, and the centroids as images; K = 30."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.experiments.experiment import Experiment, Line, line
from quickmeans.experiments.letter import LETTER, letter
from quickmeans.experiments.models import EQUAL_SIZE, OURS, kmeans, qkmeans
from quickmeans.experiments.plots import panels, tiles
from quickmeans.experiments.results import Results, Row, Spread
from quickmeans.experiments.run import Run
from quickmeans.report.cost import n_numbers

K = 30
FLAT, HIERARCHICAL = "QK-means, sparsity {}", "hierarchical QK-means, sparsity {}"
LEVELS = {LETTER: (2, 3, 5), FLAT: (2, 3, 5), HIERARCHICAL: (2, 5), EQUAL_SIZE: (2, 5)}
METHODS = [*(kind.format(k) for kind, levels in LEVELS.items() for k in levels), OURS]
QUICK = [LETTER.format(2), FLAT.format(2), FLAT.format(5), HIERARCHICAL.format(5), EQUAL_SIZE.format(5), OURS]
SHOWN = ["K-means", LETTER.format(5), FLAT.format(5), HIERARCHICAL.format(5), EQUAL_SIZE.format(5)]  # as images
ENDS = {2: "about 1.08, read off", 5: "about 1.027, read off"}  # of the paper's curves for MNIST, over K-means
NUMBERS = {2: 3962, 3: 4002, 5: 5714}  # that the paper counts


def cases(run: Run) -> list[Row]:
    """Return every data set with every seed."""
    return run.seeded([{"data": name, "K": K} for name in run.images()])


def measure(run: Run, data: str, K: int, seed: int) -> Iterator[Row]:
    """Measure the objective after every iteration."""
    plain = kmeans(run, data, K, seed)
    yield from _curve("K-means", plain.centers.size, plain.history)
    for method in QUICK if run.quick else METHODS:
        level = _level(method)
        if method == LETTER.format(level):
            result = letter(run, data, K, seed, level)
            yield from _curve(method, int(result.numbers), result.history)
        else:
            model = qkmeans(run, data, K, seed, method)
            yield from _curve(method, n_numbers(model), model.objective_history_[1::2])


def _level(method: str) -> int:
    """Return the sparsity level of a method, or 0."""
    last = method.split()[-1]
    return int(last) if last.isdigit() else 0


def _curve(method: str, numbers: int, history: Any) -> Iterator[Row]:
    for i, value in enumerate(history):
        yield {"method": method, "numbers": numbers, "iteration": i + 1, "objective": float(value)}


def _objectives(results: Results, data: str, method: str, seed: int) -> NDArray[np.float64]:
    return np.array([row["objective"] for row in results.select(data=data, method=method, seed=seed)])


def final(results: Results, data: str, method: str) -> Spread | None:
    """Return the last objective over that of k-means from the same start."""
    ratios = []
    for seed in results.values("seed", data=data, method=method):
        ours, plain = (_objectives(results, data, name, seed)[-1] for name in (method, "K-means"))
        ratios.append(ours / plain)
    return Spread(float(np.mean(ratios)), float(np.std(ratios))) if ratios else None


def rises(results: Results, data: str, kind: str) -> str:
    """Return how many runs have an iteration that raises the objective, and by how much at most."""
    count, total, worst = 0, 0, 0.0
    for method in (kind.format(level) for level in LEVELS[kind]):
        for seed in results.values("seed", data=data, method=method):
            curve = _objectives(results, data, method, seed)
            rise = float((curve[1:] / curve[:-1] - 1).max(initial=0))
            count, total, worst = count + (rise > 1e-6), total + 1, max(worst, rise)
    return f"{count} of {total} runs" + (f", by {100 * worst:.2g} % at most" if count else "")


def compare(results: Results) -> list[Line]:
    """Return where the curves end, and whether they rise."""
    lines = []
    for data in results.values("data"):
        for method in METHODS:
            level, ratio = _level(method), final(results, data, method)
            of_paper = method in (LETTER.format(level), FLAT.format(level))
            numbers = results.spread("numbers", data=data, method=method)
            lines += line(f"{data}, {method}: numbers", NUMBERS[level] if of_paper else "-",
                          numbers and f"{numbers.mean:.0f}")  # fmt: skip
            end: object = "-" if method == OURS or method.startswith("als") else "slightly above 1"
            if of_paper and data == "mnist":
                end = ENDS.get(level, end)
            lines += line(f"{data}, {method}: last objective over that of K-means", end,
                          ratio and f"{ratio.mean:.4f} ± {ratio.deviation:.4f}")  # fmt: skip
        for name, kind in (("to the letter", LETTER), ("QK-means", FLAT)):
            lines += line(f"{data}, {name}: runs in which the objective rises", "none", rises(results, data, kind))
        bump = "a small bump" if data == "fashion-mnist" else "-"
        lines += line(f"{data}, hierarchical: runs in which the objective rises", bump,
                      rises(results, data, HIERARCHICAL))  # fmt: skip
    return lines


def draw(run: Run, results: Results) -> Any:
    """Draw curves above and centroids below."""
    names = results.values("data")
    figure, axes = panels(1 + len(SHOWN), len(names), title=EXPERIMENT.title, heights=[3.6] + [1.7] * len(SHOWN))
    for column, data in enumerate(names):
        _draw_curves(axes[0][column], results, data)
        for row, method in enumerate(SHOWN, 1):
            axes[row][column].imshow(_mosaic(run, data, method), cmap="gray_r")
            axes[row][column].set(title=method, xticks=[], yticks=[])
    axes[0][-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def _draw_curves(axis: Any, results: Results, data: str) -> None:
    for method in [name for name in (*METHODS, "K-means") if results.select(data=data, method=name)]:
        curves = [_objectives(results, data, method, seed) for seed in results.values("seed", data=data, method=method)]
        longest = max(map(len, curves))
        padded = [np.pad(curve, (0, longest - len(curve)), "edge") for curve in curves]
        axis.plot(range(1, longest + 1), np.mean(padded, axis=0), label=method, **_style(method))
    axis.set(title=data, xlabel="iteration", ylabel="objective", xlim=(1, None))
    axis.xaxis.get_major_locator().set_params(integer=True)


def _style(method: str) -> dict[str, Any]:
    """Return the look of a curve: one colour per sparsity level, one kind of line per kind of method."""
    if method in ("K-means", OURS):
        plain = method == "K-means"
        return {"color": "k" if plain else "C1", "ls": ":" if plain else "-", "lw": 1.5 if plain else 3}
    level = _level(method)
    lines = {LETTER: "-.", FLAT: "-", HIERARCHICAL: "--", EQUAL_SIZE: (0, (1, 1))}
    kind = next(style for form, style in lines.items() if form.format(level) == method)
    return {"color": {2: "C3", 3: "C0"}.get(level, "C2"), "ls": kind, "lw": 1.5}


def _mosaic(run: Run, data: str, method: str) -> Any:
    """Return an image of the centroids of the first seed, ten per row."""
    if method == "K-means":
        centers: Any = kmeans(run, data, K, 0).centers
    elif method == LETTER.format(_level(method)):
        centers = letter(run, data, K, 0, _level(method)).centers
    else:
        centers = qkmeans(run, data, K, 0, method).cluster_centers_
    return tiles(centers, per_row=10)


ABOUT = """\
The objective is that after an update of the centroids. "Read off" means that we read the end of the paper's curve for
MNIST off its figure. "To the letter" is the paper's algorithm as its appendix has it: raw pixels, four factors, a large
factor with the paper's budget, a hierarchical first factorization, plain gradient steps, the scale set once per sweep.
"QK-means" has the same factors and budgets, with our steps and on centered rows; its mean is not counted. "als" has two
factors with as many numbers as "QK-means". The hierarchical solver starts anew in every iteration, so its objective may
rise."""
DIFFERS = """\
On MNIST the paper's algorithm to the letter ends where the paper's curves end, with as many numbers. It may raise the
objective, because keeping the union of the largest entries of rows and columns is not the nearest point of a set. Our
steps end below it on both data sets and never raise the objective; they keep 3 to 5 percent more numbers, because
the entries that rows keep and those that columns keep overlap less. `als` ends far below with as many numbers."""
EXPERIMENT = Experiment(
    "Figure 2: objective over the iterations and centroids, K = 30", ABOUT, cases, measure, compare, draw, DIFFERS
)
