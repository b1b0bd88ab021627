"""What was to be reached, and what was measured: every floor beside the results, in one table."""

from benchmarks.fit_floors import MANY, SLOWER, START
from benchmarks.markdown import rows
from benchmarks.other_floors import PAPER, SEARCH, SIZES

FLOORS = START + SLOWER + MANY + PAPER + SIZES + SEARCH


def table() -> str:
    """Return all floors as a table in Markdown."""
    return rows(["subject", "what", "floor", "measured, the worst case", "met"],
                [(f.subject, f.what, f.bound, *f.judge()) for f in FLOORS])  # fmt: skip
