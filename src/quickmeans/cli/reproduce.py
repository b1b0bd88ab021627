"""``quickmeans reproduce``: the tables and figures of the paper, measured here."""

import json
from pathlib import Path

import click

from quickmeans.cli.command import Command, Interrupted
from quickmeans.cli.outputs import need_matplotlib
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
@click.option("--quick", is_flag=True, help="Fewer seeds, rows and clusters: minutes, and numbers of less weight.")
@click.option("--data", metavar="DIR", help="Where mnist/ and fashion-mnist/ are; else QUICKMEANS_DATA says it.")
@click.option("-o", "--output", metavar="DIR", help="Where results go.  [default: reproduction, or reproduction-quick]")
@click.option("--page", metavar="FILE", help="Write the page of all results there too, with its figures beside it.")
@click.option(
    "--force", is_flag=True, help="Measure again what is in the output directory already; fitted models stay."
)
@click.option("--list", "list_names", is_flag=True, help="Say what there is, and do nothing.")
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    data: str | None,
    output: str | None,
    page: str | None,
    force: bool,
    list_names: bool,
) -> None:
    """Measure the tables and figures of the paper on QuicK-means: all, or those of the given NAMEs.

    Each writes its numbers (CSV, case by case, so that a run that was cut off goes on where it was), its figure (PNG
    and SVG), and a line for every number that the paper states, theirs beside ours; README.md has all of it.
    """
    screen = console()
    if list_names:
        print_facts(list(EXPERIMENTS.items()))
        return
    need_matplotlib()
    from quickmeans.experiments import experiment
    from quickmeans.experiments.data import IMAGES, directory, missing
    from quickmeans.experiments.frame import Run, perform
    from quickmeans.experiments.page import write_page

    folder = Path(output or ("reproduction-quick" if quick else "reproduction"))
    run = Run(folder, directory(data), quick, force, screen)
    if page is not None and not ((parent := Path(page).resolve().parent).is_dir() or parent == folder.resolve()):
        raise click.ClickException(f"{page} cannot be written: there is no directory {Path(page).parent}.")
    _claim(folder, quick)
    for name in IMAGES:
        if (lack := missing(name, run.data)) is not None:
            screen.print(f"Left out: {lack}")
    if run.images() == ["digits"]:
        screen.print("scikit-learn's digits take the place of the images.")
    try:
        for name in names or EXPERIMENTS:
            perform(name, experiment(name), run)
            write_page(folder / "README.md", run)
    except KeyboardInterrupt:
        raise Interrupted(f"what was measured is in {folder}; the same command goes on from there.") from None
    if page is not None:
        write_page(Path(page), run)
    screen.print(f"All results are in {folder / 'README.md'}")


def _claim(folder: Path, quick: bool) -> None:
    """Make the directory; refuse one whose results are of another size."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "run.json"
    if note.exists() and json.loads(note.read_text())["quick"] != quick:
        raise click.ClickException(
            f"{folder} holds results {'without' if quick else 'with'} --quick; give another --output or remove it."
        )
    if not note.exists() and (page := folder / "README.md").exists():
        raise click.ClickException(f"{page} is of something else and would be replaced; give another --output.")
    note.write_text(json.dumps({"quick": quick}))
