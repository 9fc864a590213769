"""Business hours: compute the open time up to an instant, and when a countdown over open hours is due."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeGuard
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from abeyant.kernels.timelines import NEVER

__all__ = ["Calendar"]

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM: Final = re.compile(
    r"(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))?\s+(?P<from>\d{1,2}:\d\d)-(?P<to>\d{1,2}:\d\d)", re.IGNORECASE
)
_REFERENCE: Final = date(1970, 1, 1)
_EPOCH: Final = _REFERENCE.toordinal()
_NONE: Final = timedelta()
_SPAN: Final = timedelta(days=366)  # hours are computed for at least this many days at once
_MARGIN: Final = timedelta(days=3)  # more than any zone's offset from UTC plus hours past midnight
_FURTHEST: Final = date(9990, 1, 1)


class _Hours(NamedTuple):
    """Opening hours of the days computed so far, in microseconds since 1970."""

    first: date
    last: date
    begins: list[int]
    ends: list[int]
    before: list[int]
    """Open time in microseconds from the start of 1970 to each of `begins`, and finally to the last of `ends`."""

    def elapsed(self, at: int) -> int:
        place = bisect_right(self.begins, at) - 1
        return self.before[max(place, 0)] + (min(at, self.ends[place]) - self.begins[place] if place >= 0 else 0)

    def due(self, start: int, reading: int) -> int:
        if reading <= self.elapsed(start):  # the countdown is at zero: due at once, open or closed
            return start
        place = min(bisect_left(self.before, reading, 1) - 1, len(self.begins) - 1)
        return max(start, self.begins[place] + (reading - self.before[place]))


class _Columns:
    """`_Hours` for NumPy columns. NumPy is imported only here, so that `Resolver` works without it."""

    def __init__(self, hours: _Hours) -> None:
        import numpy as np

        self.of, self._np = hours, np
        self._begins, self._ends, self._before = (np.array(column, np.int64) for column in hours[2:])
        self._shift = self._before[:-1] - self._begins  # added to an instant within open hours: open time up to it

    def elapsed(self, times: Any) -> Any:
        np = self._np
        place = np.searchsorted(self._begins, times, side="right") - 1
        elapsed = np.minimum(times, self._ends[place]) + self._shift[place]
        elapsed[place < 0] = self._before[0]
        return elapsed

    def due(self, starts: Any, readings: Any) -> Any:
        np = self._np
        place = np.minimum(np.searchsorted(self._before[1:], readings, side="left"), len(self._begins) - 1)
        at = np.maximum(starts, self._begins[place] + (readings - self._before[place]))
        at = np.where(readings <= self._before[0], starts, at)  # before the first open hour: due at once
        at[readings == NEVER] = NEVER
        return at


class Calendar:
    """Opening hours by weekday, less holidays, in a time zone with its clock changes.

    `hours` are `DAY HH:MM-HH:MM` or `DAY-DAY HH:MM-HH:MM`, separated by commas (`Mon-Fri 09:00-12:00, Mon-Fri
    13:00-17:00` has a lunch break); hours that end before they begin go on past midnight, and 24:00 is the end of a
    day. `holidays` are dates, or their text as in 2026-12-25: a set, a list, a column, one text with commas; or an
    object of the package `holidays`, or another container, where each date is looked up. No hours begin on a holiday.
    Open time is real time: an hour that the zone's clock skips counts as none, an hour that it repeats as two. A
    time-out counts open time: 2 days are 48 open hours, six working days of eight hours, or two of `00:00-24:00`.

    Raises ValueError for hours that cannot be parsed or overlap, an unknown zone, and holidays that are no dates.

    Examples:
        >>> from datetime import date
        >>> office = Calendar("Mon-Fri 09:00-17:00", zone="Europe/Berlin", holidays={date(2026, 12, 25)})
        >>> hour = 3_600_000_000  # in microseconds, as `elapsed_at` counts
        >>> (office.elapsed_at(1_798_243_200_000_000) - office.elapsed_at(1_798_070_400_000_000)) // hour
        8
    """

    def __init__(self, hours: str, *, zone: str = "UTC", holidays: Iterable[date | str] | Container[date] = ()) -> None:
        """See the class."""
        self._hours = hours
        self._weekly = _read(hours)
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"zone must be a name such as 'Europe/Berlin' or 'UTC', not {zone!r}") from None
        if isinstance(holidays, str):
            holidays = [day.strip() for day in holidays.split(",")]
        elif holidays is None:
            raise ValueError("holidays must be dates, not None: leave them out")
        self._holidays: Any = frozenset(map(_day, holidays)) if _is_listed(holidays) else holidays
        self._lock = threading.Lock()  # held while `_known` is extended; it is replaced as a whole
        self._known = _Hours(_REFERENCE, _REFERENCE, [], [], [0])
        self._columns: _Columns | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments, not the computed hours (Spark ships calendars to its workers)."""
        return partial(Calendar, zone=self._zone.key, holidays=self._holidays), (self._hours,)

    def __repr__(self) -> str:
        """Return the same text for the same hours, zone and holidays."""
        holidays = self._holidays
        if isinstance(holidays, frozenset):
            text = str(sorted(map(str, holidays)))
        else:
            text = repr(holidays)
            if " object at 0x" in text:
                text = type(holidays).__qualname__
        return f"Calendar({self._hours!r}, zone={self._zone.key!r}, holidays={text})"

    def elapsed_at(self, at: int) -> int:
        """Return the open time between the start of 1970 and `at`, both in microseconds; negative before 1970.

        O(log n) in the hours computed so far; the first call for a year computes the hours of that year.
        """
        return self._covering(at, at).elapsed(at)

    def due_at(self, start: int, reading: int) -> int:
        """Return the first instant from `start` on by which the open time since 1970 has reached `reading`.

        All times are in microseconds, `reading` as `elapsed_at` returns it: `due_at(start, elapsed_at(start) + open)`
        is the end of a countdown from `start` over `open` microseconds of open time. O(log n).
        """
        return self._reaching(self._covering(start, start), reading).due(start, reading)

    def elapsed(self, times: Any) -> Any:
        """Return `elapsed_at` for a NumPy column of microseconds since 1970."""
        return self._columns_of(self._covering(int(times.min(initial=0)), int(times.max(initial=0)))).elapsed(times)

    def due(self, starts: Any, readings: Any) -> Any:
        """Return `due_at` for NumPy columns of microseconds; the greatest int64 stands for never."""
        hours = self._covering(int(starts.min(initial=0)), int(starts.max(initial=0)))
        most = int(readings[readings != NEVER].max(initial=0))
        return self._columns_of(self._reaching(hours, most)).due(starts, readings)

    def _columns_of(self, hours: _Hours) -> _Columns:
        columns = self._columns
        if columns is None or columns.of is not hours:
            self._columns = columns = _Columns(hours)
        return columns

    def _covering(self, earliest: int, latest: int) -> _Hours:
        """Return the known hours, after extending them if they do not cover all days from `earliest` to `latest`."""
        hours = self._known
        first, last = _day_of(earliest), _day_of(latest)
        if hours.begins and hours.first < first and last < hours.last:
            return hours
        return self._grow(min(first - _MARGIN, hours.first), max(last + _MARGIN, hours.last, first + _SPAN))

    def _reaching(self, hours: _Hours, reading: int) -> _Hours:
        """Return `hours`, extended as far as necessary for their total open time to reach `reading`."""
        while reading > hours.before[-1]:
            further = min((_FURTHEST - hours.last).days, max(_SPAN.days, (hours.last - hours.first).days))
            opened = hours.before[-1]
            hours = self._grow(hours.first, hours.last + timedelta(days=further))
            if hours.before[-1] == opened:
                raise ValueError(
                    f"calendar: nothing is open in the {further:,} days before {hours.last}: check hours and holidays"
                )
        return hours

    def _grow(self, first: date, last: date) -> _Hours:
        with self._lock:
            first, last = min(first, self._known.first), max(last, self._known.last)
            spans: list[tuple[int, int]] = []
            for day in map(date.fromordinal, range(first.toordinal(), last.toordinal())):
                if (hours := self._weekly[day.weekday()]) and day not in self._holidays:
                    spans += [(self._instant(day, begin), self._instant(day, end)) for begin, end in hours]
            spans = sorted((begin, end) for begin, end in spans if end > begin) or [(_micros(last), _micros(last))]
            begins, ends = map(list, zip(*spans, strict=True))
            before = list(accumulate((end - begin for begin, end in spans), initial=0))
            new_hours = _Hours(first, last, begins, ends, before)
            zero = new_hours.elapsed(0)
            self._known = new_hours._replace(before=[opened - zero for opened in before])
            return self._known

    def _instant(self, day: date, minutes: int) -> int:
        # Integer arithmetic, for speed: the first call computes the twenty thousand days since 1970.
        days, minutes = divmod(minutes, 24 * 60)
        if days:
            day += timedelta(days=days)
        offset = datetime(day.year, day.month, day.day, *divmod(minutes, 60), tzinfo=self._zone).utcoffset() or _NONE
        minutes += 24 * 60 * (day.toordinal() - _EPOCH)
        return 60_000_000 * minutes - 1_000_000 * (86_400 * offset.days + offset.seconds)


