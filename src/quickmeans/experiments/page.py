"""The page of a run: every figure, and every number of the paper beside ours."""

import shutil
from pathlib import Path

from quickmeans.experiments import EXPERIMENTS, experiment
from quickmeans.experiments.frame import Run, results_of
from quickmeans.experiments.timing import machine

_HEAD = """# The experiments of the paper

The tables and figures of section 4 of *QuicK-means* (Giffon, Emiya, Ralaivola, Kadri), numbered as in its LaTeX source,
measured again by `quickmeans reproduce{quick}`, which wrote this page.
{cores} cores of {cpu}, {memory_gib} GiB, Python {python}, {versions}.
{seeds} seeds; mean ± deviation.{size}

Unless said otherwise all methods start from the same random rows, and stop when the objective falls by less than 1e-6
of itself or after 10 iterations on Blobs and 20 elsewhere; palm4MSA makes at most 300 sweeps with the same tolerance.
"QK-means, sparsity k" and "hierarchical QK-means" are the paper's algorithms
(`QKMeans(shortlist=0, solver="palm4msa" or "hierarchical", sparsity_level=k)`), "{equal}" is our solver
with as many parameters, and "{ours}" is `QKMeans(K)`.
"""


def write_page(path: Path, run: Run) -> None:
    """Write the page of what there is in the directory of the run; figures go into a folder of its name beside it."""
    from quickmeans.experiments.models import EQUAL_SIZE, OURS

    facts = machine("scikit-learn", "faiss-cpu")
    versions = ", ".join(f"{name} {version}" for name, version in facts.pop("versions").items() if version)
    quick = " --quick" if run.quick else ""
    size = " Of every data set only a part was used, so the paper's numbers are no measure here." if quick else ""
    if run.images() == ["digits"]:
        size += " scikit-learn's digits stand in for MNIST and Fashion-MNIST, whose files were not there."
    parts = [
        _HEAD.format(
            **facts,
            versions=versions,
            quick=quick,
            size=size,
            seeds=len(run.seeds),
            equal=EQUAL_SIZE.format("k"),
            ours=OURS,
        )
    ]
    for name in EXPERIMENTS:
        if (run.directory / f"{name}.csv").exists():
            parts.append(_section(name, run, path))
    path.write_text("\n".join(parts), encoding="utf-8")


def _section(name: str, run: Run, page: Path) -> str:
    this = experiment(name)
    text = f"## {this.title}\n\n{this.about}\n"
    if this.differs and not run.quick:
        text += f"\n{this.differs}\n"
    figure = run.directory / f"{name}.png"
    if figure.exists():
        text += f"\n![{this.title}]({_placed(figure, page)})\n"
    lines = this.compare(results_of(name, run))
    if lines:
        text += "\n| | paper | ours |\n|---|---|---|\n"
        text += "".join(f"| {what} | {paper} | {ours} |\n" for what, paper, ours in lines)
    return text


def _placed(figure: Path, page: Path) -> str:
    """Where the figure is, seen from the page."""
    if figure.parent.resolve() == page.parent.resolve():
        return figure.name
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    if not (folder / figure.name).exists() or not (folder / figure.name).samefile(figure):
        shutil.copyfile(figure, folder / figure.name)
    return f"{folder.name}/{figure.name}"
