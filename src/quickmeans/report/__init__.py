"""An HTML page on a fitted model."""

from quickmeans.report.page import write_report

__all__ = ["write_report"]
