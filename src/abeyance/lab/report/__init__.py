"""The lab's report: one HTML file, complete in itself, of the last run of each experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abeyance.errors import AbeyanceError
from abeyance.lab.report.page import chapters, page
from abeyance.pages.document import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from abeyance.lab.report.claims import Claim, Finding

__all__ = ["write_report"]


def write_report(rows: pd.DataFrame, destination: Path) -> list[tuple[str, Claim, Finding]]:
    """Write the report of these results (`Results.read`); AbeyanceError where there are none.

    Returns what it says to each claim, with the claim's experiment.
    """
    if rows.empty:
        raise AbeyanceError("there are no results yet: abeyance lab run enqueue --quick")
    told = chapters(rows)
    write_whole(page(told), destination)
    return [(chapter.name, claim, finding) for chapter in told for claim, finding in chapter.found]
