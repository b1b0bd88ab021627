"""The code of the README and of pages that need no files runs, and the first lines print what the README says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
# pages that need no files
RUN = ("getting-started.md", "user-guide.md", "extending.md", "nystroem.md", "report.md", "neighbours.md")


def test_the_ten_lines():
    code, output = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text("utf-8"), re.S).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    numbers = re.compile(r"\d+\.\d+")
    assert numbers.sub("", printed.getvalue()) == numbers.sub("", output)
    for ours, theirs in zip(numbers.findall(printed.getvalue()), numbers.findall(output), strict=True):
        assert abs(float(ours) - float(theirs)) < 1e-3


@pytest.mark.parametrize("page", [README.parent / "docs" / name for name in RUN], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, page.name, "exec"), {})
