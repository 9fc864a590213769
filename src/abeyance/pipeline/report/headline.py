"""The findings in words: what a person would say first about the log."""

from __future__ import annotations

from typing import Any

import pandas as pd

from abeyance.pages.words import count, counted, duration, escaped, percent, shortened
from abeyance.pipeline.report.analysis import ALL, Analysis

_MANY = 20
"""Of fewer waits a 95th percentile says little."""
_MOST_NAMED = 5


def headline(analysis: Analysis) -> str:
    """Return the one sentence of the page's title: how many requests, how many waited, what share expired."""
    requests = analysis.within("requests_by_kind", ALL)
    asked, waited = float(requests["requests"].sum()), float(requests["waited"].sum())
    if not asked:
        return "No request in this log"
    if not waited:
        return f"{counted(asked, 'request')}, and none of them waited"
    kinds = analysis.within("summary", ALL)
    known = waited - float(kinds["unknown"].sum())
    expired = float(kinds["expired"].sum())
    ending = "how they ended, the log does not tell"
    if known > 0:
        ending = f"{percent(min(expired / known, 1.0))} of these expired" if expired else "none of these expired"
    return f"{counted(asked, 'request')}, {count(waited)} of them waited; {ending}"


def findings(analysis: Analysis) -> list[str]:
    """Return a few sentences, in HTML, that say where the waiting is."""
    kinds = analysis.within("summary", ALL)
    kinds = kinds[kinds["waited"] > 0]
    said = [_when(analysis)]
    if not kinds.empty:
        many = kinds[kinds["waited"] >= _MANY]
        slow = _highest(kinds if many.empty else many, "p95_ms")
        said.append(
            f"<b>{escaped(slow['kind'])}</b> waits longest: half of its "
            f"{counted(slow['operations'], 'operation')} waited at most {duration(slow['p50_ms'])}, "
            f"19 in 20 at most {duration(slow['p95_ms'])}."
        )
        said.append(_longest(analysis, kinds))
        said.extend(_expired(kinds))
    unread = len(analysis.tables["rejected"])
    if unread:
        said.append(f'{counted(unread, "line")} could not be read: <a href="#rejected">which, and why</a>.')
    return [sentence for sentence in said if sentence]


def _when(analysis: Analysis) -> str:
    instances = analysis.instances
    who = f"instance {escaped(instances[0])}" if len(instances) == 1 else f"{len(instances):,} instances"
    times = analysis.tables["pending_plot"]["at"].dropna()
    if times.empty:
        return f"The log of {who}."
    first, last = pd.Timestamp(times.min()), pd.Timestamp(times.max())
    span = duration((last - first).total_seconds() * 1_000)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%-d %B %Y, %H:%M:%S}"
    return f"The log of {who}: something waited between {first:%-d %B %Y, %H:%M:%S} and {until} UTC ({span})."


def _longest(analysis: Analysis, kinds: pd.DataFrame) -> str:
    kind = _highest(kinds, "max_ms")
    said = f"The longest single wait was {duration(kind['max_ms'])}, of a {escaped(kind['kind'])}"
    keys = analysis.keys(ALL)
    keys = keys[(keys["kind"] == kind["kind"]) & (keys["max_ms"] >= kind["max_ms"] * 0.999)]
    if len(keys) == 1:
        said += f" on <code><bdi>{escaped(shortened(keys.iloc[0]['key']))}</bdi></code>"
    return said + "."


def _expired(kinds: pd.DataFrame) -> list[str]:
    """Say what expired, long polls apart: for them it is the ordinary end."""
    expired = kinds[kinds["expired"] > 0].sort_values("expired", ascending=False, kind="stable")
    if expired.empty:
        return [] if kinds["unknown"].any() else ["Nothing expired: every wait ended as its condition came true."]
    polls = expired["kind"].astype(str).str.contains("FETCH")
    named = [
        f"{count(row['expired'])} of {count(row['operations'])} <b>{escaped(row['kind'])}</b> "
        f"({percent(row['expired_share'])})"
        for row in expired[~polls].to_dict("records")
    ]
    said = []
    if named:
        said.append("At their deadline without what they waited for: " + ", ".join(named[:_MOST_NAMED]) + ".")
    if polls.any():
        number = counted(float(expired.loc[polls, "expired"].sum()), "long poll")
        said.append(f"{number} (FETCH) expired too: nothing new came, which is no harm.")
    return said


def _highest(rows: pd.DataFrame, column: str) -> dict[Any, Any]:
    return rows.sort_values(column, ascending=False, kind="stable", na_position="last").to_dict("records")[0]
