"""Plots and the HTML page that show what a model has learned."""

from quickmeans.report.page import write_report

__all__ = ["write_report"]
