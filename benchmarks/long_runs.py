"""The table of long runs: the soak, forged files and memory layouts."""

from typing import Any

from benchmarks.harness import RESULTS, load
from benchmarks.markdown import rows


def minutes(seconds: float) -> str:
    """Return seconds as minutes."""
    return f"{seconds / 60:.0f} min"


def soaked() -> tuple[str, ...]:
    """Return the row of the soak."""
    soak = load("soak")
    turns, memory, took = soak["turns"], soak["mebibytes"], minutes(soak["seconds"])
    if "processor seconds" in soak:
        took += f", {minutes(soak['processor seconds'])} of processor time"
    found = f"{sum(turns.values())} turns ({turns['killed']} of them fits killed, {turns['interrupted']} interrupted): "
    found += f"every result right; {memory['after a quarter']:.1f} MiB in the first third of the settled time, "
    found += f"{memory['at the end']:.1f} MiB in the last; {soak['open files']} open files"
    return "everything by turns in one process", took, found, "`python -m benchmarks.soak`"


def forged(counts: dict[str, int], most: dict[str, float]) -> str:
    """Return what came of forged files."""
    loaded, bad = counts.get("loaded", 0), counts["bad"]
    found = f"{counts['files']} files: {loaded} loaded, {counts['files'] - loaded - bad} refused in a sentence, "
    return found + f"{bad} anything else; at most {most['seconds']:.2f} s and {most['megabytes']:.0f} MB"


def laid_out(counts: dict[str, int], _: dict[str, float]) -> str:
    """Return what came of memory layouts."""
    return f"{counts['layouts']} layouts, {counts['differed']} with another result of one of six methods"


PROGRAMS = {
    "fuzz_files": ("files with random changes and right checksums, read in another process", forged),
    "fuzz_layouts": ("random memory layouts, types and sparse forms", laid_out),
}


def long_runs() -> str:
    """Return the table."""
    cells: list[tuple[Any, ...]] = [soaked()]
    for name, (what, tell) in PROGRAMS.items():
        if (RESULTS / f"{name}.json").exists():
            r = load(name)
            program = f"`python tests/{name}.py --seconds 600`"
            cells.append((what, minutes(r["seconds"]), tell(r["counts"], r["most"]), program))
    return rows(["what", "how long it ran", "found", "program"], cells)
