"""The headline and the main findings of an analysis, in sentences."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from abeyant.pages.formatting import count, counted, duration, escaped, percent, shortened
from abeyant.pipeline.report.analysis import ALL, Analysis
from abeyant.pipeline.report.kinds import is_poll
from abeyant.pipeline.request_log.layout import KAFKAS
from abeyant.pipeline.request_log.line import NOT_A_REQUEST

_MANY = 20
"""Minimum number of waits for a meaningful 95th percentile."""
_MOST_NAMED = 5


def headline(analysis: Analysis) -> str:
    """Return the page's title: the worst trouble or, without any, how many requests waited and how they ended."""
    requests = analysis.within("requests_by_kind", ALL)
    total, waited = float(requests["requests"].sum()), float(requests["waited"].sum())
    if not total:
        return "No request in this log"
    if not waited:
        return f"{counted(total, 'request')}, and none of them waited"
    return _hurt(analysis) or _harmless(analysis, total, waited)


def _hurt(analysis: Analysis) -> str:
    """Return which kind expired most and in how many bursts, else the bursts of other trouble; "" without either."""
    kinds, bursts = analysis.within("summary", ALL), analysis.incidents(ALL)
    failed = kinds[(kinds["expired"] > 0) & ~polls(kinds["kind"])]
    if not failed.empty:
        worst = _highest(failed, "expired")
        sentence = f"{count(worst['expired'])} {worst['kind']} {_requests(worst['expired'])} expired"
        kind_bursts = bursts[(bursts["kind"] == worst["kind"]) & (bursts["expired"] > 0)]
        if kind_bursts.empty:
            return sentence
        worst_burst = _highest(kind_bursts, "expired")
        start = f"{pd.Timestamp(worst_burst['first']):%H:%M:%S} UTC"
        if len(kind_bursts) == 1:
            part = "" if worst_burst["expired"] == worst["expired"] else f"{count(worst_burst['expired'])} of them "
            return f"{sentence}, {part}in one burst at {start}"
        total = int(kind_bursts["expired"].sum())
        part = "" if total == worst["expired"] else f"{count(total)} of them "
        return f"{sentence}, {part}in {len(kind_bursts):,} bursts, the worst at {start}"
    if not bursts.empty:
        troubles = set(bursts["trouble"])
        trouble = _BURSTS.get(troubles.pop(), "trouble") if len(troubles) == 1 else "trouble"
        longest = _highest(bursts, "longest_ms")
        return (
            f"{counted(len(bursts), 'burst')} of {trouble}, up to {duration(longest['longest_ms'])} of a "
            f"{longest['kind']}; nothing expired that matters"
        )
    return ""


_BURSTS: Final = {
    "waited": "long waits",
    "rebalanced": "long waits",
    "throttled": "throttled requests",
    "handled": "slow handling",
    "sent": "slow sending",
    "refused": "refused requests",
    "paused": "late fetches",
}
"""The words for an incident's trouble in a headline."""


def _requests(number: float) -> str:
    return "request" if round(number) == 1 else "requests"


def _harmless(analysis: Analysis, total: float, waited: float) -> str:
    kinds = analysis.within("summary", ALL)
    known = waited - float(kinds["unknown"].sum())
    expired = float(kinds["expired"].sum())
    ending = "the log does not show how they ended"
    if known > 0:
        ending = "none of these expired"
        if expired:
            ending = f"{percent(min(expired / known, 1.0))} of these expired, all of them long polls"
    return f"{counted(total, 'request')}, {count(waited)} of them waited; {ending}"


def polls(kinds: pd.Series[Any]) -> pd.Series[bool]:
    """Return a mask that is True for kinds that are long polls: Kafka's fetches."""
    return kinds.map(is_poll).astype(bool)


def findings(analysis: Analysis) -> list[str]:
    """Return a few sentences, in HTML: which kind waits longest, the longest single wait, and what expired."""
    kinds = analysis.within("summary", ALL)
    kinds = kinds[kinds["waited"] > 0]
    sentences = list[str]()
    if not kinds.empty:
        many = kinds[kinds["waited"] >= _MANY]
        slow = _highest(kinds if many.empty else many, "p95_ms")
        sentences.append(
            f"<b>{escaped(shortened(slow['kind']))}</b> waits longest: half of its "
            f"{counted(slow['operations'], 'operation')} waited at most {duration(slow['p50_ms'])}, "
            f"p95 {duration(slow['p95_ms'])}."
        )
        sentences.append(_longest(analysis, kinds))
        sentences.extend(_expired(kinds))
    return sentences


