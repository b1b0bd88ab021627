"""Where rows come from: arrays, files of many formats, and functions that return iterators over chunks."""

from quickmeans.data.open import open_rows
from quickmeans.data.output import write_labels
from quickmeans.data.source import RowSource

__all__ = ["RowSource", "open_rows", "write_labels"]
