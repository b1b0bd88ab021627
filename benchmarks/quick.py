"""Ratios of today beside the committed ones, within ten minutes; those that fell by more than the noise are flagged.

    python -m benchmarks.quick [--seconds 600]

Whole default fits of benchmarks.quality, the shortest first, in three to fifteen rounds; the noise is the largest ratio
of times over the smallest. A ratio that is lower than the committed one by more than that is flagged. Short fits have
the committed seeds, long ones the first two, so objectives may differ. Writes nothing; exits with 1 if a ratio fell.
"""

import argparse
import sys
import time
import warnings

import numpy as np

from benchmarks.harness import console, load
from benchmarks.quality import cases, measure
from quickmeans.timing import machine

SHORT = 1.0  # seconds of all committed seeds, up to which a fit has them all


def plan(record):
    """Return the number of seeds, and of rounds."""
    once = sum(record["seconds"].values())
    if once * record["seeds"] <= SHORT:
        return record["seeds"], int(np.clip(2 * SHORT / (once * record["seeds"]), 3, 15))
    return 2, 3


def ratio(record):
    """Return how many times faster we are by the shortest fits, which other programs disturb the least."""
    return record["fewest seconds"]["scikit-learn"] / record["fewest seconds"]["QKMeans"]


def chosen(seconds):
    """Yield committed records and their rows, the shortest first, while three rounds of them take no longer."""
    committed = {(r["data"], r["K"]): r for r in load("quality")["records"]}
    found = [(committed[name, K], X) for name, X, numbers, _ in cases() for K in numbers if (name, K) in committed]
    for record, X in sorted(found, key=lambda pair: sum(pair[0]["seconds"].values())):
        seeds, rounds = plan(record)
        seconds -= 1.5 * rounds * seeds * sum(record["seconds"].values()) + 1
        if seconds < 0:
            return
        yield record, np.ascontiguousarray(X, np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begin, fell = time.perf_counter(), []
    here, there = machine()["cpu"], load("quality")["machine"]["cpu"]
    console.print(f"Today on {here}; committed: {there}.", highlight=False)
    for record, X in chosen(arguments.seconds):
        seeds, rounds = plan(record)
        today = [measure(record["data"], X, record["K"], None, seeds, False) for _ in range(rounds)]
        ratios = sorted(ratio(one) for one in today)
        committed = ratio(record)
        faster, noise = ratios[rounds // 2], ratios[-1] / ratios[0]
        objective, before = today[0]["objective"]["QKMeans"], record["objective"]["QKMeans"]
        slower = faster * noise < committed
        console.print(
            f"{record['data']}, K = {record['K']}: {faster:.2f} times faster (committed {committed:.2f}, "
            f"noise {noise:.2f}), objective {objective:.4f} ({before:.4f}){'  <- slower' * slower}",
            highlight=False,
        )
        fell += [record["data"]] * slower
    console.print(f"{time.perf_counter() - begin:.0f} s; {len(fell)} fell", highlight=False)
    sys.exit(bool(fell))


if __name__ == "__main__":
    main()
