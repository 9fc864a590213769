"""The lab's report: one HTML file, complete in itself, of the last run of each experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abeyant.errors import AbeyantError
from abeyant.pages.document import write_whole
from lab.report.page import chapters, page

if TYPE_CHECKING:
    import pandas as pd

    from lab.claim import Claim, Finding

__all__ = ["write_report"]


def write_report(rows: pd.DataFrame, destination: Path) -> list[tuple[str, Claim, Finding]]:
    """Write the report of these results (`Results.read`); AbeyantError where there are none.

    Returns what it says to each claim, with the claim's experiment.
    """
    if rows.empty:
        raise AbeyantError("there are no results yet: python -m lab run enqueue --quick")
    told = chapters(rows)
    write_whole(page(told), destination)
    return [(chapter.name, claim, finding) for chapter in told for claim, finding in chapter.found]
