"""Read the time of a log line: the last time before the request, as container runtimes and journald put theirs first.

    2024-05-01T10:00:00.223456789Z stdout F [2024-05-01 12:00:00,123] DEBUG Completed request:...
    `- when the runtime read the line       `- when Kafka wrote it: this one counts

Times may be in ISO 8601, with a comma, a point or a colon before the fraction, or in the forms of log4j and web
servers: 20240501T120000,123, 2024/05/01, 01 May 2024, 01/May/2024:12:00:00, 01.05.2024, seconds or milliseconds since
1970. If the last time has another form, the line is rejected: an earlier time is never taken in its place.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

__all__ = ["LineClock"]

_TIME: Final = re.compile(
    r"(?<!\d)(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,:](\d+))?"
    r"(Z|\x20?[AaPp]\.?[Mm](?![A-Za-z])|[+-]\d\d(?::?\d\d)?(?![\d:])|\x20[+-]\d\d(?::?\d\d)?(?![\w:.-])"
    r"|\x20?[A-Z][A-Za-z]+(?:/[A-Za-z0-9_+-]+)*(?:[+-]\d[\d:]*)?)?",
    re.ASCII,
)
# What is a time, though of no form that we read: a time of day, one without seconds or of half a day (AM, PM), ISO 8601
# without separators, seconds with a fraction or milliseconds since 1970.
_OTHER_TIME: Final = re.compile(
    r"(?<![\d:.])(?:\d{1,2}:\d\d:\d\d(?:[.,:]\d+)?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d{8}[T ]?\d{6}(?:[.,]?\d+)?"
    r"|/\d{4}:\d\d:\d\d:\d\d(?:[.,]\d+)?|1\d{9}[.,]\d+|1\d{12})(?![\d:])",
    re.ASCII,
)
_BEFORE_IT: Final = re.compile(r"[^\[\]{}\"|\x00-\x1f\x7f-\x9f]{0,40}\Z")
_BEHIND_IT: Final = re.compile(r"[^\[\]{}\"|\x00-\x1f\x7f-\x9f]{0,40}(?=\])|\x20?[AaPp]\.?[Mm]\b")
_NAMES: Final = (
    "jan ene gen янв", "feb fév fev фев", "mar mär mrt mrz мар", "apr avr abr апр", "may mai maj mag mei май мая",
    "jun juin giu июн", "jul juil lug июл", "aug aoû ago авг", "sep set сен", "oct okt ott out окт", "nov ноя",
    "dec déc dez dic дек",
)  # fmt: skip
_MONTHS: Final = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
"""Months by the first letters of their names in English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish
and Russian. Not in Polish, Czech and Croatian, where two months begin with the same letters."""
_FORMS: Final = (
    (
        re.compile(r"(?<!\d)(\d{4})(0\d|1[0-2])([0-3]\d)[T ]?([0-2]\d)([0-5]\d)([0-6]\d)[.,]?(?=\d{3}|(?!\d))"),
        r"\1-\2-\3T\4:\5:\6,",
    ),
    (
        re.compile(r"(?<![\d./-])(\d{4})([-./]?)(\d\d)\2(\d\d)(?:T|[\s:_|,;\]\[-]{1,4})(?=\d\d:\d\d:\d\d)", re.ASCII),
        r"\1-\3-\4T",
    ),
    (re.compile(r"(\d{4})年(\d\d)月(\d\d)日\s*(?=\d\d:\d\d:\d\d)", re.ASCII), r"\1-\2-\3T"),
    (re.compile(r"(?<![\d.])(\d\d)\.(\d\d)\.(\d{4})[T ](?=\d\d:\d\d:\d\d)"), r"\3-\2-\1T"),
)
"""Other forms of a date, each with its replacement in ISO 8601. Unlike 05/01/2024, they are unambiguous."""
_MONTH_AND_TIME: Final = r"(?P<month>[^\W\d_]{3,9})\.?%s,?[ :](?=[0-9]{2}:[0-9]{2}:[0-9]{2})"
_NAMED_DAYS: Final = (
    re.compile(
        r"(?<![0-9])(?P<day>[0-9]{1,2})\.?(?:[ /-]|\sde\s)"
        + _MONTH_AND_TIME % r"(?:[ /-]|\sde\s)(?P<year>[0-9]{4})"  # 01 May 2024, 01 de mai. de 2024
    ),
    re.compile(r"(?<!\w)" + _MONTH_AND_TIME % " (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})"),  # May 01, 2024
)
_SINCE_1970: Final = re.compile(r"(?<![\d.:,-])(1\d{9})(?:[.,](\d+)|(\d{3}))(?![\d:])", re.ASCII)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?")
_NO_ZONE: Final = re.compile(r"[AaPp]\.?[Mm]|[A-Za-z]+[+-][\d:]+")
_DIGIT: Final = re.compile("[0-9]")
_UTC: Final = frozenset({"Z", "UTC", "GMT"})
# Short names of zones that a log may have; each is one of several zones, so --timezone has to agree with it.
_ABBREVIATION: Final = re.compile(
    "(?:WE|CE|EE)S?T|MSK|BST|IST|SAST|PKT|WIB|SGT|HKT|JST|KST|AWST|A[CE][SD]T|NZ[SD]T|(?:AK|[NAECMP])[SD]T|HST|BRT|ART|[CEW]AT"
)
_SECOND_US: Final = 1_000_000
_NEAR: Final = 1024  # characters before a time in which others are searched


class LineClock:
    """Reader of the timestamps of one log; `timezone` applies to timestamps that name no time zone."""

    def __init__(self, timezone: tzinfo = UTC) -> None:
        self._timezone = timezone
        self._second = ("", "", "")
        self._second_us = 0

    def read(self, head: str) -> int:
        """Return the last time in `head` in microseconds since 1970; raise ValueError with the reason.

        A fraction is cut to microseconds. When clocks are set back, a local time occurs twice: its first occurrence is
        taken or, if an earlier time in `head` names its zone, the occurrence nearest to that time. O(len(head)).
        """
        head = head if head.isascii() else head.replace("\N{MINUS SIGN}", "-")  # as a typesetter writes an offset
        last = _TIME.search(head)
        times = [last] if last is not None else []
        after = last.end() if last is not None else 0
        if _DIGIT.search(head, after) is not None:  # as mostly there is none
            times += _TIME.finditer(head, after)
            other_time = _OTHER_TIME.search(head, times[-1].end() if times else 0)
            if (other_time is not None or not times) and (changed := _in_iso(head)) != head:
                return self.read(changed)
            if other_time is not None:
                raise ValueError(_in_no_form(_with_day(head, times[-1].end() if times else 0, other_time)))
        if not times:
            raise ValueError("no timestamp in front of the request")
        day, second, fraction, zone = times[-1].groups()
        key = (day, second, zone or "")
        if key != self._second:
            self._second_us, certain = self._moment(times)
            self._second = key if certain else ("", "", "")
        return self._second_us + int((fraction or "0")[:6].ljust(6, "0"))

    def _moment(self, times: list[re.Match[str]]) -> tuple[int, bool]:
        """Return the last time's whole second, in microseconds since 1970, and whether it is unambiguous."""
        text = times[-1].group(0)
        name = (times[-1][4] or "").strip()
        zone = _zone(name)
        if zone is None and _NO_ZONE.fullmatch(name):
            raise ValueError(_in_no_form(text))
        zone = zone or self._timezone
        abbreviation = _ABBREVIATION.fullmatch(name)
        try:
            local = _local(times[-1])
            both = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
            named = [moment for moment in both if not abbreviation or moment.tzname() == name]
            seconds = sorted({round(moment.timestamp()) for moment in named})
        except (ValueError, OverflowError) as error:
            raise ValueError(f"not a time: {text}") from error
        if not seconds:
            raise ValueError(f"the time zone {zone} has no {name} (choose a --timezone that has it): {text}")
        if datetime.fromtimestamp(seconds[0], zone).replace(tzinfo=None, fold=0) != local:
            raise ValueError(f"the clocks of the time zone {zone} skip this time (check --timezone): {text}")
        if len(seconds) == 1:
            return seconds[0] * _SECOND_US, True
        near = next((instant for time in reversed(times[:-1]) if (instant := _absolute(time)) is not None), seconds[0])
        return min(seconds, key=lambda second: abs(second - near)) * _SECOND_US, False


