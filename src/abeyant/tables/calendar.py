"""Business time: which hours of which days count, and how far a countdown over them reaches."""

from __future__ import annotations

import re
import threading
from collections.abc import Container, Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from abeyant.kernels.timelines import NEVER
from abeyant.tables.keys import Integers

__all__ = ["Calendar"]

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM: Final = re.compile(
    r"(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))?\s+(?P<from>\d{1,2}:\d\d)-(?P<to>\d{1,2}:\d\d)", re.IGNORECASE
)
_REFERENCE: Final = date(1970, 1, 1)
_SPAN: Final = timedelta(days=366)  # at least so many days are looked at
_MARGIN: Final = timedelta(days=3)  # more than any zone is from UTC, and any hours go past their day
_FURTHEST: Final = date(9990, 1, 1)


class _Hours(NamedTuple):
    """The hours known so far, in microseconds since 1970."""

    first: date
    last: date
    begins: Integers
    ends: Integers
    before: Integers
    """What `elapsed` is at each begin, and at the end of all."""

    def elapsed(self, times: Integers) -> Integers:
        place = np.searchsorted(self.begins, times, side="right") - 1
        inside = np.clip(times, self.begins[place], self.ends[place]) - self.begins[place]
        return np.where(place < 0, self.before[0], self.before[place] + inside)


class Calendar:
    """Opening hours by weekday, less holidays, in a time zone with its clock changes.

        Calendar("Mon-Fri 09:00-17:00", zone="Europe/Berlin", holidays=holidays.country_holidays("DE"))

    `hours` are one or more of `DAY HH:MM-HH:MM` or `DAY-DAY HH:MM-HH:MM`, with commas between; hours that end before
    they begin go on past midnight, and 24:00 is the end of a day. `holidays` is anything that knows whether it contains
    a date: a set, a list, or an object of the package `holidays`. A day that is a holiday opens no hours. Time is what
    passes: an hour that the zone's clock skips is none, and one that it has twice is two.

    Raises ValueError for hours that cannot be read, overlap, or are never; and for an unknown zone.
    """

    def __init__(self, hours: str, *, zone: str = "UTC", holidays: Iterable[date] | Container[date] = ()) -> None:
        """See the class."""
        self._weekly = _read(hours)
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"zone must be a name such as 'Europe/Berlin' or 'UTC', not {zone!r}") from None
        self._holidays: Any = holidays if hasattr(holidays, "__contains__") else set(holidays)
        self._lock = threading.Lock()  # of growing; what is known is replaced as a whole
        self._known = _Hours(
            _REFERENCE, _REFERENCE, np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64)
        )

    def elapsed(self, times: Integers) -> Integers:
        """Return how much was open up to each time, in microseconds; 0 at the beginning of 1970, before it negative."""
        return self._covering(times).elapsed(times)

    def due(self, starts: Integers, readings: Integers) -> Integers:
        """Return the first instant at or after each start by which `elapsed` is the reading; `NEVER` for `NEVER`."""
        known = self._covering(starts)
        most = int(readings[readings != NEVER].max(initial=0))
        while most > known.before[-1]:
            further = min((_FURTHEST - known.last).days, max(_SPAN.days, (known.last - known.first).days))
            opened = known.before[-1]
            known = self._grow(known.first, known.last + timedelta(days=further))
            if known.before[-1] == opened:
                raise ValueError(f"calendar: nothing is open in the {further:,} days before {known.last}")
        place = np.minimum(np.searchsorted(known.before[1:], readings, side="left"), len(known.begins) - 1)
        at = np.maximum(starts, known.begins[place] + (readings - known.before[place]))
        # Where nothing is left to pass, it is over at once, be that an open hour or not.
        at = np.where(readings <= known.elapsed(starts), starts, at)
        return np.where(readings == NEVER, NEVER, at)

    def _covering(self, times: Integers) -> _Hours:
        """Return the hours around all of these times."""
        known = self._known
        first, last = (_day_of(int(time)) for time in (times.min(initial=0), times.max(initial=0)))
        if len(known.begins) and known.first < first and last < known.last:
            return known
        return self._grow(min(first - _MARGIN, known.first), max(last + _MARGIN, known.last, first + _SPAN))

    def _grow(self, first: date, last: date) -> _Hours:
        with self._lock:
            first, last = min(first, self._known.first), max(last, self._known.last)
            spans: list[tuple[int, int]] = []
            day = first
            while day < last:
                if (hours := self._weekly[day.weekday()]) and day not in self._holidays:
                    spans += [(self._instant(day, begin), self._instant(day, end)) for begin, end in hours]
                day += timedelta(days=1)
            spans = sorted((begin, end) for begin, end in spans if end > begin) or [(_micros(last), _micros(last))]
            begins, ends = (np.array(column, np.int64) for column in zip(*spans, strict=True))
            known = _Hours(first, last, begins, ends, np.concatenate(([0], np.cumsum(ends - begins))))
            self._known = known._replace(before=known.before - known.elapsed(np.zeros(1, np.int64)))
            return self._known

    def _instant(self, day: date, minutes: int) -> int:
        days, minutes = divmod(minutes, 24 * 60)
        local = datetime.combine(day + timedelta(days=days), time(*divmod(minutes, 60)), self._zone)
        return _micros(local.astimezone(UTC))


def _micros(at: date) -> int:
    if not isinstance(at, datetime):
        at = datetime.combine(at, time(), UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _day_of(micros: int) -> date:
    """Return the day of a time, or the nearest from year 2 to 9990."""
    most = (_FURTHEST - _REFERENCE).days
    return _REFERENCE + timedelta(days=min(max(micros // 86_400_000_000, -718_000), most))


def _read(hours: str) -> list[list[tuple[int, int]]]:
    """Return for each weekday its hours in minutes of the day."""
    weekly: list[list[tuple[int, int]]] = [[] for _ in _DAYS]
    for part in hours.split(","):
        found = _FORM.fullmatch(part.strip())
        names = () if found is None else (found["first"].lower(), (found["last"] or found["first"]).lower())
        if found is None or not set(names) <= set(_DAYS):
            raise ValueError(f"hours must be such as 'Mon-Fri 09:00-17:00, Sat 10:00-14:00', not {part.strip()!r}")
        begin, end = (_minutes(found[name], part) for name in ("from", "to"))
        if end <= begin:
            end += 24 * 60
        first, last = (_DAYS.index(name) for name in names)
        for number in range((last - first) % 7 + 1):
            weekly[(first + number) % 7].append((begin, end))
    _check_apart(weekly, hours)
    return weekly


def _minutes(text: str, part: str) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or 60 * hour + minute > 24 * 60:
        raise ValueError(f"{text} is no time of a day, in {part.strip()!r}")
    return 60 * hour + minute


def _check_apart(weekly: list[list[tuple[int, int]]], hours: str) -> None:
    spans = sorted((1440 * day + begin, 1440 * day + end) for day, some in enumerate(weekly) for begin, end in some)
    following = [*spans[1:], (spans[0][0] + 7 * 1440, 0)]
    if any(end > later for (_, end), (later, _) in zip(spans, following, strict=True)):
        raise ValueError(f"hours overlap in {hours!r}: give each once")
