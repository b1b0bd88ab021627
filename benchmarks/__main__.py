"""Everything is measured on one commit, part by part; what was cut short goes on where it was.

    python -m benchmarks [--again] [PART ...]

Each part runs one or more programs, which write benchmarks/results/*.json with machine, versions and commit.
A part that was finished on the present commit is not run again, unless --again says so or the sources have changed. At
the end the tables of README and docs/ are written. --list names the parts, what they took, and what is finished.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import tables
from benchmarks.harness import commit, console, load, save

# In this order: what decides first. Plots come after what they show. No part takes more than ten minutes on two cores.
PARTS: dict[str, list[str]] = {
    "default fits": ["default_fits"],
    "quality": ["quality"],
    "many clusters": ["many_clusters"],
    "grid": ["never_slower grid small one noise"],
    "wide and sparse": ["never_slower transform sparse blobs"],
    "clustering": ["clustering", "plots"],
    "search": ["search rates:mnist rates:fashion-mnist rates:words rates:blobs build:mnist build:words"],
    "kernel features": ["nystroem time", "nystroem error mnist 128 512", "nystroem error words convnet",
                        "nystroem plot"],
    "factors": ["factorization", "factorization --plot", "palm"],
    "operator": ["operator"],
    "sizes": ["balanced --large", "balanced --sweep"],
    "files": ["scale columns overlap batches dask many", "scale plot"],
    "parameters": ["knobs"],
}  # fmt: skip
# Only if they are named: their peers take minutes, or their data are large.
NAMED: dict[str, list[str]] = {
    "many lists": ["search rates:resampled graph build:resampled"],
    "bounds on sizes": ["balanced --peer"],
    "a million": ["estimate"],
    "long files": ["scale rows clusters disk chunks", "scale plot"],
    "all kernel features": ["nystroem", "nystroem plot"],
    "the paper's neighbours": ["search paper:blobs paper:mnist paper:fashion-mnist"],
}
DONE = Path("build") / "bench"


def mark(name: str) -> Path:
    """Return the file that says that a part was finished on this commit."""
    return DONE / f"{commit()}-{name.replace(' ', '-')}"


def measure(name: str) -> bool:
    """Run a part, and return whether it went well."""
    begin = time.perf_counter()
    for program in (PARTS | NAMED)[name]:
        console.rule(program)
        if subprocess.run([sys.executable, "-m", *f"benchmarks.{program}".split()], env=os.environ).returncode:
            console.print(f"{program} failed")
            return False
    seconds = time.perf_counter() - begin
    console.print(f"{name}: {seconds:.0f} s")
    save("parts", {"seconds": load("parts").get("seconds", {}) | {name: round(seconds)}})
    if not commit().endswith("+"):  # changed sources may change again
        DONE.mkdir(parents=True, exist_ok=True)
        mark(name).touch()
    return True


def show_parts(chosen: list[str]) -> None:
    """Print the parts, what they took at their last time, and whether they are finished."""
    took = load("parts").get("seconds", {})
    for name in chosen:
        state = "finished" if mark(name).exists() else "to do"
        console.print(f"{name}: {state}" + (f", {took[name]} s at its last time" if name in took else ""))


def main() -> None:
    """Measure what was not measured on this commit, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", help=f"all by default of {', '.join(PARTS)}; also {', '.join(NAMED)}")
    parser.add_argument("--again", action="store_true", help="also what was finished on this commit")
    parser.add_argument("--list", action="store_true", help="print the parts, and run nothing")
    arguments = parser.parse_args()
    chosen = arguments.parts or list(PARTS)
    if unknown := set(chosen) - (PARTS | NAMED).keys():
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if arguments.list:
        show_parts(arguments.parts or list(PARTS | NAMED))
        return
    failed = [name for name in chosen if (arguments.again or not mark(name).exists()) and not measure(name)]
    tables.main()
    if failed:
        sys.exit(f"These parts failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
