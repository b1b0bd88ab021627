"""Where rows come from: arrays, files of many kinds, functions that make iterators, Dask."""

from quickmeans.rows.open import open_rows
from quickmeans.rows.output import write_labels
from quickmeans.rows.source import RowSource

__all__ = ["RowSource", "open_rows", "write_labels"]
