"""The report: one HTML file, complete in itself, of the analysis of a request log."""

from __future__ import annotations

from pathlib import Path

from .analysis import ReportError, read_analysis
from .document import write_whole
from .page import page
from .style import plotly

__all__ = ["ReportError", "write_report"]

plotly("graph_objects")  # whoever means to write a report later learns now, before the work, if it is missing


def write_report(tables: Path, destination: Path) -> None:
    """Write the report of the analysis whose small tables lie in `tables`; a reader never sees half of it."""
    write_whole(page(read_analysis(tables)), destination)
