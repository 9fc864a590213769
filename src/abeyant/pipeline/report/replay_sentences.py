"""The conclusions of a replay in sentences, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pandas as pd

from abeyant.pages.formatting import count, counted, duration, percent, shortened
from abeyant.pipeline.report.analysis import ALL
from abeyant.pipeline.report.offers import FEW, clients_to_change, offers, share

__all__ = [
    "KAFKAS",
    "band",
    "by_time_out",
    "conclusions",
    "expiring_sentences",
    "own_time_out",
    "setting",
    "time_out_sentences",
    "together",
    "wheel",
    "wheel_sentences",
]

KAFKAS: Final = (1.0, 20)
"""Kafka's wheel, with which other wheels are compared: its tick in ms, and its number of buckets."""

SETTING: Final = ["timeout_ms", "tick_ms", "wheel_size", "purge_interval"]
_ADDED: Final = ("operations", "left_out", "completed", "expired", "unknown", "timers", "cascades", "wakeups")
_COUNTS: Final = (*_ADDED, "bucket_operations", "memory_bytes")
_MOST_TIME_OUTS: Final = 4
_MOST_KINDS: Final = 3
_MOST_CLIENTS: Final = 4


def conclusions(
    replayed: pd.DataFrame, what_if: pd.DataFrame, own: pd.DataFrame, clients: pd.DataFrame | None = None
) -> list[str]:
    """Return the conclusions in plain text: which time-out to set, how many expire, and which wheel is better.

    `own` has the operations' own time-outs (`OWN_TIMEOUTS`), `clients` the time-outs of each client
    (`CLIENT_TIMEOUTS`).
    """
    sentences = [*time_out_sentences(what_if, own, clients), *expiring_sentences(replayed), *wheel_sentences(replayed)]
    return sentences or ["Nothing was replayed."]


def expiring_sentences(replayed: pd.DataFrame) -> list[str]:
    """Return a sentence for each of the first time-outs replayed: how many operations expire."""
    wheels = together(replayed[replayed["purge_interval"].isna()])
    return [_expiring(timeout, rows.iloc[0]) for timeout, rows in islice(by_time_out(wheels), _MOST_TIME_OUTS)]


def wheel_sentences(replayed: pd.DataFrame) -> list[str]:
    """Return sentences on wheels that wake or cascade less than Kafka's wheel, under the first time-out."""
    wheels = together(replayed[replayed["purge_interval"].isna()])
    return next((_wheels(rows) for _, rows in by_time_out(wheels)), [])


def together(rows: pd.DataFrame) -> pd.DataFrame:
    """Aggregate the instances of each setting: sum the counts, take the maximum of pending, watched and lateness."""
    sums = {name: (name, "sum") for name in _COUNTS}
    maxima = {name: (name, "max") for name in ("pending_most", "lateness_most_ms", "watched_most")}
    work = {name: (name, "sum") for name in ("purges", "purged_past")}
    return rows.groupby(SETTING, dropna=False, as_index=False).agg(**sums, **maxima, **work)


def by_time_out(rows: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame]]:
    """Yield each time-out (ms) with its rows; first NaN, which stands for the operations' own time-outs."""
    for timeout in rows["timeout_ms"].drop_duplicates().sort_values(na_position="first"):
        yield timeout, rows[rows["timeout_ms"].isna() if pd.isna(timeout) else rows["timeout_ms"] == timeout]


def setting(timeout_ms: float) -> str:
    """Return a time-out in words."""
    return "their own time-outs" if pd.isna(timeout_ms) else f"a time-out of {duration(float(timeout_ms))}"


def wheel(tick_ms: float, size: float) -> str:
    """Return a wheel in words: its tick and number of buckets, and whether it is Kafka's."""
    name = f"tick of {tick_ms:g}\N{NO-BREAK SPACE}ms with {size:,.0f} buckets"
    return f"Kafka's {name}" if (tick_ms, size) == KAFKAS else f"a {name}"


