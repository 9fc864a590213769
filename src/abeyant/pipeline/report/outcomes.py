"""Outcomes of resolved operations, for the summary and the page: small tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from abeyant.pages.formatting import count, counted, duration, percent, shortened
from abeyant.pages.tiles import Tile
from abeyant.pipeline.report.analysis import ALL, Analysis
from abeyant.pipeline.report.parts import read_table
from abeyant.pipeline.results.directory import read_marker

__all__ = ["Outcomes", "named", "outcome_tiles", "ranked", "read_outcomes"]

UNNAMED: Final = "operations"
"""The name of the operations if none has a kind."""
_NO_KIND: Final = "(no kind)"
"""The name of operations without a kind if others have one: "operations" would look like a total."""

_MOST_KINDS: Final = 500
"""Maximum number of kinds in a page. With more, as where ids were given as kinds, a page would have many megabytes."""

_NEARLY_ALL: Final = 0.95
_LEAST_WARNED: Final = 20
"""Minimum number of operations of a kind for a warning: fewer operations may well all complete with no wait."""
_MOST_WARNED: Final = 3

_PERCENTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_BINS_PER_DECADE: Final = 10


@dataclass(frozen=True)
class Outcomes:
    """The tables `waits` and `expired_keys` of a result, its rejected rows by reason, and how the result was made."""

    waits: pd.DataFrame
    """Counts of operations: (kind, outcome, bin, most_ms, operations); see `analysis.outcomes`."""
    keys: pd.DataFrame | None
    """Keys on which most expired: (instance, key, expired, one_in); None if the keys were not looked up."""
    rejected: Mapping[str, int]
    """Number of rejected rows by reason."""
    made: Mapping[str, Any]
    unmatched: str = ""
    """A warning that no key of the operations occurs among the events, with what to do; '' if a key does."""
    may_be_open: str = ""
    """A note on how many operations expired with a deadline after the newest event; '' if none did."""

    def count(self, outcome: str) -> int:
        """Return the number of operations with this outcome."""
        return int(self.waits.loc[self.waits["outcome"] == outcome, "operations"].sum())

    @property
    def each_key_once(self) -> bool:
        """Return whether each known key has one expired operation only, so that no key stands out."""
        keys = self.keys
        return keys is not None and bool((keys["expired"] <= keys["one_in"].clip(lower=1).round()).all())

    @property
    def pending(self) -> int:
        """Return the number of operations that never end, because their countdown is paused for ever."""
        return int(self.made.get("pending_for_ever", 0))

    @property
    def title(self) -> str:
        """Return one line with the number of operations and of each outcome."""
        completed, expired, cancelled = (self.count(outcome) for outcome in ("completed", "expired", "cancelled"))
        total = completed + expired + cancelled + self.pending
        if not total:
            return "No operation was resolved"
        ended = f"{count(completed)} completed, {count(expired)} expired ({percent(expired / total)})"
        ended += f", {count(cancelled)} cancelled" if cancelled else ""
        ended += f", {count(self.pending)} pending for ever" if self.pending else ""
        return f"{counted(total, 'operation')}: {ended}"

    @cached_property
    def warning(self) -> str:
        """A warning that no key is in both tables, or that nearly all operations completed with no wait; else ''.

        Either suggests that the tables or the options do not fit the question. Names the kinds that did not wait.
        """
        if self.unmatched:
            return self.unmatched[0].upper() + self.unmatched[1:]
        immediate = (self.waits["outcome"] == "completed") & (self.waits["most_ms"] == 0)
        total = self.waits.groupby("kind")["operations"].sum()
        at_once = self.waits[immediate].groupby("kind")["operations"].sum().reindex(total.index, fill_value=0)
        kinds = [str(kind) for kind in total.index[(total >= _LEAST_WARNED) & (at_once >= _NEARLY_ALL * total)]]
        if not kinds:
            return ""
        suffix = f" and {len(kinds) - _MOST_WARNED:,} more kinds" if len(kinds) > _MOST_WARNED else ""
        names = ", ".join(map(shortened, kinds[:_MOST_WARNED]))
        of = "" if [*total.index] == [UNNAMED] else f" of {names}{suffix}"
        return (
            f"Nearly all operations{of} completed with no wait: what they wait for had happened before they started. "
            "If only events after the start count, resolve with count=after_start."
        )

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per kind, as in an analysis; percentiles are nearest rank and at most 0.5 % too long."""
        return pd.DataFrame(
            [_of_kind(str(kind), rows) for kind, rows in self.waits.groupby("kind")],
            columns=[
                *("instance", "kind", "operations", "waited", "completed", "expired", "unknown"),
                *("expired_share", *_PERCENTILES, "max_ms"),
            ],
        )

    @cached_property
    def analysis(self) -> Analysis:
        """The outcomes in the form of an analysis, for its figures and tables."""
        waited = self.waits["most_ms"] > 0
        with np.errstate(divide="ignore"):
            step = np.floor(np.log10(self.waits["most_ms"].where(waited, 1.0)) * _BINS_PER_DECADE)
        waits = self.waits.assign(
            instance=ALL,
            low_ms=np.where(waited, 10 ** (step / _BINS_PER_DECADE), 0.0),
            high_ms=np.where(waited, 10 ** ((step + 1) / _BINS_PER_DECADE), 0.0),
        )
        group = ["instance", "kind", "outcome", "low_ms", "high_ms"]
        counts = pd.DataFrame(waits.groupby(group, as_index=False)["operations"].sum())
        return Analysis({"waits": counts, "summary": self.summary})

    @property
    def slowest(self) -> pd.Series[Any]:
        """The row of `summary` of the kind that waits longest: with the highest p95, then the highest median."""
        return self.summary.sort_values(["p95_ms", "p50_ms"], ascending=False, kind="stable").iloc[0]


