"""Tables of README and docs/, written from benchmarks/results: no number in them is typed.

    python -m benchmarks.tables

A table stands between two lines ``<!-- name -->`` and ``<!-- end of name -->``; tests/test_benchmark_tables.py compares
each with the results.
"""

from collections.abc import Callable
from pathlib import Path

from benchmarks import floors, many_clusters, never_slower, quality, readme_table
from benchmarks.harness import DOCS, load
from benchmarks.page_tables import PAGES

README, BENCHMARKS = DOCS.parent / "README.md", DOCS / "benchmarks.md"
TABLES: dict[str, tuple[Path, Callable[[], str]]] = {
    "default calls": (README, readme_table.default_calls),
    "at a glance": (BENCHMARKS, readme_table.at_a_glance),
    "quality": (BENCHMARKS, lambda: quality.table(load("quality")["records"])),
    "never slower": (BENCHMARKS, lambda: never_slower.table(load("never_slower")["records"])),
    "many clusters": (BENCHMARKS, lambda: many_clusters.table(load("many_clusters")["records"])),
    "floors": (BENCHMARKS, floors.table),
    **{name: (DOCS / page, make) for page, tables in PAGES.items() for name, make in tables.items()},
}


def parts(name: str) -> tuple[str, str, str]:
    """Return the page of a table before it, the table, and the page after it."""
    before, rest = TABLES[name][0].read_text("utf-8").split(f"<!-- {name} -->\n")
    table, after = rest.split(f"<!-- end of {name} -->\n")
    return before + f"<!-- {name} -->\n", table, f"<!-- end of {name} -->\n" + after


def main() -> None:
    """Write all tables."""
    for name, (page, make) in TABLES.items():
        before, _, after = parts(name)
        page.write_text(before + make() + after, "utf-8")


if __name__ == "__main__":
    main()