def band(least: float, most: float) -> str:
    """Return a range of numbers in words, or one number if both ends are equal."""
    return count(most) if least == most else f"{count(least)}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{count(most)}"


def _expiring(timeout: float, row: pd.Series[Any]) -> str:
    least = row["expired"] - row["unknown"]
    text = f"With {setting(timeout)}, {band(least, row['expired'])} of {counted(row['operations'], 'operation')} expire"
    if row["unknown"]:
        text += f" ({count(row['unknown'])} are unknown, since they expired sooner in the log)"
    if row["left_out"]:
        text += f"; {count(row['left_out'])} without a start, time-out or known end, or from before 1970, are left out"
    return f"{text}."


def _wheels(rows: pd.DataFrame) -> list[str]:
    """Compare Kafka's wheel with the wheel of fewest wake-ups and, at Kafka's tick, the wheel of fewest cascades."""
    kafkas = rows[(rows["tick_ms"] == KAFKAS[0]) & (rows["wheel_size"] == KAFKAS[1])]
    if kafkas.empty or not rows["timers"].any():
        return []
    base, sentences = kafkas.iloc[0], []
    idlest = rows.sort_values(["wakeups", "tick_ms", "wheel_size"], kind="stable").iloc[0]
    if idlest["wakeups"] < base["wakeups"]:
        late = ""
        if pd.notna(idlest["lateness_most_ms"]):
            late = (
                f". Operations then expire up to {duration(idlest['lateness_most_ms'])} late, "
                f"not {duration(base['lateness_most_ms'])}"
            )
        sentences.append(
            f"Of the wheels tried, {_named(idlest)} wakes the driver least: "
            f"{_less(idlest, base, 'wakeups', 'wake-ups')}{late}."
        )
    same_tick = rows[rows["tick_ms"] == KAFKAS[0]]
    calmest = same_tick.sort_values(["cascades", "memory_bytes"], kind="stable").iloc[0]
    if calmest["cascades"] < base["cascades"]:
        memory = f"{_kib(calmest['memory_bytes'])} in place of {_kib(base['memory_bytes'])}"
        sentences.append(
            f"At Kafka's tick, {count(calmest['wheel_size'])} buckets cascade least: "
            f"{_less(calmest, base, 'cascades', 'cascades')}, in {memory} of memory."
        )
    return sentences or [f"No wheel tried wakes or cascades less than {_named(base)}."]


def _named(row: pd.Series[Any]) -> str:
    return wheel(row["tick_ms"], row["wheel_size"])


def _less(row: pd.Series[Any], base: pd.Series[Any], name: str, words: str) -> str:
    saved = percent(1 - row[name] / base[name])
    return f"{count(row[name])} {words}, {saved} fewer than {_named(base)} ({count(base[name])})"


def _kib(size: float) -> str:
    return f"{size / 1024:,.1f}\N{NO-BREAK SPACE}KiB"


def time_out_sentences(what_if: pd.DataFrame, own: pd.DataFrame, clients: pd.DataFrame | None = None) -> list[str]:
    """Return sentences per kind: the shortest time-out under which few expire, today's time-out, and Kafka's setting.

    With `clients` (`CLIENT_TIMEOUTS`), also name the clients with another time-out. If only long polls waited, say that
    their time-outs need no change.
    """
    suggestions = offers(what_if, own)
    if not suggestions:
        return _poll_sentences(what_if, own)
    sentences = []
    for offer in suggestions:
        name = shortened(offer.kind) if offer.kind else "operations"
        today = "".join(f" {words}" for words in (_today(own, offer.kind), _SET_BY.get(offer.kind, "")) if words)
        timeout = offer.row["timeout_ms"]
        if offer.is_enough:
            criterion = "at most 1\N{NO-BREAK SPACE}% expire" if offer.few == FEW else "no more expire than today"
            sentences.append(
                f"{name}: the shortest time-out tried under which {criterion} is "
                f"{duration(timeout)} ({share(offer.row)}).{today}"
            )
        else:
            sentences.append(
                f"{name}: even with {setting(timeout)}, the longest tried, {share(offer.row)} expire.{today}"
            )
        sentences += _client_sentences(name, timeout, clients_to_change(offer, clients))
    return sentences


