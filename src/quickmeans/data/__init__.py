"""Where rows come from: arrays, files of many kinds, functions that make iterators, Dask."""

from quickmeans.data.open import open_rows
from quickmeans.data.output import write_labels
from quickmeans.data.source import RowSource

__all__ = ["RowSource", "open_rows", "write_labels"]
