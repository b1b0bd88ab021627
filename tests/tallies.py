"""Counts of several runs of a program, added up in a JSON file with the machine and the commit of the last one."""

import json
from subprocess import run

from quickmeans.timing import machine


def add_tally(path, seconds, counts, most=None):
    """Add seconds and counts to those of the file; keep the larger of the numbers in `most`."""
    old = json.loads(path.read_text()) if path.exists() else {"runs": 0, "seconds": 0.0, "counts": {}, "most": {}}
    total = {name: old["counts"].get(name, 0) + counts.get(name, 0) for name in sorted(old["counts"].keys() | counts)}
    largest = {name: max(value, old["most"].get(name, 0)) for name, value in (most or {}).items()}
    commit = run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    new = {"machine": machine(), "commit": commit, "runs": old["runs"] + 1, "seconds": old["seconds"] + seconds}
    path.write_text(json.dumps(new | {"counts": total, "most": largest}, indent=1) + "\n")
