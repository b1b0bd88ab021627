"""The tables of README and docs/benchmarks.md are those of the results in benchmarks/results."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
tables = pytest.importorskip("benchmarks.tables", reason="the benchmarks are not here")


@pytest.mark.parametrize("name", tables.TABLES)
def test_a_table_is_that_of_the_results(name):
    assert tables.parts(name)[1] == tables.TABLES[name][1]()
