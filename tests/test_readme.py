"""The README's code prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_ten_lines():
    code, output = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text("utf-8"), re.S).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    numbers = re.compile(r"\d+\.\d+")
    assert numbers.sub("", printed.getvalue()) == numbers.sub("", output)
    for ours, theirs in zip(numbers.findall(printed.getvalue()), numbers.findall(output), strict=True):
        assert abs(float(ours) - float(theirs)) < 1e-3
