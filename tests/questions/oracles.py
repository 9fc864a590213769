"""The questions of docs/questions.md, each worked out anew: plain loops over the rows, nothing of ours.

Each returns by operation how it ended and when. They know the data that they are for: one event at an instant and key
where that is so, no row twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pandas as pd

Ends = dict[str, tuple[str, datetime | None]]
Read = Callable[[str], pd.DataFrame]


def rows(table: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, with None for what is missing."""
    values = [[None if pd.isna(value) else value for value in table[column]] for column in columns]
    return list(zip(*values, strict=True))


def by(pairs: list[tuple[Any, ...]]) -> dict[Any, list[Any]]:
    """The second of each pair by the first, in order."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        if key is not None and value is not None:
            found[key].append(value)
    return {key: sorted(values) for key, values in found.items()}


def paid(read: Read) -> Ends:
    at = dict(rows(read("payments"), "key", "at"))
    ends: Ends = {}
    for order, start in rows(read("orders"), "op_id", "start"):
        due = start + timedelta(minutes=15)
        when = at.get(order)
        ends[order] = ("expired", due) if when is None or when > due else ("completed", max(when, start))
    return ends


def late(read: Read) -> Ends:
    ends: Ends = {}
    for flight, scheduled, departed in rows(read("flights"), "flight", "scheduled", "departed"):
        if departed is not None and departed - scheduled <= timedelta(minutes=15):
            ends[flight] = ("completed", max(departed, scheduled))
        else:
            ends[flight] = ("expired", scheduled + timedelta(minutes=15))
    return ends


def next_of(starts: list[tuple[Any, ...]], within: timedelta) -> Ends:
    """Each (name, key, start) waits for the next start of its key."""
    times = by([(key, start) for _, key, start in starts])
    ends: Ends = {}
    for name, key, start in starts:
        if key is None or start is None:
            continue
        following = times[key][bisect_right(times[key], start) :]
        in_time = following and following[0] <= start + within
        ends[name] = ("completed", following[0]) if in_time else ("expired", start + within)
    return ends


def leaves_again(read: Read) -> Ends:
    return next_of(rows(read("flights"), "flight", "aircraft", "departed"), timedelta(hours=24))


def heartbeat(read: Read) -> Ends:
    reports = rows(read("weather"), "airport", "reported")
    return next_of([(f"{airport} {at:%F %T}", airport, at) for airport, at in reports], timedelta(hours=1))


def price(read: Read, at_the_end: bool) -> Ends:
    series = by([(share, (date, cost)) for share, date, cost in rows(read("prices"), "share", "date", "price")])
    ends: Ends = {}
    for share, points in series.items():
        for bought, cost in points:
            due = bought + timedelta(weeks=13)
            known = [(date, later) for date, later in points if bought <= date <= due]
            if at_the_end:
                above = [due] if 10 * known[-1][1] >= 11 * cost else []
            else:
                above = [date for date, later in known if 10 * later >= 11 * cost]
            ends[f"{share} {bought:%F}"] = ("completed", above[0]) if above else ("expired", due)
    return ends


def transplanted(read: Read) -> Ends:
    ends: Ends = {}
    columns = ("patient", "accepted", "transplanted", "died")
    for patient, accepted, heart, death in rows(read("patients"), *columns):
        due = accepted + timedelta(days=90)
        if heart is not None and heart <= due:
            ends[patient] = ("completed", heart)
        elif death is not None and death <= due:
            ends[patient] = ("cancelled", death)
        else:
            ends[patient] = ("expired", due)
    return ends


ORACLES: dict[str, Callable[[Read], Ends]] = {
    "Was each order paid within 15 minutes?": paid,
    "Did each flight leave at most 15 minutes late?": late,
    "Does the same aircraft leave again within 24 hours?": leaves_again,
    "Which heartbeat was missed?": heartbeat,
    "Was the price 10 % higher at some time within 13 weeks?": lambda read: price(read, at_the_end=False),
    "Was it 10 % higher at the end of the 13 weeks?": lambda read: price(read, at_the_end=True),
    "Transplanted within 90 days, or died while waiting?": transplanted,
}