def outcome_tiles(outcomes: Outcomes) -> list[Tile]:
    """Return the tiles at the top of the page, which show its main numbers."""
    rows = outcomes.summary
    if rows.empty:
        return []
    total, expired = int(rows["operations"].sum()) + outcomes.pending, outcomes.count("expired")
    slow = outcomes.slowest
    of = f"of {shortened(slow['kind'], 24)}, which waits longest" if len(rows) > 1 else "of all waits"
    kinds = f"of {counted(len(rows), 'kind')}" if len(rows) > 1 else ""
    made = [
        Tile("operations", count(total), kinds),
        Tile("completed", count(outcomes.count("completed"))),
        Tile("expired", count(expired), percent(expired / total), alarm=expired > 0, link="how-they-ended-by-kind"),
        Tile("p95", duration(slow["p95_ms"]), of),
    ]
    if cancelled := outcomes.count("cancelled"):
        made.insert(3, Tile("cancelled", count(cancelled), percent(cancelled / total)))
    if outcomes.pending:
        made.insert(-1, Tile("pending for ever", count(outcomes.pending), "paused, and never resumed"))
    rejected = sum(outcomes.rejected.values())
    return [*made, Tile("rejected rows", count(rejected), link="rejected-rows")] if rejected else made


def read_outcomes(tables: Path) -> Outcomes:
    """Read the outcomes that `abeyant resolve` or `abeyant stream` wrote to a directory of small tables."""
    keys = ranked(read_table(tables, "expired_keys")) if (tables / "expired_keys").exists() else None
    marker = dict(read_marker(tables))
    waits = named(read_table(tables, "waits"))
    rejected, unmatched, may_be_open = (
        marker.pop("set_aside", {}),
        marker.pop("no_common_key", ""),
        marker.pop("may_be_open", ""),
    )
    return Outcomes(
        waits=waits, keys=keys, rejected=rejected, made=marker, unmatched=unmatched, may_be_open=may_be_open
    )


def named(waits: pd.DataFrame) -> pd.DataFrame:
    """Return counts of outcomes with a name for missing kinds, and the rarest kinds beyond `_MOST_KINDS` merged."""
    kinds = waits["kind"].replace("", UNNAMED if (waits["kind"] == "").all() else _NO_KIND)
    operations = waits.groupby(kinds)["operations"].sum().sort_values(ascending=False, kind="stable")
    others = len(operations) - _MOST_KINDS
    if others > 0:
        kinds = kinds.where(kinds.isin(operations.index[:_MOST_KINDS]), f"{others:,} other kinds")
    return waits.assign(kind=kinds)


def ranked(keys: pd.DataFrame) -> pd.DataFrame:
    """Return the keys sorted by expired operations, most first."""
    return keys.sort_values(["expired", "instance", "key"], ascending=[False, True, True])


def _of_kind(kind: str, rows: pd.DataFrame) -> dict[str, Any]:
    counts = {name: int(rows.loc[rows["outcome"] == name, "operations"].sum()) for name in ("completed", "expired")}
    operations = int(rows["operations"].sum())
    by_length = rows.sort_values("most_ms")
    cumulative = by_length["operations"].cumsum().to_numpy()
    lengths = by_length["most_ms"].to_numpy()
    ranks = {name: lengths[np.searchsorted(cumulative, share * operations)] for name, share in _PERCENTILES.items()}
    return {
        "instance": ALL,
        "kind": kind,
        "operations": operations,
        "waited": int(rows.loc[rows["most_ms"] > 0, "operations"].sum()),
        **counts,
        "unknown": 0,
        "expired_share": counts["expired"] / operations,
        **ranks,
        "max_ms": lengths[-1],
    }
