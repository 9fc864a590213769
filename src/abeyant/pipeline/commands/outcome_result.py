"""The summary that `resolve` and `stream` write besides outcomes: two small tables and a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from abeyant.pipeline.commands.command_line import redacted_command_line
from abeyant.pipeline.report.outcome_page import write_outcome_report
from abeyant.pipeline.results.directory import REPORT, write_marker
from abeyant.pipeline.results.outcome_counts import OutcomeCounts
from abeyant.pipeline.results.small_table import put_table

__all__ = ["write_summary"]


def write_summary(
    directory: Path,
    ended: OutcomeCounts,
    keys: pa.Table | None,
    *,
    kicker: str,
    rejected: Mapping[str, int],
    about: Mapping[str, Any],
    tables: Iterable[str] = (),
    no_keys: str = "",
) -> None:
    """Write the tables `waits` and `expired_keys`, the result's marker file, and the page.

    `keys` are the keys on which most operations expired. They are None if nothing expired, or if the keys are unknown;
    `no_keys` then gives the reason.
    """
    put_table(directory / "waits", ended.waits)
    counts = {"completed": ended.count("completed"), "expired": ended.expired}
    if cancelled := ended.count("cancelled"):
        counts["cancelled"] = cancelled
    if ended.pending:
        counts["pending_for_ever"] = ended.pending
    written = [*tables, "waits"]
    if keys is not None:
        put_table(directory / "expired_keys", keys)
        written.append("expired_keys")
    command = {"command": redacted_command_line()}
    write_marker(directory, {**command, **about, **counts, "set_aside": dict(rejected), "tables": written})
    write_outcome_report(directory, directory / REPORT, kicker=kicker, no_keys=no_keys)
