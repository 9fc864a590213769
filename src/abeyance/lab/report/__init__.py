"""The lab's report: one HTML file, complete in itself, of the last run of each experiment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from abeyance.errors import AbeyanceError
from abeyance.lab.report.page import page

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_report"]


def write_report(rows: pd.DataFrame, destination: Path) -> None:
    """Write the report of these results (`Results.read`); AbeyanceError where there are none."""
    if rows.empty:
        raise AbeyanceError("there are no results yet: abeyance lab run enqueue --quick")
    text = page(rows)
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
