"""An HTML page on a fitted model."""

from quickmeans.report.page import Report, make_report, write_report

__all__ = ["Report", "make_report", "write_report"]