def happened(analysis: Analysis) -> list[str]:
    """Return at most three sentences, in HTML, on the incidents and their suspects, or that there was no incident."""
    if analysis.tables["requests_by_kind"].empty:
        return []
    none = "No incident: no burst of expiries, of long waits or of other trouble."
    return [*map(escaped, analysis.what_happened)] or [none]


def note(analysis: Analysis) -> str:
    """Return a note on the log in HTML: its instances, time range, layout, and how many lines were rejected."""
    sentences = [_when(analysis), escaped(read_as(analysis))]
    reasons = analysis.tables["rejected"]["reason"]
    others = int((reasons == NOT_A_REQUEST).sum())
    if len(reasons) > others:
        unread = counted(len(reasons) - others, "line")
        sentences.append(f'{unread} could not be read: <a href="#rejected">which, and why</a>.')
    if others:
        sentences.append(f'{counted(others, "line")} without a completed request: <a href="#rejected">the first</a>.')
    return " ".join(sentence for sentence in sentences if sentence)


def _when(analysis: Analysis) -> str:
    instances = analysis.instances
    subject = f"instance {escaped(shortened(instances[0]))}" if len(instances) == 1 else f"{len(instances):,} instances"
    times = analysis.tables["pending_plot"]["at"].dropna()
    if times.empty:
        return f"The log of {subject}."
    first, last = pd.Timestamp(times.min()), pd.Timestamp(times.max())
    span = duration((last - first).total_seconds() * 1_000).replace(" ", "\N{NO-BREAK SPACE}")
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%-d %B %Y, %H:%M:%S}"
    return f"The log of {subject}: something waited between {first:%-d %B %Y, %H:%M:%S} and {until} UTC ({span})."


def read_as(analysis: Analysis) -> str:
    """Return sentences on the lines' layout, unless it is Kafka's own, and on files that were read as one broker's."""
    layouts = [str(name) for name in analysis.made.get("layouts", ())]
    sentences = [f"Read as {'; '.join(layouts)}."] if layouts not in ([], [KAFKAS]) else []
    return " ".join([*sentences, *(f"{joined}." for joined in analysis.made.get("joined", ()))])


def _longest(analysis: Analysis, kinds: pd.DataFrame) -> str:
    kind = _highest(kinds, "max_ms")
    sentence = f"The longest single wait was {duration(kind['max_ms'])}, of a {escaped(shortened(kind['kind']))}"
    keys = analysis.keys(ALL)
    keys = keys[(keys["kind"] == kind["kind"]) & (keys["max_ms"] >= kind["max_ms"] * 0.999)]
    if len(keys) == 1:
        sentence += f" on <code><bdi>{escaped(shortened(keys.iloc[0]['key']))}</bdi></code>"
    return sentence + "."


def _expired(kinds: pd.DataFrame) -> list[str]:
    """Return sentences on what expired. Long polls have a sentence of their own, as they ordinarily end by expiring."""
    expired = kinds[kinds["expired"] > 0].sort_values("expired", ascending=False, kind="stable")
    if expired.empty:
        return [] if kinds["unknown"].any() else ["Nothing expired: every wait ended as its condition came true."]
    fetches = polls(expired["kind"])
    entries = [
        f"{count(row['expired'])} of {count(row['operations'])} <b>{escaped(shortened(row['kind']))}</b> "
        f"({percent(row['expired_share'])})"
        for row in expired[~fetches].to_dict("records")
    ]
    sentences = []
    if entries:
        sentences.append("Timed out: " + ", ".join(entries[:_MOST_NAMED]) + ".")
    if fetches.any():
        number = counted(float(expired.loc[fetches, "expired"].sum()), "long poll")
        sentences.append(f"{number} (FETCH) expired too: nothing new came, which is no harm.")
    return sentences


def _highest(rows: pd.DataFrame, column: str) -> dict[Any, Any]:
    return rows.sort_values(column, ascending=False, kind="stable", na_position="last").to_dict("records")[0]
