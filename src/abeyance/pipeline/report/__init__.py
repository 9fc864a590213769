"""The report: one HTML file, complete in itself, of the analysis of a request log."""

from __future__ import annotations

import os
from pathlib import Path

from .analysis import ReportError, read_analysis
from .page import page
from .style import plotly

__all__ = ["ReportError", "write_report"]

plotly("graph_objects")  # whoever means to write a report later learns now, before the work, if it is missing


def write_report(tables: Path, destination: Path) -> None:
    """Write the report of the analysis whose small tables lie in `tables`; a reader never sees half of it."""
    text = page(read_analysis(tables))
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
