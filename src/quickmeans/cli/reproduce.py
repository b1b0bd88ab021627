"""``quickmeans reproduce``: the tables and figures of the paper, measured again."""

import json
from pathlib import Path

import click

from quickmeans.cli.command import Command, on_interrupt
from quickmeans.cli.outputs import check_folder, need_matplotlib
from quickmeans.cli.terminal import console, print_facts
from quickmeans.experiments import EXPERIMENTS


@click.command(
    cls=Command,
    examples=[
        "reproduce --quick",
        "reproduce --list",
        "reproduce figure2 table4 --data ~/data",
        "reproduce --output results --page docs/reproduction.md",
    ],
)
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(list(EXPERIMENTS)))
@click.option("--quick", is_flag=True, help="Fewer seeds, rows and clusters: takes minutes, and the results are rough.")
@click.option("--data", metavar="DIR", help="Directory of mnist/ and fashion-mnist/.  [default: $QUICKMEANS_DATA]")
@click.option(
    "-o", "--output", metavar="DIR", help="Directory of the results.  [default: reproduction or reproduction-quick]"
)
@click.option("--page", metavar="FILE", help="Write the page of all results also there, with its figures beside it.")
@click.option("--force", is_flag=True, help="Measure again what the output directory has already; keep fitted models.")
@click.option("--list", "list_names", is_flag=True, help="List the experiments and exit.")
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    data: str | None,
    output: str | None,
    page: str | None,
    force: bool,
    list_names: bool,
) -> None:
    """Measure the tables and figures of the paper on QuicK-means again: those of the given NAMEs, or all.

    Each experiment writes its measurements (CSV), its figure (PNG and SVG), and a table of the numbers in the paper
    beside ours; README.md in the output directory collects everything. Measurements are written case by case: an
    interrupted run continues where it stopped.
    """
    if list_names:
        print_facts(list(EXPERIMENTS.items()))
        return
    need_matplotlib()
    from quickmeans.experiments import load_experiment
    from quickmeans.experiments.data import IMAGES, directory, missing
    from quickmeans.experiments.experiment import perform
    from quickmeans.experiments.page import write_page
    from quickmeans.experiments.run import Run

    terminal = console()
    folder = Path(output or ("reproduction-quick" if quick else "reproduction"))
    run = Run(folder, directory(data), quick, force, terminal)
    if page is not None and Path(page).resolve().parent != folder.resolve():
        check_folder(Path(page))
    _claim(folder, quick)
    for name in IMAGES:
        if (reason := missing(name, run.data)) is not None:
            terminal.print(f"Left out: {reason}")
    if run.images() == ["digits"]:
        terminal.print("The digits of scikit-learn are used instead of these images.")
    on_interrupt(lambda: f"the measurements are in {folder}; the same command continues from there.")
    for name in names or EXPERIMENTS:
        perform(name, load_experiment(name), run)
        write_page(folder / "README.md", run)
    if page is not None:
        write_page(Path(page), run)
    terminal.print(f"All results are in {folder / 'README.md'}")


def _claim(folder: Path, quick: bool) -> None:
    """Make the directory; refuse one with other results."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "run.json"
    if note.exists() and json.loads(note.read_text())["quick"] != quick:
        raise click.ClickException(
            f"{folder} has results {'without' if quick else 'with'} --quick; give another --output or remove it."
        )
    if not note.exists() and (page := folder / "README.md").exists():
        raise click.ClickException(f"{page} is not a page of results and would be replaced; give another --output.")
    note.write_text(json.dumps({"quick": quick}))
