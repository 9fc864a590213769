"""The small tables of one analysis, in memory. The report reads them for all instances or for one instance."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pandas as pd

from abeyant.errors import AbeyantError
from abeyant.former import former, written_before
from abeyant.pipeline.report.kinds import in_order
from abeyant.pipeline.report.what_happened import what_happened
from abeyant.pipeline.results.directory import MARKER

ALL: Final = "*"
"""The scope of all instances together; also the value of `instance` in rows that sum over instances."""

MOST_SCOPES: Final = 24
MOST_KEYS: Final = 8

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "requests_by_kind": ("instance", "api", "requests", "waited"),
    "summary": (
        *("instance", "kind", "operations", "waited", "completed", "expired", "unknown"),
        *("expired_share", "p50_ms", "p95_ms", "p99_ms", "max_ms"),
    ),
    "by_key": (
        *("instance", "kind", "key", "operations", "completed", "expired", "expired_share"),
        *("p50_ms", "p95_ms", "p99_ms", "max_ms", "total_waited_ms"),
    ),
    "pending_plot": ("instance", "kind", "at", "pending"),
    "timeout_curve": ("instance", "kind", "timeout_ms", "at_risk", "share_expiring", "low", "high"),
    "waits": ("instance", "kind", "outcome", "low_ms", "high_ms", "operations"),
    "incidents": (
        *("kind", "trouble", "first", "last", "operations", "expired"),
        *("longest_ms", "instances", "keys_struck", "keys"),
    ),
    "incident_waits": ("incident", "instance", "kind", "key", "start", "timeout_ms", "waited_ms", "outcome"),
    "lags": ("instance", "replica", "at", "lag_ms"),
    "suspects": ("incident", "suspect", "kind", "evidence", "confidence", "first", "last"),
    "waits_by_time": ("instance", "kind", "at", "outcome", "step", "operations"),
    "keys_by_time": ("instance", "kind", "key", "at", "outcome", "step", "operations"),
    "requests_by_time": ("instance", "api", "at", "requests", "waited"),
    "rejected": ("instance", "file", "line_number", "reason", "excerpt"),
}

_ADD_UP: Final = frozenset({"requests_by_kind", "pending_plot", "waits"})

LEAST_DRAWN: Final = 20
MOST_KINDS: Final = 8
"""Maximum number of kinds that figures draw; tables show all kinds."""


class ReportError(AbeyantError):
    """Raised if a report cannot be written. The message gives the reason in one line."""


@dataclass(frozen=True)
class Analysis:
    """The result of the analysis of a request log: its tables by name, and the settings it was made with."""

    tables: Mapping[str, pd.DataFrame]
    made: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def instances(self) -> list[str]:
        """All instances of the log, by number of requests, most first."""
        requests = self.tables["requests_by_kind"]
        rows = requests[requests["instance"] != ALL]
        totals = rows.groupby("instance")["requests"].sum().sort_index()
        return [str(name) for name in totals.sort_values(ascending=False, kind="stable").index]

    @cached_property
    def scopes(self) -> list[str]:
        """The views that a reader can choose: all instances together, then each one (if many, only the busiest)."""
        names = self.instances
        return [ALL] if len(names) < 2 else [ALL, *sorted(names[:MOST_SCOPES], key=_natural)]

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of operation, in the one order in which every figure and table shows them."""
        rows = self.within("waits", ALL)
        waited = ((rows["low_ms"] + rows["high_ms"]) / 2 * rows["operations"]).groupby(rows["kind"]).sum()
        totals = {str(kind): float(ms) for kind, ms in waited.items()}
        names = totals.keys() | {str(kind) for kind in self.tables["summary"]["kind"].unique()}
        return in_order(names, totals)

    @cached_property
    def apis(self) -> list[str]:
        """Every API with requests, sorted."""
        return sorted(str(api) for api in self.tables["requests_by_kind"]["api"].unique())

    @cached_property
    def drawn(self) -> list[str]:
        """The kinds that figures draw, each in a colour of its own; kinds with few waits are left out."""
        rows = self.within("summary", ALL)
        frequent = {str(kind) for kind in rows.loc[rows["waited"] >= LEAST_DRAWN, "kind"]}
        return ([kind for kind in self.kinds if kind in frequent] or self.kinds)[:MOST_KINDS]

    def points(self, of: int) -> int:
        """Return how many points each line of a figure gets if all lines of the page share `of` points; at least 45."""
        return max(of // max(len(self.scopes) * len(self.drawn), 1), 45)

    def within(self, table: str, scope: str) -> pd.DataFrame:
        """Return a table's rows for one scope; for ALL, the rows that sum over instances.

        If no row sums over instances, return the rows of every instance: for tables of counts, which the caller can add
        up, and for a log of one instance. Return no rows of percentiles and curves, which cannot be added up.
        """
        rows = self.tables[table]
        scope_rows = rows[rows["instance"] == scope]
        if scope == ALL and scope_rows.empty and (table in _ADD_UP or rows["instance"].nunique() < 2):
            return rows
        return scope_rows

    def incidents(self, scope: str) -> pd.DataFrame:
        """Return the incidents of a scope, in order of time."""
        rows = self.tables["incidents"].sort_values(["first", "kind", "trouble"], kind="stable")
        if scope == ALL:
            return rows
        mask = [scope in set(instances) for instances in rows["instances"]]
        return rows[pd.Series(mask, index=rows.index, dtype=bool)]

    @property
    def what_happened(self) -> list[str]:
        """Return at most three sentences on the incidents and their suspects."""
        return what_happened(self.tables["incidents"], self.tables["suspects"])

    def keys(self, scope: str) -> pd.DataFrame:
        """Return the rows of one scope's keys; for ALL, the rows of every instance, never summed over instances."""
        rows = self.tables["by_key"]
        return rows[rows["instance"] != ALL] if scope == ALL else rows[rows["instance"] == scope]

    def slowest_keys(self, scope: str) -> pd.DataFrame:
        """Return, for each kind, the keys with the longest waits: by the 95th percentile, then by the sum of waits."""
        rows = self.keys(scope)
        rows = rows[rows["total_waited_ms"] > 0]
        return pd.concat([self.top(rows, self._most_keys, [name]) for name in ("p95_ms", "total_waited_ms")])

    def expiring_keys(self, scope: str) -> pd.DataFrame:
        """Return, for each kind, the keys on which most operations expired."""
        rows = self.keys(scope)
        return self.top(rows[rows["expired"] > 0], self._most_keys, ["expired", "expired_share"])

    @cached_property
    def shown_keys(self) -> pd.DataFrame:
        """Every (instance, kind, key) that the page names; the row's number identifies the key in the page."""
        parts = [select(scope) for scope in self.scopes for select in (self.slowest_keys, self.expiring_keys)]
        return pd.concat(parts)[["instance", "kind", "key"]].drop_duplicates().reset_index(drop=True)

    @property
    def _most_keys(self) -> int:
        """Maximum number of keys per kind in a table: fewer if there are many instances, to keep the page small."""
        return max(min(MOST_KEYS, 4 * MOST_KEYS // len(self.scopes)), 2)

    def top(self, keys: pd.DataFrame, most: int, by: Sequence[str]) -> pd.DataFrame:
        """Return the `most` highest keys, by `by`, of each drawn kind, not of all kinds in one list."""
        ranked = keys.sort_values([*by], ascending=False, kind="stable").groupby("kind").head(most)
        return pd.concat([ranked[ranked["kind"] == kind] for kind in self.drawn] or [keys])


def read_analysis(tables: Path) -> Analysis:
    """Read the small tables of an analysis (Parquet, one directory or file each) and its marker."""
    if not tables.is_dir():
        raise ReportError(f"no such directory of tables: {tables}")
    frames = {name: _read(tables, name, columns) for name, columns in COLUMNS.items()}
    return Analysis(tables=frames, made=_marker(tables))


def _read(tables: Path, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
    path = next((p for p in (tables / name, tables / f"{name}.parquet") if p.exists()), None)
    if path is None:
        raise ReportError(f"the analysis in {tables} has no table {name!r}: it did not finish; analyze the log again")
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ReportError(f"table {name!r} of the analysis in {tables} cannot be read: {error}") from error
    missing = [column for column in columns if column not in frame.columns]
    if missing and not frame.empty:
        raise ReportError(f"table {name!r} of the analysis in {tables} lacks {', '.join(missing)}")
    frame = frame.reindex(columns=[*frame.columns, *missing])
    if "instance" in columns:
        frame["instance"] = frame["instance"].astype(object).where(frame["instance"].notna(), ALL)
    return frame


def _marker(tables: Path) -> Mapping[str, Any]:
    for path in (tables / MARKER, tables.parent / MARKER):
        if path.with_name(former(MARKER)).is_file():
            raise written_before(path.parent, "analyze the log again")
        if path.is_file():
            try:
                made = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ReportError(f"{path} is not valid JSON: {error}") from error
            return made if isinstance(made, dict) else {}
    return {}


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts broker-2 before broker-10."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]
