"""The report: one HTML file, complete in itself, of the analysis of a request log."""

from __future__ import annotations

from pathlib import Path

from abeyance.pages.document import write_whole
from abeyance.pages.style import ReportError, plotly
from abeyance.pipeline.report.analysis import read_analysis
from abeyance.pipeline.report.page import page

__all__ = ["ReportError", "write_report"]

plotly("graph_objects")  # whoever means to write a report later learns now, before the work, if it is missing


def write_report(tables: Path, destination: Path) -> None:
    """Write the report of the analysis whose small tables lie in `tables`; a reader never sees half of it."""
    write_whole(page(read_analysis(tables)), destination)
