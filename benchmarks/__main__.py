"""Everything is measured on one commit, part by part; what was cut short goes on where it was.

    python -m benchmarks [--again] [PART ...]

Each part is a program of its own that writes benchmarks/results/PART.json with its machine, versions and commit. A part
that was finished on the present commit is not run again, unless --again says so or the sources have changed. At the end
the tables of README and docs/benchmarks.md are written. --list names the parts, and what is finished.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import tables
from benchmarks.harness import commit, console

# In this order: what decides first. Plots come after their part.
PARTS = {
    "quality": [[]],
    "many_clusters": [[]],
    "never_slower": [[]],
    "clustering": [[]],
    "plots": [[]],
    "operator": [[]],
    "factorization": [[], ["--plot"]],
    "palm": [[]],
    "balanced": [["--peer"], ["--large"]],
    "search": [[], ["plot"]],
    "nystroem": [[], ["plot"]],
    "scale": [[]],
    "knobs": [[]],
}
DONE = Path("build") / "bench"


def mark(name: str) -> Path:
    """Return the file that says that a part was finished on this commit."""
    return DONE / f"{commit()}-{name}"


def measure(name: str) -> bool:
    """Run a part, and return whether it went well."""
    begin = time.perf_counter()
    for arguments in PARTS[name]:
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments]).returncode:
            console.print(f"{name} {' '.join(arguments)} failed")
            return False
    seconds = time.perf_counter() - begin
    console.print(f"{name}: {seconds:.0f} s")
    if not commit().endswith("+"):  # changed sources may change again
        DONE.mkdir(parents=True, exist_ok=True)
        mark(name).write_text(f"{seconds:.1f}\n")
    return True


def main() -> None:
    """Measure what was not measured on this commit, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--again", action="store_true", help="also what was finished on this commit")
    parser.add_argument("--list", action="store_true", help="print the parts, and run nothing")
    arguments = parser.parse_args()
    chosen = arguments.parts or list(PARTS)
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if arguments.list:
        for name in chosen:
            console.print(f"{name}: {mark(name).read_text().strip() + ' s' if mark(name).exists() else 'to do'}")
        return
    failed = [name for name in chosen if (arguments.again or not mark(name).exists()) and not measure(name)]
    tables.main()
    if failed:
        sys.exit(f"These parts failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