def _micros(at: date) -> int:
    if not isinstance(at, datetime):
        at = datetime.combine(at, time(), UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _day_of(micros: int) -> date:
    """Return the day of an instant, clamped to the years 4 to 9990."""
    most = (_FURTHEST - _REFERENCE).days
    return _REFERENCE + timedelta(days=min(max(micros // 86_400_000_000, -718_000), most))


def _is_listed(holidays: Any) -> TypeGuard[Iterable[Any]]:
    """Return whether `holidays` can be listed; other containers (package `holidays`) are asked about each date."""
    listed = isinstance(holidays, Sequence | Set) or type(holidays) is dict or hasattr(holidays, "__array__")
    return listed or not hasattr(holidays, "__contains__")


def _day(holiday: Any) -> date:
    """Return one holiday as a date without a time of day, since no date equals a datetime."""
    if hasattr(holiday, "as_py"):  # of Arrow
        holiday = holiday.as_py()
    if type(holiday).__name__ == "datetime64":  # of NumPy
        holiday = holiday.astype("datetime64[D]").item()
    if isinstance(holiday, datetime) and holiday == holiday:  # not pandas' NaT
        return holiday.date()
    if type(holiday) is date:
        return holiday
    try:
        return date.fromisoformat(holiday)
    except (TypeError, ValueError):
        raise ValueError(f"holidays must be dates, or text such as 2026-12-25, not {holiday!r}") from None


def _read(hours: str) -> list[list[tuple[int, int]]]:
    """Parse `hours`; return the (begin, end) of each weekday in minutes since its midnight."""
    weekly: list[list[tuple[int, int]]] = [[] for _ in _DAYS]
    for part in hours.split(","):
        match = _FORM.fullmatch(part.strip())
        names = () if match is None else (match["first"].lower(), (match["last"] or match["first"]).lower())
        if match is None or not set(names) <= set(_DAYS):
            hint = ""
            if not names and part.strip()[:1].isdigit():
                hint = ": write the days in front of all hours, as in 'Mon-Fri 09:00-12:00, Mon-Fri 13:00-17:00'"
            elif {*part.strip().lower().split("-")} <= set(_DAYS):
                hint = f": for whole days write '{part.strip()} 00:00-24:00'"
            raise ValueError(f"hours must look like 'Mon-Fri 09:00-17:00, Sat 10:00-14:00', not {part.strip()!r}{hint}")
        begin, end = (_minutes(match[name], part) for name in ("from", "to"))
        if end <= begin:
            end += 24 * 60
        first, last = (_DAYS.index(name) for name in names)
        for number in range((last - first) % 7 + 1):
            weekly[(first + number) % 7].append((begin, end))
    _check_overlap(weekly, hours)
    return weekly


def _minutes(text: str, part: str) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or 60 * hour + minute > 24 * 60:
        raise ValueError(f"{text} is not a time of day, in {part.strip()!r}: give 00:00 to 24:00")
    return 60 * hour + minute


def _check_overlap(weekly: list[list[tuple[int, int]]], hours: str) -> None:
    spans = sorted(
        (1440 * day + begin, 1440 * day + end) for day, intervals in enumerate(weekly) for begin, end in intervals
    )
    following = [*spans[1:], (spans[0][0] + 7 * 1440, 0)]
    if any(end > later for (_, end), (later, _) in zip(spans, following, strict=True)):
        raise ValueError(f"hours overlap in {hours!r}: make them disjoint")