def _client_sentences(name: str, timeout_ms: float, clients: pd.DataFrame) -> list[str]:
    """Return a sentence on clients whose time-out is shorter than suggested, and one on clients with a longer one.

    Each sentence names the first few clients, with their time-outs today.
    """
    sentences = []
    for longer, rows in clients.groupby(clients["least_ms"] > timeout_ms) if len(clients) else ():
        entries = []
        for row in rows.head(_MOST_CLIENTS).to_dict("records"):
            least, most = duration(float(row["least_ms"])), duration(float(row["most_ms"]))
            today = least if least == most else f"{least} to {most}"
            expired = f"{count(row['expired'])} of {counted(row['operations'], 'operation')} expired"
            entries.append(f"{shortened(row['client_id'])} ({today}; {expired})")
        remaining = len(rows) - len(entries)
        rest = f"; and {count(remaining)} more, in the table client_timeouts" if remaining else ""
        verb, adjective = "has" if len(rows) == 1 else "have", "longer" if longer else "shorter"
        sentences.append(
            f"{name}: {counted(len(rows), 'client')} {verb} a {adjective} one today: {'; '.join(entries)}{rest}."
        )
    return sentences


def own_time_out(own: pd.DataFrame, scope: str, kind: str, *, bounds: bool = True) -> str:
    """Return the median of the operations' own time-outs in words, with `bounds` also the range; "" without any."""
    rows = own[(own["instance"] == scope) & (own["kind"] == kind)]
    if rows.empty:
        return ""
    least, median, most = (duration(float(rows.iloc[0][f"{name}_ms"])) for name in ("least", "median", "most"))
    return median if least == most else f"median {median}" + f", from {least} to {most}" * bounds


_SET_BY: Final = {
    "PRODUCE": "The setting is the producer's request.timeout.ms (default 30 s); delivery.timeout.ms must be at least "
    "that plus linger.ms.",
    "JOIN_GROUP": "The setting is the consumer's max.poll.interval.ms (default 5 min), or Kafka Connect's "
    "rebalance.timeout.ms (default 1 min).",
    "FETCH": "The setting is the consumer's fetch.max.wait.ms (default 500 ms), or a follower's "
    "replica.fetch.wait.max.ms.",
    "FETCH_CONSUMER": "The setting is the consumer's fetch.max.wait.ms (default 500 ms).",
    "FETCH_FOLLOWER": "The setting is the follower's replica.fetch.wait.max.ms (default 500 ms).",
}
"""The Kafka setting for the time-out of each kind of request."""


def _today(own_timeouts: pd.DataFrame, kind: str) -> str:
    """Return a sentence with today's time-outs, and the time-outs of expired operations; "" without time-outs."""
    today = own_time_out(own_timeouts, ALL, kind)
    if not today:
        return ""
    row = own_timeouts[(own_timeouts["instance"] == ALL) & (own_timeouts["kind"] == kind)].iloc[0]
    sentence = f"Today's time-outs: {today}"
    if row["least_ms"] != row["most_ms"] and pd.notna(row["expired_least_ms"]):
        least, most = (duration(float(row[f"expired_{name}_ms"])) for name in ("least", "most"))
        sentence += f"; those that expired had {least if least == most else f'{least} to {most}'}"
    return f"{sentence}."


def _poll_sentences(what_if: pd.DataFrame, own_timeouts: pd.DataFrame) -> list[str]:
    kinds = sorted(map(str, what_if.loc[what_if["instance"] == ALL, "kind"].unique()))
    return [
        " ".join(
            filter(
                None,
                (
                    f"{shortened(kind)}: a long poll that expires is no error, so no time-out has to change.",
                    _today(own_timeouts, kind),
                    _SET_BY.get(kind),
                ),
            )
        )
        for kind in kinds[:_MOST_KINDS]
    ]
