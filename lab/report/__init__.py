"""The lab's report: one self-contained HTML file with the last run of each experiment."""

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
    """Write the report of these results (`Results.read`). Raise AbeyantError if there are no results.

    Return a list of (experiment, claim, finding), one for each claim.
    """
    if rows.empty:
        raise AbeyantError("there are no results yet: run python -m lab run enqueue --quick")
    all_chapters = chapters(rows)
    write_whole(page(all_chapters), destination)
    return [(chapter.name, claim, finding) for chapter in all_chapters for claim, finding in chapter.findings]
