"""The page of a run: all figures, and every number of the paper beside ours."""

import shutil
from pathlib import Path

from quickmeans.experiments import EXPERIMENTS, load_experiment
from quickmeans.experiments.run import Run
from quickmeans.timing import machine

_HEAD = """# The experiments of the paper

The tables and figures of section 4 of *QuicK-means* (Giffon, Emiya, Ralaivola, Kadri), numbered as in its LaTeX source,
measured again by `quickmeans reproduce{quick}`, which wrote this page.
{cores} cores of {cpu}, {memory_gib} GiB, Python {python}, {versions}.
Mean ± deviation of {seeds} seeds.{size}

All methods start from the same random rows. They stop when the objective falls by less than a millionth of itself, or
after 10 iterations on Blobs and 20 on images; palm4MSA makes at most 300 sweeps with the same tolerance.
"QK-means, sparsity k" and "hierarchical QK-means" are the paper's algorithms
(`QKMeans(shortlist=0, solver="palm4msa" or "hierarchical", n_factors="paper", sparsity_level=k)`),
"{equal}" is our solver with as many parameters, and "{ours}" is `QKMeans(K)`.
"""


def write_page(path: Path, run: Run) -> None:
    """Write the page of all results in the directory of the run; figures go into a folder beside the page."""
    from quickmeans.experiments.models import EQUAL_SIZE, OURS

    facts = machine("scikit-learn", "faiss-cpu")
    versions = ", ".join(f"{name} {version}" for name, version in facts.pop("versions").items() if version)
    quick = " --quick" if run.quick else ""
    size = " Only a part of every data set was used: the numbers do not compare with the paper's." if quick else ""
    if run.images() == ["digits"]:
        size += " The digits of scikit-learn replace MNIST and Fashion-MNIST, whose files were missing."
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
    experiment = load_experiment(name)
    text = f"## {experiment.title}\n\n{experiment.about}\n"
    if experiment.differs and not run.quick:
        text += f"\n{experiment.differs}\n"
    figure = run.directory / f"{name}.png"
    if figure.exists():
        text += f"\n![{experiment.title}]({_copy_beside(figure, page)})\n"
    lines = experiment.compare(run.results(name))
    if lines:
        text += "\n| | paper | ours |\n|---|---|---|\n"
        text += "".join(f"| {what} | {paper} | {ours} |\n" for what, paper, ours in lines)
    return text


def _copy_beside(figure: Path, page: Path) -> str:
    """Copy the figure into the folder of the page, and return its path relative to the page."""
    if figure.parent.resolve() == page.parent.resolve():
        return figure.name
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    if not (folder / figure.name).exists() or not (folder / figure.name).samefile(figure):
        shutil.copyfile(figure, folder / figure.name)
    return f"{folder.name}/{figure.name}"
