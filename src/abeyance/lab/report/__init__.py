"""The lab's report: one HTML file, complete in itself, of the last run of each experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abeyance.errors import AbeyanceError
from abeyance.lab.report.page import page
from abeyance.pages.document import write_whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_report"]


def write_report(rows: pd.DataFrame, destination: Path) -> None:
    """Write the report of these results (`Results.read`); AbeyanceError where there are none."""
    if rows.empty:
        raise AbeyanceError("there are no results yet: abeyance lab run enqueue --quick")
    write_whole(page(rows), destination)