def _in_iso(head: str) -> str:
    """Return the text before a request with the times in it rewritten as ISO 8601."""
    for form, iso in _FORMS:
        head = form.sub(iso, head)
    for named in _NAMED_DAYS:
        head = named.sub(_named_day, head)
    return _SINCE_1970.sub(_epoch, head)


def _named_day(day: re.Match[str]) -> str:
    name = day["month"].lower()
    month = _MONTHS.get(name[:4]) or _MONTHS.get(name[:3])
    if month is None or name.startswith("marr"):  # Finnish November
        return day[0]
    return f"{day['year']}-{month:02}-{int(day['day']):02}T"


def _epoch(number: re.Match[str]) -> str:
    """Return seconds or milliseconds since 1970 as ISO 8601.

    Return the number unchanged if the last time before it has a date that is more than a day away.
    """
    moment = datetime.fromtimestamp(int(number[1]), UTC)
    before = _TIME.findall(number.string, max(number.start() - _NEAR, 0), number.start())
    if before and before[-1][0] not in {f"{moment + timedelta(days):%Y-%m-%d}" for days in (-1, 0, 1)}:
        return number[0]
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{number[2] or number[3]}Z"


def _with_day(head: str, begin: int, time: re.Match[str]) -> str:
    """Return a time for an error message, with the text around it: 40 characters on each side, or to a bracket."""
    before, behind = _BEFORE_IT.search(head[begin : time.start()]), _BEHIND_IT.match(head, time.end())
    return f"{before[0] if before else ''}{time[0]}{behind[0] if behind else ''}".strip()


def _in_no_form(text: str) -> str:
    return f"the time next to the request has an unsupported form: {text}"


def _local(time: re.Match[str]) -> datetime:
    return datetime.fromisoformat(f"{time[1]}T{time[2]}")


def _zone(name: str) -> tzinfo | None:
    """Return the zone of an offset (+02:00) or of a name that means one zone only; None for any other word."""
    if name in _UTC:
        return UTC
    if (offset := _OFFSET.fullmatch(name)) is not None:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(ahead if offset[1] == "+" else -ahead)
    return ZoneInfo(name) if "/" in name and name in available_timezones() else None


def _absolute(time: re.Match[str]) -> int | None:
    """Return a time in seconds since 1970; None if the time names no zone or is invalid."""
    try:
        zone = _zone((time[4] or "").strip())
        return None if zone is None else round(_local(time).replace(tzinfo=zone).timestamp())
    except (ValueError, OverflowError):
        return None
