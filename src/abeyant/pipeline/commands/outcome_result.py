"""The summary that `resolve` and `stream` write besides outcomes: two small tables and a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from abeyant.pages.style import ReportError
from abeyant.pipeline.analysis.outcomes import Ended, expired_keys
from abeyant.pipeline.commands.command_line import redacted_command_line
from abeyant.pipeline.results.directory import REPORT, write_marker
from abeyant.pipeline.results.tables import put_table

__all__ = ["write_summary"]


def write_summary(
    directory: Path,
    ended: Ended,
    operations: DataFrame | None,
    *,
    kicker: str,
    rejected: Mapping[str, int],
    about: Mapping[str, Any],
    tables: Iterable[str] = (),
    no_keys: str = "",
) -> bool:
    """Write the tables `waits` and `expired_keys`, the marker, and the page; return whether the page was written.

    If any operation expired, `operations` is read again for the keys; if it is None, `no_keys` says why. The page needs
    the extra `report`; without it, a message on standard error says how to install it.
    """
    put_table(directory / "waits", ended.waits)
    counts = {"completed": ended.count("completed"), "expired": ended.expired}
    if cancelled := ended.count("cancelled"):
        counts["cancelled"] = cancelled
    if ended.pending:
        counts["pending_for_ever"] = ended.pending
    written = [*tables, "waits"]
    if operations is not None and ended.expired:
        put_table(directory / "expired_keys", expired_keys(ended, operations))
        written.append("expired_keys")
    command = {"command": redacted_command_line()}
    write_marker(directory, {**command, **about, **counts, "set_aside": dict(rejected), "tables": written})
    try:
        from abeyant.pipeline.report.outcome_page import write_outcome_report
    except ReportError as error:
        print(f"abeyant: no report: {error}", file=sys.stderr)
        return False
    write_outcome_report(directory, directory / REPORT, kicker=kicker, no_keys=no_keys)
    return True
